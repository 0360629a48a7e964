//! Which resource an object of a named kind is found under, and whether it has the subresource
//! `scale`. Custom resources too: the server's discovery is asked.
//!
//! Answers are kept for half a minute, as upstream keeps them.

use std::collections::HashMap;
use std::time::Duration;

use coracle_client::Client;
use coracle_client::clock::{Clock, Instant};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::core::ApiResource;
use parking_lot::Mutex;

use crate::refusal;

const KEPT_FOR: Duration = Duration::from_secs(30);
/// More kinds than that are not scaled in one cluster; what is kept is dropped then.
const KINDS_MAX: usize = 256;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error("no matches for kind {kind:?} in version {version:?}")]
    NoKind { kind: String, version: String },
    #[error("no matches for kind {kind:?} in group {group:?}")]
    NoKindInGroup { kind: String, group: String },
    #[error("cannot find the kind")]
    Discover(#[source] kube::Error),
}

impl FindError {
    /// What users are told of it: where the server refused, its own words.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Discover(source) => refusal::message(source),
            other => other.to_string(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) resource: ApiResource,
    pub(crate) has_scale: bool,
}

impl Found {
    /// As messages name it: `deployments.apps`.
    pub(crate) fn qualified(&self) -> String {
        let ApiResource { group, plural, .. } = &self.resource;
        match group.as_str() {
            "" => plural.clone(),
            group => format!("{plural}.{group}"),
        }
    }
}

/// What was found, by version and kind, and when.
type Known = HashMap<(String, String), (Found, Instant)>;

pub(crate) struct Kinds {
    client: Client,
    clock: Clock,
    known: Mutex<Known>,
}

impl Kinds {
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            known: Mutex::default(),
        }
    }

    /// The kind in exactly this version.
    pub(crate) async fn find(&self, version: &str, kind: &str) -> Result<Found, FindError> {
        let key = (version.to_owned(), kind.to_owned());
        let now = self.clock.monotonic();
        let known = self.known.lock().get(&key).cloned();
        if let Some((found, since)) = known
            && now.duration_since(since) < KEPT_FOR
        {
            return Ok(found);
        }
        let found = self.ask(version, kind).await?;
        let mut known = self.known.lock();
        if known.len() >= KINDS_MAX {
            known.clear();
        }
        known.insert(key, (found.clone(), now));
        Ok(found)
    }

    /// The kind in this version, or else in any other of its group.
    pub(crate) async fn find_in_group(
        &self,
        version: &str,
        kind: &str,
    ) -> Result<Found, FindError> {
        let Some((group, _)) = version.split_once('/') else {
            return self.find("v1", kind).await.map_err(|error| match error {
                FindError::NoKind { .. } => no_kind_in_group("", kind),
                other => other,
            });
        };
        match self.find(version, kind).await {
            Err(FindError::NoKind { .. }) => {}
            answer => return answer,
        }
        let groups = self.client.list_api_groups().await;
        let groups = groups.map_err(FindError::Discover)?.groups;
        let named = groups.into_iter().find(|one| one.name == group);
        for other in named.into_iter().flat_map(|one| one.versions) {
            if other.group_version == version {
                continue;
            }
            match self.find(&other.group_version, kind).await {
                Err(FindError::NoKind { .. }) => {}
                answer => return answer,
            }
        }
        Err(no_kind_in_group(group, kind))
    }

    async fn ask(&self, version: &str, kind: &str) -> Result<Found, FindError> {
        let (list, group) = match version.split_once('/') {
            Some((group, _)) => (self.client.list_api_group_resources(version).await, group),
            None => (self.client.list_core_api_resources(version).await, ""),
        };
        let unknown = || FindError::NoKind {
            kind: kind.to_owned(),
            version: version.to_owned(),
        };
        let served = match list {
            Ok(list) => list.resources,
            Err(error) if is_absent(&error) => return Err(unknown()),
            Err(error) => return Err(FindError::Discover(error)),
        };
        let mut main = served.iter().filter(|one| !one.name.contains('/'));
        let resource = main.find(|one| one.kind == kind).ok_or_else(unknown)?;
        let scale = format!("{}/scale", resource.name);
        let is_scale = |one: &APIResource| one.name == scale && one.kind == "Scale";
        Ok(Found {
            has_scale: served.iter().any(is_scale),
            resource: ApiResource {
                group: group.to_owned(),
                version: version.rsplit('/').next().unwrap_or_default().to_owned(),
                api_version: version.to_owned(),
                kind: kind.to_owned(),
                plural: resource.name.clone(),
            },
        })
    }
}

/// Of a version that is not served there need not be a `Status`.
fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn no_kind_in_group(group: &str, kind: &str) -> FindError {
    FindError::NoKindInGroup {
        kind: kind.to_owned(),
        group: group.to_owned(),
    }
}
