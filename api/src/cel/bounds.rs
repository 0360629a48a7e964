//! Bounds on what an expression may cost to read, whoever wrote it, and a stack to read it on.
//!
//! Parser, checker and evaluator recurse: with each bracket, and with each operator of a chain as
//! `1+1+1` or `a.b.c`, whose tree leans to the left. So operators are counted before anything
//! recurses, and what does runs on a thread whose stack is made for as many.

use std::io;
use std::thread;

/// As upstream: an expression of more characters is not read.
const CHARACTERS_MAX: usize = 100_000;
/// Brackets nest no deeper, nor choices. Upstream reads 250, which nobody writes.
pub const DEPTH_MAX: u16 = 96;
/// Operators and brackets in all, those in strings included: an upper bound of the depth of the
/// tree. A thousand conditions have as many.
const OPERATORS_MAX: usize = 4096;
/// For both of the above in a build that is not optimized: 160 KB a bracket, 2.5 KB an operator.
/// Who evaluates takes 40 KB an operator there, and has to hold to fewer. Pages that nobody touches
/// take no memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Why an expression is not even read.
pub fn problem(text: &str) -> Option<String> {
    let characters = text.chars().count();
    if characters > CHARACTERS_MAX {
        return Some(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {characters}, \
             limit {CHARACTERS_MAX}"
        ));
    }
    let operators = operators(text);
    (operators > OPERATORS_MAX).then(|| {
        format!(
            "ERROR: <input>:-1:0: expression has too many operators: {operators}, limit \
             {OPERATORS_MAX}"
        )
    })
}

/// Of what nests deeper, which the parser counts.
pub fn too_deep() -> String {
    format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {DEPTH_MAX}")
}

/// `&&`, `||` and commas are none: the parser balances those, and lists are flat.
pub fn operators(text: &str) -> usize {
    let signs = text.bytes().filter(|byte| b".+-*/%<>=![({?".contains(byte));
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    signs.count() + words.filter(|word| *word == "in").count()
}

/// Runs what recurses as deep as an expression within the bounds does, dropping its tree included.
/// Fails where there is no memory for a stack.
pub fn on_deep_stack<T: Send>(act: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let named = thread::Builder::new().name("expression".to_owned());
        let thread = named.stack_size(STACK_BYTES).spawn_scoped(scope, act)?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
