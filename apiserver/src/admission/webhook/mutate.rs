//! The mutating webhooks: one after the other, each with what those before it made of the object.
//!
//! When one of them changed the object, all of admission that changes objects has a second turn. In
//! it, the webhooks are asked again that want to be and that were asked before the last change.

use super::form::Shown;
use super::hook::Hook;
use super::select;
use super::{Does, Failure, Hooks, Webhooks, annotate};
use crate::admission::Attributes;
use crate::audit::policy::Level;
use coracle_api::decode::FieldValidation;
use coracle_api::object::Object;
use coracle_api::patch;
use coracle_api::status::Status;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::time::Instant;

/// As upstream's keys have it.
const PATCHED: &str = "patch.webhook.admission.k8s.io/";
const MUTATED: &str = "mutation.webhook.admission.k8s.io/";
const FAILED_OPEN: &str = "failed-open.mutation.webhook.admission.k8s.io/";

/// What is kept of a request from its first turn to its second.
#[derive(Debug, Default)]
pub struct Turn {
    hooks: Option<Hooks>,
    is_second: bool,
    has_changed: bool,
    /// Places of webhooks that were asked, and want to be again when something changes.
    asked: BTreeSet<usize>,
    /// Places of those for whom something has changed.
    due: BTreeSet<usize>,
    /// The object as the webhooks left it.
    left: Option<Object>,
}

impl Turn {
    /// Whether there is a second turn, for what webhooks changed or others did; begins it.
    pub fn again(&mut self, others_have: bool) -> bool {
        let again = (self.has_changed || others_have) && !self.is_second;
        self.is_second |= again;
        again
    }

    fn changed(&mut self) {
        self.has_changed = true;
        self.due.append(&mut self.asked);
    }

    fn round(&self) -> u8 {
        u8::from(self.is_second)
    }
}

/// A webhook's place among all, in one turn.
#[derive(Clone, Copy)]
struct Seat<'a> {
    hook: &'a Hook,
    index: usize,
    round: u8,
}

impl Seat<'_> {
    fn annotate(&self, asked: &Attributes<'_>, least: Level, prefix: &str, value: &str) {
        let Self { index, round, .. } = self;
        let key = format!("{prefix}round_{round}_index_{index}");
        annotate(asked, least, key, value);
    }
}

/// The value of an annotation, in upstream's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Note<'a> {
    configuration: &'a str,
    webhook: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'a str>,
}

impl Note<'_> {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("a note is plain JSON")
    }
}

impl Webhooks {
    /// One turn over the object; none on delete and connect.
    pub async fn mutate(
        &self,
        mut object: Option<&mut Object>,
        asked: &Attributes<'_>,
        turn: &mut Turn,
    ) -> Result<(), Status> {
        let hooks = turn
            .hooks
            .get_or_insert_with(|| self.lists.all(Does::Mutate));
        let hooks = Hooks::clone(hooks);
        if turn.is_second && turn.left.as_ref() != object.as_deref() {
            // The plugins of this process have changed it since.
            turn.changed();
        }
        for (index, hook) in hooks.iter().enumerate() {
            let found = select::form(self.view.as_ref(), hook, asked, object.as_deref())?;
            let Some(form) = found else {
                continue;
            };
            let shown = Shown::of(&self.converter, form, asked, object.as_deref()).await?;
            let is_due = !turn.is_second || turn.due.contains(&index);
            if !select::meets_conditions(&self.authorizer, hook, asked, &shown)? || !is_due {
                continue;
            }
            let seat = Seat {
                hook,
                index,
                round: turn.round(),
            };
            let has_changed = self.ask(seat, shown, object.as_deref_mut(), asked).await?;
            if has_changed {
                turn.changed();
            }
            if hook.is_asked_again {
                turn.asked.insert(index);
            }
        }
        turn.left = object.filter(|_| turn.has_changed).cloned();
        Ok(())
    }

    /// Asks one webhook, and tells whether it changed the object.
    async fn ask(
        &self,
        seat: Seat<'_>,
        shown: Shown,
        object: Option<&mut Object>,
        asked: &Attributes<'_>,
    ) -> Result<bool, Status> {
        let (hook, begun) = (seat.hook, Instant::now());
        let changed = self.changed(seat, shown, object, asked).await;
        let note = Note {
            configuration: &hook.configuration,
            webhook: &hook.name,
            mutated: Some(matches!(changed, Ok(true))),
            patch: None,
            patch_type: None,
        };
        seat.annotate(asked, Level::Metadata, MUTATED, &note.text());
        let settled = self.settle(Does::Mutate, hook, asked, begun, changed)?;
        if settled.is_none() {
            seat.annotate(asked, Level::Metadata, FAILED_OPEN, &hook.name);
        }
        Ok(settled.unwrap_or(false))
    }

    async fn changed(
        &self,
        seat: Seat<'_>,
        shown: Shown,
        object: Option<&mut Object>,
        asked: &Attributes<'_>,
    ) -> Result<bool, Failure> {
        let hook = seat.hook;
        let answer = self.call(Does::Mutate, hook, asked, &shown).await?;
        if answer.patch.is_empty() {
            return Ok(false);
        }
        let operations: Value = serde_json::from_slice(&answer.patch).unwrap_or_default();
        let Some(count) = operations.as_array().map(Vec::len) else {
            let why = "received undecodable patch in webhook response: it is no list of operations";
            return Err(Failure::NotCalled {
                why: why.to_owned(),
                code: 503,
            });
        };
        if count == 0 {
            return Ok(false);
        }
        let (Some(object), Some(before)) = (object, shown.object) else {
            let why = format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for \
                 this operation",
                hook.name
            );
            return Err(Failure::Refused(Status::internal(why)));
        };
        if !super::answer::is_json_patch(&answer.patch_type) {
            let why = format!("unsupported patch type {:?}", answer.patch_type);
            return Err(Failure::NotCalled { why, code: 400 });
        }
        let refused = |why: String| Failure::Refused(Status::internal(why));
        let patched = patch::json_patch(&before.to_value(), &answer.patch)
            .map_err(|error| refused(error.to_string()))?;
        let form = shown.form;
        let mut patched = form
            .conform(patched, FieldValidation::Ignore)
            .map_err(refused)?;
        let has_changed = patched != before;
        let note = Note {
            configuration: &hook.configuration,
            webhook: &hook.name,
            mutated: None,
            patch: Some(&operations),
            patch_type: Some(&answer.patch_type),
        };
        seat.annotate(asked, Level::Request, PATCHED, &note.text());
        if has_changed {
            form.default(&mut patched);
            let taken = form.take_back(&self.converter, asked, patched, object);
            taken.await.map_err(Failure::Refused)?;
        }
        Ok(has_changed)
    }
}
