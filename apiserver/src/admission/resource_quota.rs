//! Nothing is written that a quota of its namespace has no room for.
//!
//! What a write uses is added to `status.used` of the quotas that count it, in one commit with the
//! object: no room is given twice, and none is lost when the write fails. What is given back when
//! objects go, the controller counts. In a namespace without a quota nothing is read and nothing
//! waits.
//!
//! Charges of a namespace are made one at a time. This is for speed alone: the revisions of the
//! quotas decide, and whoever changed one meanwhile has the charge weighed anew.

use super::{Attributes, Operation};
use crate::registry::{self, Refusal, Registry, Stored};
use crate::verbs::write::ATTEMPTS_MAX;
use crate::view::View;
use coracle_api::amounts::Amounts;
use coracle_api::apply::{Writer, put_managed_fields};
use coracle_api::catalogue;
use coracle_api::object::Object;
use coracle_api::quota::{self, DeviceClasses, Evaluator, Quota, Request, Surroundings};
use coracle_api::resource::{Durability, Part, Resource};
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use coracle_store::{Expect, Revision, Write};
use jiff::Timestamp;
use std::borrow::Cow;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Namespaces share these; two that meet in one wait for each other and are none the worse.
const LANES: usize = 64;
/// Upstream's patience.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Who manages what is charged, as upstream names it.
const MANAGER: &str = "kube-apiserver";
const CLAIMS_GROUP: &str = "resource.k8s.io";

/// The lanes in which writes are charged.
#[derive(Debug)]
pub struct Quotas {
    lanes: Box<[Arc<Mutex<()>>]>,
}

/// What a write has to be charged with, and the right to charge it, until this is dropped.
#[derive(Debug)]
pub struct Charge<'a> {
    registry: &'a Registry,
    weighed: Option<Weighed<'a>>,
}

#[derive(Debug)]
struct Weighed<'a> {
    asked: Attributes<'a>,
    evaluator: Evaluator,
    now: Timestamp,
    /// The quotas as they will stand.
    writes: Vec<Write>,
    /// Absent on a trial, which charges nothing.
    _lane: Option<OwnedMutexGuard<()>>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            lanes: (0..LANES).map(|_| Arc::default()).collect(),
        }
    }
}

impl Quotas {
    /// Refuses what there is no room for. `object` is as it will be stored.
    pub async fn charge<'a>(
        &self,
        registry: &'a Registry,
        object: &Object,
        asked: Attributes<'a>,
        now: Timestamp,
    ) -> Result<Charge<'a>, Status> {
        let mut charge = Charge::free(registry);
        let Some(evaluator) = evaluator(registry, object, &asked) else {
            return Ok(charge);
        };
        let lane = if asked.dry_run {
            None
        } else {
            Some(self.lane(asked.namespace).await?)
        };
        let mut weighed = Weighed {
            asked,
            evaluator,
            now,
            writes: Vec::new(),
            _lane: lane,
        };
        weighed.weigh(registry, object)?;
        charge.weighed = (!weighed.writes.is_empty()).then_some(weighed);
        Ok(charge)
    }

    async fn lane(&self, namespace: &str) -> Result<OwnedMutexGuard<()>, Status> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(namespace);
        let place = usize::try_from(hash % LANES as u64).unwrap_or_default();
        let lane = Arc::clone(&self.lanes[place]).lock_owned();
        let lane = tokio::time::timeout(WAIT_MAX, lane).await;
        lane.map_err(|_| Status::internal("resource quota evaluation timed out"))
    }
}

/// `None` when no quota can have anything to say.
fn evaluator(registry: &Registry, object: &Object, asked: &Attributes<'_>) -> Option<Evaluator> {
    let is_in_namespace = !asked.namespace.is_empty() && asked.resource.is_namespaced();
    if !is_in_namespace || !has_quotas(registry, asked.namespace) {
        return None;
    }
    let (group, plural) = (asked.resource.group, asked.resource.plural);
    let old = asked.old.filter(|_| asked.operation == Operation::Update);
    let evaluator = Evaluator::of(group, plural)?;
    evaluator
        .charges(asked.subresource, object, old)
        .then_some(evaluator)
}

