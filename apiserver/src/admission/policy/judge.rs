//! What all policies say of a request, and what becomes of it: a refusal, warnings, and lines of the
//! audit log.

use super::access::Asker;
use super::binding::{Action, Binding};
use super::definition::Policy;
use super::evaluate::{Decision, Ending, Outcome, Sight, evaluate};
use super::scene::{Scene, namespace_of};
use super::{Bound, Does, Policies, evaluated};
use crate::admission::Attributes;
use crate::admission::webhook::annotate;
use crate::admission::webhook::form::{Form, Shown};
use crate::audit::policy::Level;
use crate::metrics::policies::{Ended, ErrorType};
use coracle_api::object::Object;
use coracle_api::status::Status;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// As upstream: what is longer is cut off.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;

/// The value of an annotation, in upstream's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: Vec<&'static str>,
}

/// Why a request is refused.
struct Denial {
    message: String,
    reason: String,
}

/// One request, as it goes from policy to policy.
struct Hearing<'a> {
    policies: &'a Policies,
    asked: &'a Attributes<'a>,
    object: Option<&'a Object>,
    /// The forms that were asked for so far.
    scenes: Vec<Arc<Scene>>,
    namespace: Option<Value>,
    /// Of several refusals the first is told.
    denial: Option<Denial>,
}

impl Policies {
    /// Evaluates all that the request concerns. `object` is the new state.
    pub async fn judge(
        &self,
        object: Option<&Object>,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let mut hearing = Hearing {
            policies: self,
            asked,
            object,
            scenes: Vec::new(),
            namespace: None,
            denial: None,
        };
        for bound in self.lists.all(Does::Judge).iter() {
            hearing.hear(bound).await?;
        }
        match hearing.denial {
            None => Ok(()),
            Some(denial) => Err(refusal(asked, object, denial)),
        }
    }
}

impl Hearing<'_> {
    async fn hear(&mut self, bound: &Bound) -> Result<(), Status> {
        let policy = &*bound.policy;
        let form = match self.policies.concerned(policy, self.asked, self.object) {
            Ok(None) => return Ok(()),
            Ok(Some(form)) => form,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let mut notes = BTreeMap::new();
        for binding in &bound.bindings {
            let params = self
                .policies
                .params(policy, binding, self.asked, self.object);
            match params.await {
                Err(why) => self.misconfigured(policy, Some(binding), &why),
                Ok(all) => {
                    for params in all {
                        let evaluated = self.evaluate(policy, binding, form, params, &mut notes);
                        evaluated.await?;
                    }
                }
            }
        }
        for (key, values) in notes {
            let key = format!("{}/{key}", policy.name);
            annotate(self.asked, Level::Metadata, key, &values.join(", "));
        }
        Ok(())
    }

    async fn scene(&mut self, form: Form) -> Result<Arc<Scene>, Status> {
        if let Some(known) = self.scenes.iter().find(|known| known.form == form) {
            return Ok(Arc::clone(known));
        }
        let converter = &self.policies.converter;
        let shown = Shown::of(converter, form, self.asked, self.object).await?;
        let scene = Arc::new(Scene::of(&shown, self.asked));
        self.scenes.push(Arc::clone(&scene));
        Ok(scene)
    }

    async fn evaluate(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        form: Form,
        params: Option<Object>,
        notes: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), Status> {
        let namespace = match self.namespace.take() {
            Some(known) => known,
            None => namespace_of(self.policies.view.as_ref(), self.asked)?,
        };
        let scene = self.scene(form).await?;
        let params = params.map_or(Value::Null, Object::into_value);
        let access = Asker {
            authorizer: &self.policies.authorizer,
            asked: self.asked,
        };
        let sight = Sight {
            policy,
            scene: &scene,
            namespace: &namespace,
            params: &params,
            access: &access,
        };
        let outcome = evaluated(policy, || evaluate(sight));
        let outcome = outcome.unwrap_or_else(|why| sight.unknown(why));
        self.namespace = Some(namespace);
        self.settle(policy, binding, outcome, notes);
        Ok(())
    }

    fn settle(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        outcome: Outcome,
        notes: &mut BTreeMap<String, Vec<String>>,
    ) {
        for (index, decision) in outcome.decisions.iter().enumerate() {
            self.act(policy, binding, index, decision);
        }
        for (key, value) in outcome.annotations {
            match value {
                Ok(value) => {
                    let values = notes.entry(key).or_default();
                    let value = cut(value);
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Err(why) => {
                    let error = ErrorType::of(Ending::Error, &why);
                    self.count(policy, binding, error, "deny", Duration::ZERO);
                    self.deny(policy, Some(binding), &why, "");
                }
            }
        }
    }

    fn act(&mut self, policy: &Policy, binding: &Binding, index: usize, decision: &Decision) {
        let error = ErrorType::of(decision.ending, &decision.message);
        let count = |this: &Self, action: &'static str| {
            this.count(policy, binding, error, action, decision.elapsed);
        };
        if !decision.is_denied {
            if decision.ending == Ending::Error {
                count(self, "allow");
            }
            return;
        }
        for action in &binding.actions {
            match action {
                Action::Deny => {
                    self.deny(policy, Some(binding), &decision.message, &decision.reason);
                    count(self, "deny");
                }
                Action::Audit => {
                    self.audit(policy, binding, index, &decision.message);
                    count(self, "audit");
                }
                Action::Warn => {
                    let text = format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, decision.message
                    );
                    self.asked.warn([text]);
                    count(self, "warn");
                }
            }
        }
    }

    fn count(
        &self,
        policy: &Policy,
        binding: &Binding,
        error: ErrorType,
        action: &'static str,
        elapsed: Duration,
    ) {
        self.policies.counts.judged(&Ended {
            policy: &policy.name,
            binding: &binding.name,
            error,
            action,
            elapsed,
        });
    }

    fn audit(&self, policy: &Policy, binding: &Binding, index: usize, message: &str) {
        let failure = Failure {
            message,
            policy: &policy.name,
            binding: &binding.name,
            expression_index: index,
            validation_actions: binding.actions.iter().map(|one| one.name()).collect(),
        };
        let text = serde_json::to_string(&[failure]).expect("a failure is plain JSON");
        // As Go writes what a browser could take for HTML.
        let text = text
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026");
        annotate(self.asked, Level::Metadata, FAILURE.to_owned(), &text);
    }

    /// A policy that cannot be asked at all.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if policy.ignores_failures {
            return;
        }
        let of = if binding.is_some() {
            "binding"
        } else {
            "policy"
        };
        self.deny(
            policy,
            binding,
            &format!("failed to configure {of}: {why}"),
            "",
        );
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str, reason: &str) {
        let by = binding.map_or_else(String::new, |one| format!(" with binding '{}'", one.name));
        let name = &policy.name;
        self.denial.get_or_insert_with(|| Denial {
            message: format!("ValidatingAdmissionPolicy '{name}'{by} denied request: {why}"),
            reason: match reason {
                "" => "Invalid".to_owned(),
                reason => reason.to_owned(),
            },
        });
    }
}

fn cut(mut text: String) -> String {
    if text.len() > ANNOTATION_BYTES_MAX {
        let mut end = ANNOTATION_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

fn refusal(asked: &Attributes<'_>, object: Option<&Object>, denial: Denial) -> Status {
    let mut status = asked.forbidden(object, &denial.message);
    status.code = match denial.reason.as_str() {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.reason = denial.reason.into();
    status.details["causes"] = json!([{ "message": denial.message }]);
    status
}
