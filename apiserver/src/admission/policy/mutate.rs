//! What policies change of an object: one after the other, each with what those before it made.
//!
//! Which ones concern a request is found out before any of them changes it. When one has, all of
//! admission that changes objects has a second turn, in which those policies are asked again that want
//! to be and that were asked before the last change.

use super::access::Asker;
use super::conditions::{self, Failed};
use super::definition::{Mutation, PatchKind, Policy};
use super::evaluate::{Ending, Sight};
use super::scene::{Scene, namespace_of};
use super::{Binding, Does, Policies, evaluated};
use crate::admission::Attributes;
use crate::admission::webhook::form::{Form, Shown};
use crate::metrics::policies::ErrorType;
use coracle_api::apply::Writer;
use coracle_api::cel::evaluate::{COST_OF_ALL_MAX, Evaluation};
use coracle_api::decode::FieldValidation;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::patch::{self, PatchError};
use coracle_api::resource::Part;
use coracle_api::status::Status;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

/// A policy as a binding has it asked: its name, the binding's, and the parameter's.
type Key = (String, String, Option<ObjectKey>);

/// What is kept of a request from its first turn to its second.
#[derive(Debug, Default)]
pub struct Turn {
    is_second: bool,
    has_changed: bool,
    /// Those that were asked, and want to be again when something changes.
    asked: BTreeSet<Key>,
    /// Those for which something has changed.
    due: BTreeSet<Key>,
    /// The object as the policies left it.
    left: Option<Object>,
}

impl Turn {
    /// Whether the object has changed; the turns that follow are no first ones.
    pub fn again(&mut self) -> bool {
        self.is_second = true;
        self.has_changed
    }

    fn changed(&mut self) {
        self.has_changed = true;
        self.due.append(&mut self.asked);
    }
}

/// A policy that concerns the request, with one parameter.
struct Invocation {
    policy: Arc<Policy>,
    binding: Arc<Binding>,
    form: Form,
    params: Value,
    key: Key,
}

/// Why the request is refused.
struct Denial {
    message: String,
    reason: &'static str,
}

/// What becomes of one patch.
enum Patched {
    Made(Object),
    /// What it asked for does not hold, or it asks for nothing.
    Unchanged,
}

/// Why there is no patch.
enum Fault {
    /// The policy says what comes of it.
    Policy(String),
    Internal(String),
}

impl Policies {
    /// One turn over the object; there is none on delete and connect.
    pub async fn mutate(
        &self,
        object: Option<&mut Object>,
        asked: &Attributes<'_>,
        turn: &mut Turn,
    ) -> Result<(), Status> {
        let Some(object) = object else {
            return Ok(());
        };
        if turn.is_second && turn.left.as_ref() != Some(&*object) {
            // Others have changed it since.
            turn.changed();
        }
        let mut denials = Vec::new();
        let invocations = self.invocations(object, asked, &mut denials).await;
        if !invocations.is_empty() {
            let namespace = namespace_of(self.view.as_ref(), asked)?;
            for invocation in invocations {
                let all = &mut denials;
                let invoked = self.invoke(&invocation, &namespace, object, asked, turn, all);
                invoked.await?;
            }
        }
        turn.left = Some(object.clone());
        match denials.is_empty() {
            true => Ok(()),
            false => Err(refusal(asked, object, &denials)),
        }
    }

    async fn invocations(
        &self,
        object: &Object,
        asked: &Attributes<'_>,
        denials: &mut Vec<Denial>,
    ) -> Vec<Invocation> {
        let mut found = Vec::new();
        for bound in self.lists.all(Does::Mutate).iter() {
            let policy = &bound.policy;
            let form = match self.concerned(policy, asked, Some(object)) {
                Ok(Some(form)) => form,
                Ok(None) => continue,
                Err(why) => {
                    let why = format!("failed to configure policy: {why}");
                    deny(policy, None, &why, "Forbidden", denials);
                    continue;
                }
            };
            for binding in &bound.bindings {
                match self.params(policy, binding, asked, Some(object)).await {
                    Ok(all) => found.extend(all.into_iter().map(|params| Invocation {
                        policy: Arc::clone(policy),
                        binding: Arc::clone(binding),
                        form,
                        key: (
                            policy.name.clone(),
                            binding.name.clone(),
                            params.as_ref().map(Object::key),
                        ),
                        params: params.map_or(Value::Null, Object::into_value),
                    })),
                    Err(why) => {
                        let why = format!("failed to configure binding: {why}");
                        deny(policy, Some(binding), &why, "Forbidden", denials);
                    }
                }
            }
        }
        found
    }

