//! Establishes definitions, and takes those apart that are to go: their objects first.
//!
//! Level-triggered: whatever changed, all definitions are looked at again, one after the other, so
//! that of two that want a name one has it; one that fails keeps none of the others. Writes with
//! the version that was read; who was overtaken is looked at again by the event of that. Never
//! deletes an object by force: one that is held by a finalizer holds its definition.

use super::PARTITION;
use crate::bootstrap::{ReconcileError, refused, send};
use crate::config::Clock;
use crate::registry::Registry;
use crate::server::InProcess;
use crate::view::{self, View};
use coracle_api::catalogue;
use coracle_api::custom::{self, CLEANUP, GROUP, PLURAL, set_condition};
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::timestamp::format_time;
use coracle_store::{Store, Watch};
use http::{Method, StatusCode};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After a failure, and as often as is looked whether the last object of a kind is gone: it may
/// wait for somebody's finalizer.
const RETRY: Duration = Duration::from_secs(1);

/// By name.
type Definitions = BTreeMap<String, Object>;

/// Status, reason and message of a condition.
type Told = [&'static str; 3];
const OVERLAPS: Told = [
    "False",
    "OverlappingBuiltInResource",
    "instances overlap with built-in resources in storage",
];
const NEVER_ESTABLISHED: Told = [
    "False",
    "NeverEstablished",
    "resource was never established",
];
const COMPLETED: Told = [
    "False",
    "InstanceDeletionCompleted",
    "removed all instances",
];
const IN_PROGRESS: Told = [
    "True",
    "InstanceDeletionInProgress",
    "CustomResource deletion is in progress",
];

/// What is done with a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Settled,
    /// It waits for its objects.
    Waits,
}

/// Runs until shutdown or until the store closes. `api` must act as somebody in `system:masters`.
pub async fn run(registry: Registry, api: InProcess, clock: Clock, shutdown: CancellationToken) {
    let looped = async {
        loop {
            let Some(mut watch) = watch(&registry.store) else {
                return;
            };
            // Ends what goes on with kinds that are no more, whether somebody asks or not.
            drop(registry.kinds());
            let waits = match settle(&registry, &api, &clock).await {
                Ok(Outcome::Settled) => false,
                Ok(Outcome::Waits) => true,
                // It was told.
                Err(_) => true,
            };
            if waits {
                drop(tokio::time::timeout(RETRY, watch.next()).await);
            } else if watch.next().await.is_err() {
                // Too much happened to be told one by one, or the store is closed.
                tokio::task::yield_now().await;
            }
        }
    };
    let _ = shutdown.run_until_cancelled(looped).await;
}

/// `None` once the store is closed.
fn watch(store: &Store) -> Option<Watch> {
    // What changes between this and the reading is read; the event that tells of it is one more.
    let newest = store.snapshot(&PARTITION).revision();
    store.watch(&PARTITION, newest).ok()
}

/// The first failure is given once all had their turn.
async fn settle(
    registry: &Registry,
    api: &InProcess,
    clock: &Clock,
) -> Result<Outcome, ReconcileError> {
    let listed = registry.store.list(GROUP, PLURAL, None).into_iter();
    let mut all: Definitions = listed.map(|one| (one.name().to_owned(), one)).collect();
    let mut first = None;
    establish(registry, api, clock, &mut all, &mut first).await;
    let mut outcome = Outcome::Settled;
    for definition in all.values() {
        let now = format_time(clock());
        let is_ours = definition.finalizers().any(|one| one == CLEANUP);
        if !definition.is_deleting()
            || !is_ours
            || custom::settled(definition, all.values(), &now).is_some()
        {
            continue;
        }
        match take_apart(registry, api, definition.clone(), &now).await {
            Ok(Outcome::Settled) => {}
            Ok(Outcome::Waits) => outcome = Outcome::Waits,
            Err(error) => keep(&mut first, definition.name(), error),
        }
    }
    first.map_or(Ok(outcome), Err)
}

/// Writes what is new of the conditions and names of each. Before anything is taken apart, which
/// may take long.
async fn establish(
    registry: &Registry,
    api: &InProcess,
    clock: &Clock,
    all: &mut Definitions,
    first: &mut Option<ReconcileError>,
) {
    let names: Vec<String> = all.keys().cloned().collect();
    for name in names {
        let Some(definition) = all.get(&name) else {
            continue;
        };
        let now = format_time(clock());
        let Some(settled) = custom::settled(definition, all.values(), &now) else {
            continue;
        };
        if let Err(error) = put_status(api, &settled).await {
            keep(first, &name, error);
        }
        // As it is now: what was just written is among what the next one is held against.
        match registry.store.get(GROUP, PLURAL, "", &name) {
            Some(newest) => drop(all.insert(name, newest)),
            None => drop(all.remove(&name)),
        }
    }
}

