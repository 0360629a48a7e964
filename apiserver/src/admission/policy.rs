//! The plugins MutatingAdmissionPolicy and ValidatingAdmissionPolicy: what policies written as
//! expressions change of a write, and say of it.
//!
//! Which policies there are, compiled, is kept beside the requests, in step with the store: a request
//! for which there are none looks at one number. A policy counts once it has a binding. Neither is
//! ever asked about policies and bindings themselves. What an expression may cost is bounded, and
//! those that loop are evaluated where no other request waits for the thread.

pub mod follow; // The policies that the store has.

mod access; // What expressions may ask of the authorizer.
mod binding; // Where a policy applies. Pure.
mod conditions; // Expressions that narrow what a policy is asked about. Pure.
mod constraints; // Which requests a policy or a binding concerns.
mod definition; // One policy as it is written. Pure.
mod evaluate; // What one policy says of one request. Pure.
mod judge; // What all of them say, and what becomes of it.
mod mutate; // What all of them change.
mod params; // Objects that a binding gives its policy.
mod scene; // What expressions see of a request.

use super::Attributes;
use super::lists::Lists;
use crate::authorize::Authorizer;
use crate::custom::convert::Converter;
use crate::metrics::policies::Counts;
use crate::registry::Registry;
use crate::view::View;
use binding::Binding;
use coracle_api::cel::evaluate::on_deep_stack;
use coracle_api::custom::Kinds;
use definition::Policy;
use std::sync::{Arc, OnceLock};
use tokio::runtime::{Handle, RuntimeFlavor};

pub use super::lists::Does;
pub use evaluate::Ending;
pub use mutate::Turn;

const GROUP: &str = "admissionregistration.k8s.io";

impl Does {
    fn policies(self) -> &'static str {
        match self {
            Self::Mutate => "mutatingadmissionpolicies",
            Self::Judge => "validatingadmissionpolicies",
        }
    }

    fn bindings(self) -> &'static str {
        match self {
            Self::Mutate => "mutatingadmissionpolicybindings",
            Self::Judge => "validatingadmissionpolicybindings",
        }
    }
}

/// A policy with its bindings, of which there is one at least, by their names.
#[derive(Debug)]
struct Bound {
    policy: Arc<Policy>,
    bindings: Vec<Arc<Binding>>,
}

/// All policies of a kind, by their names.
type All = Arc<[Bound]>;

/// The policies, and what they look at beside a request.
pub struct Policies {
    view: Arc<dyn View>,
    authorizer: Arc<Authorizer>,
    converter: Converter,
    lists: Lists<Bound>,
    counts: Arc<Counts>,
    /// Whence the kinds are that parameters may be of; the built-in ones until it is there.
    registry: OnceLock<Registry>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policies").finish_non_exhaustive()
    }
}

impl Policies {
    pub fn new(view: Arc<dyn View>, authorizer: Arc<Authorizer>, converter: Converter) -> Self {
        Self {
            view,
            authorizer,
            converter,
            lists: Lists::default(),
            counts: Arc::default(),
            registry: OnceLock::new(),
        }
    }

    /// Parameters may be of all kinds that are served.
    pub fn look_up_in(&self, registry: Registry) {
        drop(self.registry.set(registry));
    }

    fn kinds(&self) -> Arc<Kinds> {
        self.registry
            .get()
            .map_or_else(Arc::default, Registry::kinds)
    }

    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// False for every request of a cluster without policies, at the cost of one load.
    pub fn concerns(&self, does: Does, asked: &Attributes<'_>) -> bool {
        self.lists.has_any(does) && !is_exempt(asked)
    }
}

/// Policies would otherwise keep themselves from being mended.
fn is_exempt(asked: &Attributes<'_>) -> bool {
    asked.resource.group == GROUP
        && matches!(
            asked.resource.plural,
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        )
}

/// Of a policy's evaluation, which may take long or recurse deeply.
fn evaluated<T: Send>(policy: &Policy, act: impl FnOnce() -> T + Send) -> Result<T, String> {
    let deep =
        |act| on_deep_stack(act).map_err(|error| format!("no thread to evaluate it on: {error}"));
    match (policy.is_deep, policy.is_slow) {
        (true, _) => aside(|| deep(act)),
        (false, true) => Ok(aside(act)),
        (false, false) => Ok(act()),
    }
}

/// Calls `act`, which may take long: what else the worker has to do goes to another thread.
fn aside<T>(act: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() != RuntimeFlavor::CurrentThread);
    if has_others {
        tokio::task::block_in_place(act)
    } else {
        act()
    }
}

#[cfg(test)]
mod tests;