/// Asked on every write: looks at keys alone.
fn has_quotas(registry: &Registry, namespace: &str) -> bool {
    let quotas = registry.snapshot(row());
    let prefix = || registry::prefix(namespace);
    !quotas.is_empty() && quotas.range_from("", &prefix()).next().is_some()
}

fn row() -> &'static Resource {
    catalogue::find(quota::GROUP, "v1", quota::PLURAL).expect("the catalogue has quotas")
}

impl Weighed<'_> {
    /// Looks at the quotas as they stand now.
    fn weigh(&mut self, registry: &Registry, object: &Object) -> Result<(), Status> {
        let stored = quotas(registry, self.asked.namespace);
        let all: Vec<Quota> = stored.iter().map(|one| Quota::of(&one.object)).collect();
        let request = Request {
            evaluator: &self.evaluator,
            subresource: self.asked.subresource,
            new: object,
            old: self.asked.old,
        };
        let store = &registry.store;
        let classes = match self.evaluator {
            Evaluator::ResourceClaims => store.list(CLAIMS_GROUP, "deviceclasses", None),
            _ => Vec::new(),
        };
        let around = Surroundings {
            now: self.now.as_second(),
            classes: &DeviceClasses::of(&classes),
            pod: &|namespace, name| store.get("", "pods", namespace, name).map(Cow::Owned),
            claims: &|namespace| {
                let claims = store.list(CLAIMS_GROUP, "resourceclaims", Some(namespace));
                Cow::Owned(claims)
            },
        };
        let charges = quota::check(&request, &all, &around);
        let charges = charges.map_err(|why| self.asked.forbidden(Some(object), why))?;
        self.writes = charges
            .into_iter()
            .map(|charge| {
                let Stored { object, revision } = &stored[charge.quota];
                let charged = charged(object, &charge.used, self.now);
                registry::put_write(row(), &charged, Expect::At(*revision))
            })
            .collect();
        Ok(())
    }
}

fn quotas(registry: &Registry, namespace: &str) -> Vec<Stored> {
    let snapshot = registry.snapshot(row());
    let prefix = registry::prefix(namespace);
    let entries = snapshot.range_from("", &prefix);
    entries
        .filter_map(|(_, entry)| {
            let object = registry::decode(row(), &entry.value)?;
            let revision = entry.modified;
            Some(Stored { object, revision })
        })
        .collect()
}

fn charged(stored: &Object, used: &Amounts, now: Timestamp) -> Object {
    let mut charged = stored.clone();
    charged.set(&["status", "used"], used.to_value());
    let (version, now) = (row().api_version(), format_time(now));
    let writer = Writer::of(row(), &version, Part::Status, "status", MANAGER, &now);
    let managed = writer.update(Some(stored), &charged);
    put_managed_fields(charged.root_mut(), managed);
    charged
}

impl<'a> Charge<'a> {
    /// Charges nothing.
    pub fn free(registry: &'a Registry) -> Self {
        Self {
            registry,
            weighed: None,
        }
    }

    /// Writes the object and what it is charged with.
    pub async fn put(
        &mut self,
        resource: &Resource,
        object: &Object,
        expect: Expect,
        durability: Durability,
    ) -> Result<Revision, Refusal> {
        let registry = self.registry;
        let Some(weighed) = &mut self.weighed else {
            return registry.put(resource, object, expect, durability).await;
        };
        for _ in 0..ATTEMPTS_MAX {
            let writes = &weighed.writes;
            let put = registry.put_beside(resource, object, expect, durability, writes);
            match put.await {
                Err(Refusal::Beside) => {
                    let again = weighed.weigh(registry, object);
                    again.map_err(|status| Refusal::Denied(Box::new(status)))?;
                }
                other => return other,
            }
        }
        let name = weighed.writes.first();
        let name = name.and_then(|write| write.key.split_once('/'));
        let name = name.map_or("", |(_, name)| name);
        let overtaken = Status::modified(registry::subject(row(), name));
        Err(Refusal::Denied(Box::new(overtaken)))
    }
}