/// The first one is for the retry; all are told.
fn keep(first: &mut Option<ReconcileError>, name: &str, error: ReconcileError) {
    tracing::warn!(name, %error, "a definition of custom resources was not settled");
    first.get_or_insert(error);
}

/// Deletes the objects, and lets the definition go once there are none.
async fn take_apart(
    registry: &Registry,
    api: &InProcess,
    mut definition: Object,
    now: &str,
) -> Result<Outcome, ReconcileError> {
    let group = definition.str(&["spec", "group"]).to_owned();
    let plural = definition.str(&["spec", "names", "plural"]).to_owned();
    let partition = view::partition(&group, &plural);
    if catalogue::stored(&group, &plural).is_some() {
        return release(api, definition, OVERLAPS, now).await;
    }
    if !custom::condition_is_true(&definition, "Established") {
        return release(api, definition, NEVER_ESTABLISHED, now).await;
    }
    if registry.store.snapshot(&partition).is_empty() {
        return release(api, definition, COMPLETED, now).await;
    }
    let before = definition.clone();
    set_condition(&mut definition, "Terminating", IN_PROGRESS, now);
    if definition != before {
        put_status(api, &definition).await?;
    }
    if !delete_all(registry, api, &group, &plural).await? {
        return Ok(Outcome::Waits);
    }
    // What is left is waited for.
    let is_empty = registry.store.snapshot(&partition).is_empty();
    match registry.store.get(GROUP, PLURAL, "", definition.name()) {
        Some(newest) if is_empty => release(api, newest, COMPLETED, now).await,
        _ => Ok(Outcome::Waits),
    }
}

/// Asks for the deletion of all objects; false when they are out of everybody's reach, as no
/// version is served.
async fn delete_all(
    registry: &Registry,
    api: &InProcess,
    group: &str,
    plural: &str,
) -> Result<bool, ReconcileError> {
    let snapshot = registry.store.snapshot(&view::partition(group, plural));
    let namespaces: BTreeSet<String> = snapshot
        .iter()
        .filter_map(|(_, entry)| view::decode(&entry.value))
        .map(|object| object.namespace().to_owned())
        .collect();
    let mut first = None;
    for namespace in namespaces {
        let Some(path) = collection(registry, group, plural, &namespace) else {
            return Ok(false);
        };
        // What cannot go from one namespace keeps nothing in the others.
        if let Err(error) = delete_in(api, &path).await {
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(true), Err)
}

async fn delete_in(api: &InProcess, path: &str) -> Result<(), ReconcileError> {
    let (status, answer) = send(api, Method::DELETE, path, None).await?;
    if status.is_success() || status == StatusCode::NOT_FOUND {
        return Ok(());
    }
    Err(refused(Method::DELETE, path, status, &answer))
}

/// Where the objects of a namespace are: in the version in which they are stored, where it is
/// served, so that no webhook need be asked, or else in any.
fn collection(registry: &Registry, group: &str, plural: &str, namespace: &str) -> Option<String> {
    let kinds = registry.kinds();
    let is_stored = |row: &Resource| {
        let custom = row.rules.custom();
        custom.is_some_and(|custom| custom.api_version == custom.storage_version)
    };
    let row = kinds
        .custom()
        .iter()
        .filter(|row| row.group == group && row.plural == plural)
        .min_by_key(|row| !is_stored(row))?;
    let version = row.version;
    Some(if namespace.is_empty() {
        format!("/apis/{group}/{version}/{plural}")
    } else {
        format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}")
    })
}

/// Takes our finalizer off, with the last word on it: a write of the status takes metadata along.
async fn release(
    api: &InProcess,
    mut definition: Object,
    told: Told,
    now: &str,
) -> Result<Outcome, ReconcileError> {
    set_condition(&mut definition, "Terminating", told, now);
    let finalizers = definition.list(&["metadata", "finalizers"]).iter();
    let left: Vec<Value> = finalizers.filter(|one| **one != CLEANUP).cloned().collect();
    definition.set(&["metadata", "finalizers"], left.into());
    put_status(api, &definition).await?;
    Ok(Outcome::Settled)
}

async fn put_status(api: &InProcess, definition: &Object) -> Result<(), ReconcileError> {
    let path = format!("/apis/{GROUP}/v1/{PLURAL}/{}/status", definition.name());
    let (status, answer) = send(api, Method::PUT, &path, Some(definition)).await?;
    // Changed or deleted meanwhile: the event of that is on its way.
    if status.is_success() || matches!(status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
        return Ok(());
    }
    Err(refused(Method::PUT, &path, status, &answer))
}
