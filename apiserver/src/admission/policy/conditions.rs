//! Expressions that narrow what a policy is asked about: all must hold. Pure.
//!
//! One that does not hold lets the request pass unasked, whatever becomes of the others.

use super::definition::Expression;
use coracle_api::cel::evaluate::{COST_OF_CONDITIONS_MAX, Evaluation, Fault, Given, Val};
use coracle_api::status::aggregate;

/// Whether a request meets all conditions; the error is why nobody knows.
pub fn met(conditions: &[Expression], given: Given<'_>) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let mut evaluation = Evaluation::new(given, COST_OF_CONDITIONS_MAX);
    let mut results = Vec::new();
    for condition in conditions {
        match one(condition, &mut evaluation) {
            Err(Failed::All(why)) => return Err(why),
            Err(Failed::One(why)) => results.push(Err(why)),
            Ok(value) => results.push(Ok(!matches!(value, Val::Bool(false)))),
        }
    }
    if results.contains(&Ok(false)) {
        return Ok(false);
    }
    let errors: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() {
        Ok(true)
    } else {
        Err(aggregate(&errors))
    }
}

/// Why an expression gave nothing.
#[derive(Debug)]
pub enum Failed {
    One(String),
    /// No other one is evaluated after it.
    All(String),
}

/// Evaluates one expression, with what goes wrong in upstream's words.
pub fn one<'a>(
    expression: &'a Expression,
    evaluation: &mut Evaluation<'a>,
) -> Result<Val<'a>, Failed> {
    let program = match &expression.program {
        Ok(program) => program,
        Err(why) => return Err(Failed::One(format!("compilation error: {why}"))),
    };
    evaluation.evaluate(program).map_err(|fault| match fault {
        Fault::Spent => Failed::All(fault.to_string()),
        fault => {
            let text = &expression.text;
            Failed::One(format!("expression '{text}' resulted in error: {fault}"))
        }
    })
}
