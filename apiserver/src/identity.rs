//! Says in a Lease that this API server is there, and deletes those of servers that are gone.
//!
//! Names, labels and times of the Lease are upstream's, and it is looked at as often: what somebody
//! deleted or changed is back soon. Upstream also writes it each time; here that is done only when
//! a quarter of its duration is over, as each write costs a flash card its life. Its reader may
//! count on the duration alone.

use crate::bootstrap::{ReconcileError, refused, send};
use crate::config::Clock;
use crate::registry::Registry;
use crate::server::InProcess;
use crate::view;
use coracle_api::names;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::timestamp::{format_micro_time, parse};
use http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use ring::digest::{SHA256, digest};
use serde_json::json;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Upstream's figures, in seconds.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const COLLECT_EVERY: Duration = Duration::from_secs(3600);
const DURATION_SECONDS: i64 = 3600;
const RENEW_AFTER: SignedDuration = SignedDuration::from_secs(DURATION_SECONDS / 4);

const NAMESPACE: &str = "kube-system";
const COMPONENT: &str = "kube-apiserver";
const COMPONENT_LABEL: &str = "apiserver.kubernetes.io/identity";
const HOST_LABEL: &str = "kubernetes.io/hostname";
/// How much of the hash a name has.
const HASH_BYTES: usize = 16;

/// Who this server is; another one after each start.
#[derive(Debug)]
pub struct Identity {
    host_name: String,
    name: String,
    holder: String,
}

impl Identity {
    pub fn new(host_name: &str) -> Self {
        let name = lease_name(host_name);
        Self {
            host_name: host_name.to_owned(),
            holder: format!("{name}_{}", uuid::Uuid::new_v4()),
            name,
        }
    }

    /// The Lease as it is to be written, when it is not well as it is.
    fn due(&self, found: Option<&Object>, now: Timestamp) -> Option<Object> {
        let mut lease = found.cloned().unwrap_or_else(|| {
            let mut lease = Object::new("coordination.k8s.io/v1", "Lease");
            lease.set(&["metadata", "name"], self.name.as_str().into());
            lease.set(&["metadata", "namespace"], NAMESPACE.into());
            lease
        });
        let renewed = renewed(&lease);
        // The clock may have been set to an earlier time, too.
        let is_fresh = renewed.is_some_and(|at| now.duration_since(at).abs() < RENEW_AFTER);
        lease.set(&["spec", "holderIdentity"], self.holder.as_str().into());
        lease.set(&["spec", "leaseDurationSeconds"], DURATION_SECONDS.into());
        lease.set(&["metadata", "labels", COMPONENT_LABEL], COMPONENT.into());
        // A name that cannot be a label is no reason to be silent.
        if names::label_value(&self.host_name).is_empty() {
            let host_name = self.host_name.as_str().into();
            lease.set(&["metadata", "labels", HOST_LABEL], host_name);
        }
        if is_fresh && found == Some(&lease) {
            return None;
        }
        lease.set(&["spec", "renewTime"], format_micro_time(now).into());
        Some(lease)
    }
}

/// Upstream's: the same for every start on a machine, and no other component's.
fn lease_name(host_name: &str) -> String {
    let mut hashed = Vec::new();
    for part in [host_name, COMPONENT] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        hashed.extend_from_slice(&length.to_be_bytes());
        hashed.extend_from_slice(part.as_bytes());
    }
    let hash = digest(&SHA256, &hashed);
    format!("apiserver-{}", base32(&hash.as_ref()[..HASH_BYTES]))
}

/// In small letters and without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const BITS: usize = 5;
    let bit = |place: usize| {
        let byte = bytes.get(place / 8).copied().unwrap_or(0);
        usize::from(byte >> (7 - place % 8) & 1)
    };
    let letter = |at: usize| (at..at + BITS).fold(0, |value, place| value << 1 | bit(place));
    let places = (0..bytes.len() * 8).step_by(BITS);
    places.map(|at| char::from(LETTERS[letter(at)])).collect()
}

fn renewed(lease: &Object) -> Option<Timestamp> {
    parse(lease.str(&["spec", "renewTime"]))
}

