//! Keeps the state in step with the store, and tells each schema whether its level is there.
//!
//! Level-triggered: whatever changed, all objects of both kinds are read again; there are some
//! tens of them. Every ten seconds seats move to where they are needed.

use super::Fairness;
use super::flow_schema::FlowSchema;
use super::level::LevelSpec;
use crate::bootstrap::{ReconcileError, send};
use crate::server::InProcess;
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::timestamp::format_time;
use coracle_store::{Revision, Store, Watch};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
/// Upstream's period of lending.
const LEND_EVERY: Duration = Duration::from_secs(10);
/// Changes come in bursts, at a start above all: one reading for all of them.
const SETTLE: Duration = Duration::from_millis(20);
/// A status that somebody else keeps changing back is written this often a minute, as upstream.
const STATUS_WRITES_MAX: usize = 6;
const STATUS_WINDOW: Duration = Duration::from_secs(60);

/// Reads all objects into the state.
pub fn load(fairness: &Fairness, store: &Store) {
    let levels = store.list(GROUP, LEVELS, None);
    let schemas = store.list(GROUP, SCHEMAS, None);
    fairness.configure(
        levels.iter().filter_map(LevelSpec::of).collect(),
        schemas.iter().map(FlowSchema::of).collect(),
    );
}

/// Runs until shutdown or until the store closes. `api` must act as somebody in `system:masters`.
pub async fn follow(
    fairness: Arc<Fairness>,
    store: Store,
    api: InProcess,
    clock: impl Fn() -> Timestamp + Send,
    shutdown: CancellationToken,
) {
    let mut statuses = Statuses::default();
    let mut lend = tokio::time::interval(LEND_EVERY);
    loop {
        let begun = (watch(&store, SCHEMAS), watch(&store, LEVELS));
        load(&fairness, &store);
        statuses.write(&store, &api, clock()).await;
        let (Some(mut schemas), Some(mut levels)) = begun else {
            return;
        };
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = schemas.next() => break,
                _ = levels.next() => break,
                _ = lend.tick() => {
                    // A level whose object is gone may have become idle.
                    if fairness.rebalance() || statuses.is_owing {
                        break;
                    }
                }
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(SETTLE) => {}
        }
    }
}

/// `None` once the store is closed.
fn watch(store: &Store, plural: &str) -> Option<Watch> {
    let partition = crate::view::partition(GROUP, plural);
    // What changes between this and the reading is read; the event that tells of it is one more.
    let newest: Revision = store.snapshot(&partition).revision();
    store.watch(&partition, newest).ok()
}

/// The `Dangling` condition of each schema.
#[derive(Debug, Default)]
struct Statuses {
    written: BTreeMap<String, VecDeque<Instant>>,
    /// One was not written because it was too often.
    is_owing: bool,
}

impl Statuses {
    async fn write(&mut self, store: &Store, api: &InProcess, now: Timestamp) {
        let levels: BTreeSet<String> = store
            .list(GROUP, LEVELS, None)
            .iter()
            .filter(|level| LevelSpec::of(level).is_some())
            .map(|level| level.name().to_owned())
            .collect();
        self.is_owing = false;
        for mut schema in store.list(GROUP, SCHEMAS, None) {
            let Some(condition) = condition(&schema, &levels, now) else {
                continue;
            };
            if !self.may_write(schema.name()) {
                self.is_owing = true;
                continue;
            }
            set_condition(&mut schema, condition);
            if let Err(error) = put_status(api, &schema).await {
                tracing::warn!(schema = schema.name(), %error, "the status was not written");
                self.is_owing = true;
            }
        }
    }

    fn may_write(&mut self, name: &str) -> bool {
        let now = Instant::now();
        let written = self.written.entry(name.to_owned()).or_default();
        while written
            .front()
            .is_some_and(|then| now.duration_since(*then) > STATUS_WINDOW)
        {
            written.pop_front();
        }
        let may = written.len() < STATUS_WRITES_MAX;
        if may {
            written.push_back(now);
        }
        may
    }
}

async fn put_status(api: &InProcess, schema: &Object) -> Result<(), ReconcileError> {
    let path = format!(
        "/apis/{GROUP}/v1/{SCHEMAS}/{}/status?fieldManager=api-priority-and-fairness-config-consumer-v1",
        schema.name()
    );
    let (status, answer) = send(api, Method::PUT, &path, Some(schema)).await?;
    // Changed or deleted meanwhile: the event of that is on its way.
    if status.is_success() || matches!(status.as_u16(), 404 | 409) {
        return Ok(());
    }
    Err(crate::bootstrap::refused(
        Method::PUT,
        &path,
        status,
        &answer,
    ))
}

/// The condition that the schema should have; `None` when it has it.
fn condition(schema: &Object, levels: &BTreeSet<String>, now: Timestamp) -> Option<Value> {
    let level = schema.str(&["spec", "priorityLevelConfiguration", "name"]);
    let (status, reason, end) = if levels.contains(level) {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}"
    );
    let conditions = schema.list(&["status", "conditions"]);
    let own = conditions.iter().find(|own| own["type"] == "Dangling");
    let is_so = own.is_some_and(|own| {
        own["status"] == status && own["reason"] == reason && own["message"] == message
    });
    (!is_so).then(|| {
        json!({
            "type": "Dangling", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": format_time(now),
        })
    })
}

fn set_condition(schema: &mut Object, condition: Value) {
    let mut conditions = schema.list(&["status", "conditions"]).to_vec();
    conditions.retain(|own| own["type"] != condition["type"]);
    conditions.push(condition);
    schema.set(&["status", "conditions"], Value::Array(conditions));
}

#[cfg(test)]
mod tests;