    async fn invoke(
        &self,
        invocation: &Invocation,
        namespace: &Value,
        object: &mut Object,
        asked: &Attributes<'_>,
        turn: &mut Turn,
        denials: &mut Vec<Denial>,
    ) -> Result<(), Status> {
        let Invocation {
            policy,
            binding,
            form,
            params,
            key,
        } = invocation;
        let access = Asker {
            authorizer: &self.authorizer,
            asked,
        };
        let converter = &self.converter;
        let shown = Shown::of(converter, *form, asked, Some(object)).await?;
        let scene = Scene::of(&shown, asked);
        let sight = Sight {
            policy,
            scene: &scene,
            namespace,
            params,
            access: &access,
        };
        let met = evaluated(policy, || sight.meets_conditions());
        match met.and_then(|met| met) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(why) => {
                deny(policy, Some(binding), &why, "Invalid", denials);
                return Ok(());
            }
        }
        if turn.is_second && !turn.due.contains(key) {
            return Ok(());
        }
        let mut has_changed = false;
        for mutation in &policy.mutations {
            let shown = Shown::of(converter, *form, asked, Some(object)).await?;
            let scene = Scene::of(&shown, asked);
            let Some(shown) = shown.object else {
                continue;
            };
            let sight = Sight {
                scene: &scene,
                ..sight
            };
            match self.made(binding, sight, mutation, &shown) {
                Ok(Patched::Unchanged) => {}
                Ok(Patched::Made(mut made)) => {
                    form.default(&mut made);
                    if made != shown {
                        has_changed = true;
                        form.take_back(converter, asked, made, object).await?;
                    }
                }
                Err(Fault::Policy(why)) => deny(policy, Some(binding), &why, "Invalid", denials),
                Err(Fault::Internal(why)) => return Err(Status::internal(why)),
            }
        }
        if has_changed {
            turn.changed();
        }
        if policy.is_asked_again {
            turn.asked.insert(key.clone());
        }
        Ok(())
    }

    /// One mutation, evaluated and counted.
    fn made(
        &self,
        binding: &Binding,
        sight: Sight<'_>,
        mutation: &Mutation,
        shown: &Object,
    ) -> Result<Patched, Fault> {
        let policy = sight.policy;
        let begun = Instant::now();
        let made = evaluated(policy, || patched(sight, mutation, shown));
        let made = made.unwrap_or_else(|why| Err(Fault::Policy(why)));
        let error = match &made {
            Ok(_) => ErrorType::None,
            Err(Fault::Policy(why) | Fault::Internal(why)) => ErrorType::of(Ending::Error, why),
        };
        let elapsed = begun.elapsed();
        self.counts
            .mutated(&policy.name, &binding.name, error, elapsed);
        made
    }
}

/// The object as one mutation would have it.
fn patched(sight: Sight<'_>, mutation: &Mutation, shown: &Object) -> Result<Patched, Fault> {
    let mut evaluation = Evaluation::new(sight.given(true), COST_OF_ALL_MAX);
    if let Err(why) = &mutation.patch.program {
        return Err(Fault::Policy(why.clone()));
    }
    let evaluated = conditions::one(&mutation.patch, &mut evaluation);
    let value = evaluated.map_err(|failed| match failed {
        Failed::One(why) | Failed::All(why) => Fault::Policy(why),
    })?;
    match mutation.kind {
        PatchKind::Apply => {
            let configuration = value.configuration().map_err(Fault::Policy)?;
            overlaid(sight.scene.form, configuration, shown)
        }
        PatchKind::Operations => {
            let operations = value.operations().map_err(Fault::Policy)?;
            operated(sight.scene.form, &Value::from(operations), shown)
        }
    }
}

fn overlaid(
    form: Form,
    mut configuration: Map<String, Value>,
    shown: &Object,
) -> Result<Patched, Fault> {
    for field in ["apiVersion", "kind"] {
        let value = shown.get(&[field]).cloned().unwrap_or_default();
        configuration.insert(field.to_owned(), value);
    }
    let (version, type_name) = (form.api_version(), form.type_name());
    let writer = Writer {
        kind: form.kind,
        type_name: &type_name,
        ..Writer::of(form.resource, &version, Part::Main, "", "", "")
    };
    let failed = |why: String| Fault::Policy(format!("error applying patch: {why}"));
    let merged = writer
        .overlay(shown.root(), &configuration)
        .map_err(failed)?;
    let merged = form.conform(Value::Object(merged), FieldValidation::Ignore);
    merged.map(Patched::Made).map_err(failed)
}

fn operated(form: Form, operations: &Value, shown: &Object) -> Result<Patched, Fault> {
    let bytes = serde_json::to_vec(operations).expect("operations are plain JSON");
    match patch::json_patch(&shown.to_value(), &bytes) {
        Ok(patched) => {
            let made = form.conform(patched, FieldValidation::Strict);
            made.map(Patched::Made).map_err(Fault::Internal)
        }
        // A test that does not hold takes its patch along, and nothing else.
        Err(PatchError::TestFailed(_)) => Ok(Patched::Unchanged),
        Err(error) => Err(Fault::Policy(format!("JSON Patch: {error}"))),
    }
}

fn deny(
    policy: &Policy,
    binding: Option<&Binding>,
    why: &str,
    reason: &'static str,
    denials: &mut Vec<Denial>,
) {
    if policy.ignores_failures {
        return;
    }
    let name = &policy.name;
    let message = match binding {
        Some(binding) => {
            format!(
                "policy '{name}' with binding '{}' denied request: {why}",
                binding.name
            )
        }
        None => format!("policy {name:?} denied request: {why}"),
    };
    denials.push(Denial { message, reason });
}

/// The first one is told, and all of them among the causes.
fn refusal(asked: &Attributes<'_>, object: &Object, denials: &[Denial]) -> Status {
    let mut status = asked.forbidden(Some(object), "admission request denied by policy");
    if let Some(first) = denials.first() {
        status.message.clone_from(&first.message);
        status.reason = first.reason.into();
    }
    let causes = denials.iter().map(|one| json!({ "message": one.message }));
    status.details["causes"] = causes.collect();
    status
}
