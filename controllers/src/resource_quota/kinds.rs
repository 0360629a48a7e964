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

pub(super) struct Kinds {
    client: Client,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    resources: BTreeMap<Kind, Resource>,
    /// When the server was last asked.
    asked: Option<Instant>,
}

impl Kinds {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// Those of the kinds that the server has, that are in namespaces and can be counted.
    pub(super) async fn find(&self, wanted: &BTreeSet<Kind>) -> BTreeMap<Kind, Resource> {
        let mut known = self.known.lock().await;
        let is_known = |known: &Known| wanted.iter().all(|kind| known.resources.contains_key(kind));
        if !is_known(&known) && known.may_ask() {
            known.ask(&self.client).await;
        }
        let found = known.resources.iter();
        let found = found.filter(|(kind, _)| wanted.contains(*kind));
        found
            .map(|(kind, resource)| (kind.clone(), resource.clone()))
            .collect()
    }

    /// Asks again as soon as the kind is wanted: it is not what it was.
    pub(super) async fn forget(&self, kind: &Kind) {
        let mut known = self.known.lock().await;
        known.resources.remove(kind);
    }
}

impl Known {
    fn may_ask(&self) -> bool {
        self.asked
            .is_none_or(|asked| asked.elapsed() >= DISCOVERY_PERIOD)
    }

    async fn ask(&mut self, client: &Client) {
        let discovered = match discovery::discover(client).await {
            Ok(discovered) => discovered,
            Err(error) => {
                tracing::debug!(%error, "cannot discover what quotas may count");
                return;
            }
        };
        self.asked = Some(Instant::now());
        for resource in discovered.resources {
            let mut verbs = ["create", "delete", "list", "watch"].iter();
            if resource.namespaced && verbs.all(|verb| resource.supports(verb)) {
                let kind = (resource.api.group.clone(), resource.api.plural.clone());
                self.resources.insert(kind, resource);
            }
        }
    }
}
