//! Keeps the tables of the views: of kinds of which plugins need a part only.

use crate::selector::{self, Labels, Selector};
use crate::views::{Keeper, Table, Views};
use coracle_client::informer::{Filter, Informers, Kind, ListScope};
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, ReplicationController, Service};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The first lists of the tables.
#[derive(Debug)]
pub struct Tables {
    /// One permit for each table whose first list was whole.
    ready: Arc<Semaphore>,
    count: u32,
}

impl Tables {
    /// Waits for the first lists; false when stopped before.
    pub async fn synced(&self, stop: &CancellationToken) -> bool {
        let all = self.ready.acquire_many(self.count);
        stop.run_until_cancelled(all).await.is_some()
    }
}

/// Follows all tables of the views until `stop`.
pub fn keep(views: &Views, informers: &Informers, stop: &CancellationToken) -> Tables {
    let ready = Arc::new(Semaphore::new(0));
    let mut count = 0;
    let mut keep = Starter {
        informers,
        stop,
        ready: &ready,
        count: &mut count,
    };
    let owners = &views.owners;
    keep.table(&owners.services, |it: Service| some(it.spec?.selector));
    keep.table(
        &owners.replication_controllers,
        |it: ReplicationController| some(it.spec?.selector),
    );
    keep.table(&owners.replica_sets, |it: ReplicaSet| {
        Some(parsed(&it.spec?.selector))
    });
    keep.table(&owners.stateful_sets, |it: StatefulSet| {
        Some(parsed(&it.spec?.selector))
    });
    keep.table(&views.namespaces, |it: Namespace| {
        Some(it.metadata.labels.unwrap_or_default())
    });
    Tables { ready, count }
}

struct Starter<'a> {
    informers: &'a Informers,
    stop: &'a CancellationToken,
    ready: &'a Arc<Semaphore>,
    count: &'a mut u32,
}

impl Starter<'_> {
    fn table<K, V>(&mut self, table: &Table<V>, part: fn(K) -> Option<V>)
    where
        K: Kind,
        K::Scope: ListScope<K>,
        V: Clone + Debug + Send + Sync + 'static,
    {
        *self.count += 1;
        let ready = Arc::clone(self.ready);
        let keeper = Keeper {
            table: table.clone(),
            part,
            listed: BTreeMap::new(),
            ready: Some(Box::new(move || ready.add_permits(1))),
        };
        let (informers, stop) = (self.informers.clone(), self.stop.clone());
        tokio::spawn(async move {
            informers.follow(Filter::default(), keeper, stop).await;
        });
    }
}

/// A selector without a pair selects nobody.
fn some(selector: Option<Labels>) -> Option<Labels> {
    selector.filter(|pairs| !pairs.is_empty())
}

fn parsed(
    selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
) -> Arc<Selector> {
    Arc::new(selector::parsed(Some(selector)))
}
