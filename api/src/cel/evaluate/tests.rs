use super::json::Room;
use super::*;
use crate::cel::types::Type;
use serde_json::{Value, json};

/// Lets do what concerns the namespace `a`.
struct Site;

impl Access for Site {
    fn decide(&self, question: &Question, verb: &str) -> Verdict {
        let is_allowed = question.namespace == "a" && matches!(verb, "create" | "get");
        Verdict {
            is_allowed,
            reason: if is_allowed { "yes" } else { "no" }.to_owned(),
            error: None,
        }
    }

    fn request_resource(&self) -> Question {
        Question {
            resource: "pods".to_owned(),
            namespace: "a".to_owned(),
            ..Question::default()
        }
    }
}

fn environment() -> Environment {
    let of = |name: &str| Type::of_struct(&format!("kubernetes.authorization.{name}"));
    let mut environment = Environment::default()
        .with("object", Type::Dyn)
        .with("unknown", Type::Dyn)
        .with("authorizer", of("Authorizer"))
        .with("authorizer.requestResource", of("ResourceCheck"))
        .with("variables", Type::of_struct("variables"))
        .with_patches();
    for name in ["double", "chain", "broken"] {
        environment.add_field("variables", name, Type::Dyn);
    }
    environment
}

fn object() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "app": "web", "tier": "front" } },
        "spec": { "replicas": 3, "list": [1, 2, 3] },
        "nothing": null,
        "words": vec!["abcdefghij"; 10],
    })
}

fn variables() -> Vec<Variable> {
    let all = [
        ("double", "object.spec.replicas * 2"),
        ("chain", "variables.double + variables.double"),
        ("broken", "object.gone"),
    ];
    let each = all.map(|(name, text)| Variable {
        name: name.to_owned(),
        program: Program::compile(text, &environment()),
    });
    each.into()
}

/// What is given, shown as JSON; what fails with a `!` in front.
fn evaluate(text: &str, cost_max: u64) -> String {
    let program = match Program::compile(text, &environment()) {
        Ok(program) => program,
        Err(why) => return format!("does not compile: {why}"),
    };
    let (object, variables) = (object(), variables());
    let given = Given {
        names: vec![("object", Val::of(&object))],
        variables: &variables,
        access: Some(&Site),
    };
    match Evaluation::new(given, cost_max).evaluate(&program) {
        Ok(value) => value.to_json(&mut Room::new()).unwrap().to_string(),
        Err(fault) => format!("!{fault}"),
    }
}

#[test]
fn expressions_give_what_upstream_gives() {
    let mut wrong = Vec::new();
    for line in include_str!("cases.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        let (text, wanted) = line.rsplit_once(" => ").unwrap();
        let got = evaluate(text, COST_OF_ALL_MAX);
        if got != wanted {
            wrong.push(format!("{text} => {got}, not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_costs_too_much_ends() {
    let limit = "!operation cancelled: actual cost limit exceeded";
    let long = "lists.range(900000).size() + lists.range(900000).size()";
    assert_eq!(evaluate(long, COST_OF_ALL_MAX), limit);
    let nested = "lists.range(200).all(a, lists.range(200).all(b, lists.range(200).all(c, true)))";
    let spent = format!("!{}", Fault::Spent);
    assert_eq!(evaluate(nested, 1000), spent);
    // No operand makes that good.
    assert_eq!(evaluate(&format!("({nested}) || true"), 1000), spent);
    let large = "lists.range(40).map(i, object.words.join('').replace('a', object.words.join('')\
                 .replace('b', object.words.join(''))).replace('c', object.words.join('').replace('d', \
                 object.words.join('')))).join('').size() > 0";
    assert_eq!(evaluate(large, 3000), spent);
    assert_eq!(
        evaluate("lists.range(100000000).size()", COST_OF_ALL_MAX),
        spent
    );
}

#[test]
fn deep_expressions_are_known_for_such() {
    let sum = |count: usize| Program::compile(&vec!["1"; count].join("+"), &environment()).unwrap();
    assert!(!is_deep(&[], [&sum(10)].into_iter()));
    assert!(is_deep(&[], [&sum(100)].into_iter()));
    // Variables may name each other.
    let variables: Vec<Variable> = (0..10)
        .map(|index| Variable {
            name: format!("v{index}"),
            program: Ok(sum(8)),
        })
        .collect();
    assert!(is_deep(&variables, [&sum(2)].into_iter()));
    let deep = sum(900);
    let outcome = on_deep_stack(|| {
        let mut evaluation = Evaluation::new(Given::default(), COST_OF_ALL_MAX);
        evaluation
            .evaluate(&deep)
            .unwrap()
            .to_json(&mut Room::new())
            .unwrap()
    });
    assert_eq!(outcome.unwrap(), json!(900));
}

#[test]
fn shallow_expressions_fit_on_a_small_stack() {
    let text = format!(
        "{}1{}",
        "[".repeat(12),
        "].map(x, x == 1 ? x : x)[0]".repeat(12)
    );
    let program = Program::compile(&text, &environment()).unwrap();
    assert!(program.depth() <= SHALLOW_DEPTH_MAX, "{}", program.depth());
    let small = std::thread::Builder::new().stack_size(1024 * 1024);
    let thread = small.spawn(move || {
        let mut evaluation = Evaluation::new(Given::default(), COST_OF_ALL_MAX);
        evaluation
            .evaluate(&program)
            .unwrap()
            .to_json(&mut Room::new())
            .unwrap()
    });
    assert_eq!(thread.unwrap().join().unwrap(), json!(1));
}
