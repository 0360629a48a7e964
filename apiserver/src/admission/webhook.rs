//! The plugins MutatingAdmissionWebhook and ValidatingAdmissionWebhook: what others, asked over
//! HTTPS, change of a write or say against it.
//!
//! Which webhooks there are is kept beside the requests, in step with the store: a request for
//! which there are none looks at one number. Mutating ones are asked one after the other, by the
//! names of their configurations and their places in them; validating ones all at once. Neither is
//! ever asked about configurations of admission themselves.

pub mod follow; // The webhooks that the store has.

mod answer; // What a webhook says. Pure.
mod call; // One webhook, asked.
mod conditions; // Expressions that narrow what a webhook is asked about.
pub mod form; // The object as a webhook sees it. Pure.
mod hook; // One webhook as it is configured. Pure.
mod judge; // All validating ones.
mod mutate; // All mutating ones, and those that are asked again.
pub mod review; // What a webhook is sent. Pure.
pub mod rules; // Which requests a rule means. Pure.
pub mod select; // Which webhooks a request concerns.

use super::lists::Lists;
use super::{Attributes, Operation};
use crate::audit::policy::Level;
use crate::authorize::Authorizer;
use crate::custom::convert::Converter;
use crate::metrics::webhooks::Counts;
use crate::tunnel::Tunnels;
use crate::view::View;
use crate::webhook::Caller;
use coracle_api::names;
use coracle_api::resource::SubresourceKind;
use coracle_api::status::Status;
use hook::Hook;
use std::sync::Arc;

pub use super::lists::Does;
pub use mutate::Turn;

const GROUP: &str = "admissionregistration.k8s.io";

impl Does {
    fn plural(self) -> &'static str {
        match self {
            Self::Mutate => "mutatingwebhookconfigurations",
            Self::Judge => "validatingwebhookconfigurations",
        }
    }

    /// As metrics call it.
    fn step(self) -> &'static str {
        match self {
            Self::Mutate => "admit",
            Self::Judge => "validating",
        }
    }
}

/// All webhooks of a kind, in the order in which they are asked.
type Hooks = Arc<[Arc<Hook>]>;

/// The webhooks, and what asks them.
pub struct Webhooks {
    view: Arc<dyn View>,
    authorizer: Arc<Authorizer>,
    lists: Lists<Arc<Hook>>,
    caller: Arc<Caller>,
    converter: Converter,
    counts: Arc<Counts>,
}

/// Why a webhook stops a request, unless its configuration says that it need not answer.
#[derive(Debug)]
enum Failure {
    /// It said nothing that can be used. The code is what metrics show.
    NotCalled { why: String, code: u16 },
    /// It said no.
    Denied(Status),
    /// It was not asked, or what it said cannot be done.
    Refused(Status),
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

impl Webhooks {
    pub fn new(view: Arc<dyn View>, authorizer: Arc<Authorizer>, tunnels: Tunnels) -> Self {
        let caller = Arc::new(Caller::new(Arc::clone(&view), tunnels));
        Self {
            view,
            authorizer,
            lists: Lists::default(),
            converter: Converter::new(Arc::clone(&caller)),
            caller,
            counts: Arc::default(),
        }
    }

    /// What brings objects from one version to another, over the same connections.
    pub fn converter(&self) -> Converter {
        self.converter.clone()
    }

    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// False for nearly every request of a cluster without webhooks, at the cost of one load.
    pub fn concerns(&self, does: Does, asked: &Attributes<'_>) -> bool {
        self.lists.has_any(does) && !is_exempt(asked)
    }
}

/// Configurations of admission would otherwise keep themselves from being mended. An eviction
/// deletes its pod without asking again, as upstream, where a log is no connection either.
fn is_exempt(asked: &Attributes<'_>) -> bool {
    let configures = asked.resource.group == GROUP
        && matches!(
            asked.resource.kind,
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        );
    let subresource = asked.resource.subresource(asked.subresource);
    let has_no_options =
        subresource.is_some_and(|one| one.kind == SubresourceKind::Connect && one.body.is_none());
    let is_inner = asked.operation == Operation::Delete && !asked.subresource.is_empty();
    configures || has_no_options || is_inner
}

/// Puts an annotation of a webhook into the audit record. A key that is none is dropped, as
/// upstream.
pub fn annotate(asked: &Attributes<'_>, least: Level, key: String, value: &str) {
    let is_key = key.matches('/').count() == 1 && names::qualified_name(&key).is_empty();
    let Some(trail) = asked.trail.filter(|_| is_key) else {
        return;
    };
    trail.annotate_at(least, key, value);
}

#[cfg(test)]
mod tests;
