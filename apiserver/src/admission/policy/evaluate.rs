//! What one policy says of one request, with one parameter: a decision for each validation, and
//! annotations for the audit log. Pure.

use super::conditions::{self, Failed};
use super::definition::{Annotation, Policy, Validation};
use super::scene::Scene;
use coracle_api::cel::evaluate::{Access, COST_OF_ALL_MAX, Evaluation, Given, Val};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// As upstream: a message that was evaluated and is longer is not told.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// How a validation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Holds,
    Fails,
    Error,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    pub ending: Ending,
    pub is_denied: bool,
    pub message: String,
    /// Empty for what upstream gives none.
    pub reason: String,
    pub elapsed: Duration,
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub decisions: Vec<Decision>,
    /// With the value, or why there is none.
    pub annotations: Vec<(String, Result<String, String>)>,
}

/// What a policy looks at.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    pub policy: &'a Policy,
    pub scene: &'a Scene,
    pub namespace: &'a Value,
    pub params: &'a Value,
    pub access: &'a (dyn Access + Sync),
}

impl<'a> Sight<'a> {
    pub fn given(self, has_access: bool) -> Given<'a> {
        let access = has_access.then_some(self.access as &dyn Access);
        let variables = &self.policy.variables;
        self.scene
            .given(self.namespace, self.params, variables, access)
    }

    /// Conditions see no namespace, as upstream.
    pub fn meets_conditions(self) -> Result<bool, String> {
        let namespace = &Value::Null;
        let given = Sight { namespace, ..self }.given(true);
        conditions::met(&self.policy.conditions, given)
    }

    /// Of a policy that could not be evaluated.
    pub fn unknown(self, message: String) -> Outcome {
        Outcome {
            decisions: vec![self.failed(message)],
            annotations: Vec::new(),
        }
    }

    fn failed(self, message: String) -> Decision {
        Decision {
            ending: Ending::Error,
            is_denied: !self.policy.ignores_failures,
            message,
            reason: String::new(),
            elapsed: Duration::ZERO,
        }
    }
}

/// All that the policy has.
pub fn evaluate(sight: Sight<'_>) -> Outcome {
    let only = |message: String| sight.unknown(message);
    match sight.meets_conditions() {
        Ok(true) => {}
        Ok(false) => return Outcome::default(),
        Err(why) => return only(why),
    }
    let mut decisions = match validated(sight) {
        Ok(decisions) => decisions,
        Err(why) => return only(why),
    };
    match annotated(sight) {
        Ok(annotations) => Outcome {
            decisions,
            annotations,
        },
        Err(why) => {
            decisions.clear();
            only(why)
        }
    }
}

/// The error is that the budget ran out.
fn validated(sight: Sight<'_>) -> Result<Vec<Decision>, String> {
    let validations = &sight.policy.validations;
    let mut evaluation = Evaluation::new(sight.given(true), COST_OF_ALL_MAX);
    let mut results = Vec::with_capacity(validations.len());
    for validation in validations {
        let begun = Instant::now();
        let result = match conditions::one(&validation.rule, &mut evaluation) {
            Ok(value) => Ok(matches!(value, Val::Bool(true))),
            Err(Failed::One(why)) => Err(why),
            Err(Failed::All(why)) => return Err(why),
        };
        results.push((result, begun.elapsed()));
    }
    let messages = messages(sight, evaluation.left());
    let each = validations.iter().zip(results).enumerate();
    let decisions = each.map(|(index, (validation, (result, elapsed)))| {
        let decision = match (result, &messages) {
            (Err(why), _) => sight.failed(why),
            (_, Err(why)) => sight.failed(format!("failed messageExpression: {why}")),
            (Ok(true), _) => Decision {
                ending: Ending::Holds,
                is_denied: false,
                message: String::new(),
                reason: String::new(),
                elapsed,
            },
            (Ok(false), Ok(messages)) => {
                let evaluated = messages.get(index).and_then(Option::as_deref);
                denied(validation, evaluated)
            }
        };
        Decision {
            elapsed,
            ..decision
        }
    });
    Ok(decisions.collect())
}

fn denied(validation: &Validation, evaluated: Option<&str>) -> Decision {
    let own = Some(validation.message.trim()).filter(|message| !message.is_empty());
    let message = evaluated.or(own).map_or_else(
        || format!("failed expression: {}", validation.rule.text.trim()),
        str::to_owned,
    );
    Decision {
        ending: Ending::Fails,
        is_denied: true,
        message,
        reason: validation.reason.clone().unwrap_or("Invalid".to_owned()),
        elapsed: Duration::ZERO,
    }
}

/// What message expressions give, where that can be told.
fn messages(sight: Sight<'_>, cost_max: u64) -> Result<Vec<Option<String>>, String> {
    let mut evaluation = Evaluation::new(sight.given(false), cost_max);
    let validations = sight.policy.validations.iter();
    let each = validations.map(|validation| {
        let Some(expression) = &validation.message_expression else {
            return Ok(None);
        };
        match conditions::one(expression, &mut evaluation) {
            Ok(value) => Ok(value.text().and_then(told)),
            Err(Failed::One(why)) => {
                tracing::debug!(policy = sight.policy.name, why, "a message has no text");
                Ok(None)
            }
            Err(Failed::All(why)) => Err(why),
        }
    });
    each.collect()
}

fn told(message: &str) -> Option<String> {
    let message = message.trim();
    let is_good =
        !message.is_empty() && message.len() <= MESSAGE_BYTES_MAX && !message.contains('\n');
    is_good.then(|| message.to_owned())
}

type Annotated = (String, Result<String, String>);

/// Without those that say nothing. The error is that the budget ran out.
fn annotated(sight: Sight<'_>) -> Result<Vec<Annotated>, String> {
    let mut evaluation = Evaluation::new(sight.given(false), COST_OF_ALL_MAX);
    let mut all = Vec::new();
    for annotation in &sight.policy.annotations {
        let value = match conditions::one(&annotation.value, &mut evaluation) {
            Ok(value) => text_of(annotation, &value),
            Err(Failed::One(_)) if sight.policy.ignores_failures => continue,
            Err(Failed::One(why)) => Err(why),
            Err(Failed::All(why)) => return Err(why),
        };
        if value.as_deref() != Ok("") {
            all.push((annotation.key.clone(), value));
        }
    }
    Ok(all)
}

fn text_of(annotation: &Annotation, value: &Val<'_>) -> Result<String, String> {
    match (value, value.text()) {
        (_, Some(text)) => Ok(text.trim().to_owned()),
        (Val::Null, _) => Ok(String::new()),
        (other, _) => {
            let (text, of) = (&annotation.value.text, other.type_name());
            Err(format!(
                "valueExpression '{text}' resulted in unsupported return type: {of}. Return type \
                 must be either string or null."
            ))
        }
    }
}
