//! What the server calls the kinds that quotas count.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coracle_client::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Kind;
use crate::discovery::{self, Resource};

/// How soon the server is asked again for a kind that it did not know.
pub(super) const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);
/// The same where it could not tell: quotas wait for the answer.
const FAILED_PERIOD: Duration = Duration::from_secs(1);

pub(super) struct Kinds {
    client: Client,
    known: Mutex<Known>,
}

/// What the server says to some kinds that were asked for.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those that it has, that are in namespaces and can be counted.
    pub(super) resources: BTreeMap<Kind, Resource>,
    /// Those of which it cannot tell whether it has them.
    pub(super) unknown: BTreeSet<Kind>,
}

#[derive(Default)]
struct Known {
    resources: BTreeMap<Kind, Resource>,
    /// When the server was last asked.
    asked: Option<Instant>,
    /// What it could not tell then.
    untold: Untold,
}

enum Untold {
    Everything,
    Groups(BTreeSet<String>),
}

impl Default for Untold {
    fn default() -> Self {
        Self::Groups(BTreeSet::new())
    }
}

impl Untold {
    fn is_about(&self, (group, _): &Kind) -> bool {
        match self {
            Self::Everything => true,
            Self::Groups(groups) => groups.contains(group),
        }
    }
}

impl Kinds {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    pub(super) async fn find(&self, wanted: &BTreeSet<Kind>) -> Found {
        let mut known = self.known.lock().await;
        if known.may_ask_for(wanted) {
            known.ask(&self.client).await;
        }
        known.found(wanted)
    }

    /// Asks again as soon as the kind is wanted: it is not what it was.
    pub(super) async fn forget(&self, kind: &Kind) {
        let mut known = self.known.lock().await;
        known.resources.remove(kind);
    }
}

impl Known {
    fn found(&self, wanted: &BTreeSet<Kind>) -> Found {
        let mut found = Found::default();
        for kind in wanted {
            if let Some(resource) = self.resources.get(kind) {
                found.resources.insert(kind.clone(), resource.clone());
            } else if self.untold.is_about(kind) {
                found.unknown.insert(kind.clone());
            }
        }
        found
    }

    fn may_ask_for(&self, wanted: &BTreeSet<Kind>) -> bool {
        let mut missing = wanted
            .iter()
            .filter(|kind| !self.resources.contains_key(*kind));
        missing.any(|kind| {
            let period = if self.untold.is_about(kind) {
                FAILED_PERIOD
            } else {
                DISCOVERY_PERIOD
            };
            self.asked.is_none_or(|asked| asked.elapsed() >= period)
        })
    }

    async fn ask(&mut self, client: &Client) {
        let discovered = discovery::discover(client).await;
        self.asked = Some(Instant::now());
        let discovered = match discovered {
            Ok(discovered) => discovered,
            Err(error) => {
                tracing::debug!(%error, "cannot discover what quotas may count");
                self.untold = Untold::Everything;
                return;
            }
        };
        if let Some(error) = discovered.failure_text() {
            tracing::debug!(error, "cannot discover all that quotas may count");
        }
        let failed = discovered.failures.keys();
        self.untold = Untold::Groups(failed.map(|version| group_of(version)).collect());
        for resource in discovered.resources {
            let mut verbs = ["create", "delete", "list", "watch"].iter();
            if resource.namespaced && verbs.all(|verb| resource.supports(verb)) {
                let kind = (resource.api.group.clone(), resource.api.plural.clone());
                self.resources.insert(kind, resource);
            }
        }
    }
}

/// Of `apps/v1`, `apps`; `v1` is of the core group.
fn group_of(group_version: &str) -> String {
    let group = group_version.rsplit_once('/').map(|(group, _)| group);
    group.unwrap_or_default().to_owned()
}
