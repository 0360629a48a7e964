//! An expression of CEL, and an object that it looks at: it is refused or evaluated, within what it
//! may cost, and gives the same the second time.
#![no_main]

use coracle_api::cel::environment::Environment;
use coracle_api::cel::evaluate::{COST_OF_ONE_MAX, Evaluation, Given, Program, Val, on_deep_stack};
use coracle_api::cel::types::Type;
use coracle_fuzz::halves;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// What is wrong with an expression is told at this length at most: problems, and one line more.
const TOLD_BYTES_MAX: usize = 128 * 1024;

/// With a budget of its own, which is that of one object.
fn environment() -> Environment {
    let of_metadata = [("name", Type::String), ("labels", Type::Dyn)];
    Environment::default()
        .with("object", Type::Dyn)
        .with("meta", Type::of_struct("Meta"))
        .with_struct("Meta", &of_metadata)
        .with_bind()
        .with_patches()
}

fn sample() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "app": "web", "tier": "front" } },
        "spec": { "replicas": 3, "list": [1, 2, 3], "size": "1Gi", "at": "2026-01-01T00:00:00Z" },
        "nothing": null,
    })
}

/// What it gives, and what is left of the budget.
fn evaluate(program: &Program, object: &Value) -> (String, u64) {
    let given = Given {
        names: vec![
            ("object", Val::of(object)),
            ("meta", Val::of(&object["metadata"])),
        ],
        ..Given::default()
    };
    let mut evaluation = Evaluation::new(given, COST_OF_ONE_MAX);
    let told = match evaluation.evaluate(program) {
        Ok(value) => format!("{} of {}", value.type_name(), value.size()),
        Err(fault) => fault.to_string(),
    };
    (told, evaluation.left())
}

fuzz_target!(|data: &[u8]| {
    let (text, object) = halves(data).unwrap_or((data, b""));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let object = serde_json::from_slice(object).unwrap_or_else(|_| sample());
    let program = match Program::compile(text, &environment()) {
        Ok(program) => program,
        Err(why) => return assert!(why.len() <= TOLD_BYTES_MAX, "{} bytes", why.len()),
    };
    let both = || (evaluate(&program, &object), evaluate(&program, &object));
    let (first, second) = on_deep_stack(both).expect("there is memory for a stack");
    assert_eq!(first, second, "{text:?}");
    assert!(first.1 <= COST_OF_ONE_MAX);
});