/// As upstream: one that does not say until when it counts does not count.
fn is_expired(lease: &Object, now: Timestamp) -> bool {
    let seconds = lease.i64(&["spec", "leaseDurationSeconds"]);
    let left = renewed(lease).zip(seconds).map(|(renewed, seconds)| {
        SignedDuration::from_secs(seconds).saturating_sub(now.duration_since(renewed))
    });
    left.is_none_or(|left| left < SignedDuration::ZERO)
}

/// Holds the Lease until `stop`, then deletes it.
pub async fn run(
    identity: Identity,
    registry: Registry,
    api: InProcess,
    clock: Clock,
    stop: CancellationToken,
) {
    let holding = Holding {
        identity,
        registry,
        api,
    };
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut collections = tokio::time::interval(COLLECT_EVERY);
    collections.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let done = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ = looks.tick() => holding.hold(clock()).await,
            _ = collections.tick() => holding.collect(clock()).await,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "a Lease of an API server was not written");
        }
    }
    if let Err(error) = holding.let_go().await {
        tracing::warn!(%error, "the Lease of this API server was not deleted");
    }
}

struct Holding {
    identity: Identity,
    registry: Registry,
    api: InProcess,
}

impl Holding {
    fn found(&self) -> Option<Object> {
        let stored = self.registry.get(row(), NAMESPACE, &self.identity.name);
        Some(stored.ok()?.object)
    }

    async fn hold(&self, now: Timestamp) -> Result<(), ReconcileError> {
        let found = self.found();
        let Some(lease) = self.identity.due(found.as_ref(), now) else {
            return Ok(());
        };
        let (method, path) = match found {
            Some(_) => (Method::PUT, path(lease.name())),
            None => (Method::POST, path("")),
        };
        self.ask(method, &path, &lease).await
    }

    /// Deletes what other servers left behind, in the state in which it was found to be over.
    async fn collect(&self, now: Timestamp) -> Result<(), ReconcileError> {
        let snapshot = self.registry.snapshot(row());
        let prefix = crate::registry::prefix(NAMESPACE);
        let entries = snapshot.range_from("", &prefix);
        let leases = entries.filter_map(|(_, entry)| view::decode(&entry.value));
        let is_over = |lease: &Object| {
            lease.label(COMPONENT_LABEL) == Some(COMPONENT)
                && lease.name() != self.identity.name
                && is_expired(lease, now)
        };
        let over: Vec<Object> = leases.filter(is_over).collect();
        for lease in over {
            self.delete(&lease).await?;
            tracing::info!(lease = lease.name(), "an API server that is gone");
        }
        Ok(())
    }

    async fn let_go(&self) -> Result<(), ReconcileError> {
        let found = self.found().filter(|lease| {
            let holder = lease.get(&["spec", "holderIdentity"]);
            holder.is_some_and(|holder| *holder == self.identity.holder)
        });
        match found {
            Some(lease) => self.delete(&lease).await,
            None => Ok(()),
        }
    }

    async fn delete(&self, lease: &Object) -> Result<(), ReconcileError> {
        let mut options = Object::new("v1", "DeleteOptions");
        let state = json!({ "uid": lease.uid(), "resourceVersion": lease.resource_version() });
        options.set(&["preconditions"], state);
        self.ask(Method::DELETE, &path(lease.name()), &options)
            .await
    }

    /// Whoever was faster is seen at the next look.
    async fn ask(&self, method: Method, path: &str, body: &Object) -> Result<(), ReconcileError> {
        let (status, answer) = send(&self.api, method.clone(), path, Some(body)).await?;
        let is_overtaken = matches!(status, StatusCode::CONFLICT | StatusCode::NOT_FOUND);
        if status.is_success() || is_overtaken {
            return Ok(());
        }
        Err(refused(method, path, status, &answer))
    }
}

fn row() -> &'static Resource {
    coracle_api::catalogue::find("coordination.k8s.io", "v1", "leases")
        .expect("the catalogue has the kinds of coordination.k8s.io")
}

/// Of all Leases without a name.
fn path(name: &str) -> String {
    let all = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    if name.is_empty() {
        all
    } else {
        format!("{all}/{name}")
    }
}

#[cfg(test)]
mod tests;
