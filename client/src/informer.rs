//! Shared informers: one local, indexed, always current copy of a kind, however many read it.
//!
//! An informer lists, watches, and after any failure resumes or lists again; readers see the last
//! known state meanwhile. Objects are shared (`Arc`) and must be cloned before they are changed.
//! `metadata.managedFields` is skipped: nothing here reads it, and it is often half of an object.
//!
//! Guarantees: handlers are called one at a time, in the order of the server's changes, after the
//! store shows the change; a handler added late first gets every object as `Added`. A deletion
//! missed during an outage is reported when the list is read again. An object replaced by
//! another of the same name is reported as `Deleted`, then `Added`.
//! Caveats: the copy lags behind the server; a handler must be quick and must not block.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::object::ObjectKey;
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Client;

mod follow;
mod lean; // Objects without what nobody reads.
mod pace;
mod reflect;
mod scope;
mod store;

pub use follow::{Event, Sink, follow};
pub use lean::Lean;
pub use pace::paced;
pub use scope::{Filter, ListScope};
use store::Store;

/// How often every object is offered again as `Change::Resync`, in case a handler lost one.
const RESYNC_PERIOD: Duration = Duration::from_secs(10 * 60);

/// What an informer can hold: any typed Kubernetes object.
pub trait Kind:
    kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

/// A change of one object, as the store shows it now.
#[derive(Clone, Debug)]
pub enum Change<K> {
    Added(Arc<K>),
    Updated {
        old: Arc<K>,
        new: Arc<K>,
    },
    /// The last state known, which is not always the last state there was.
    Deleted(Arc<K>),
    /// Nothing changed: the periodic second chance.
    Resync(Arc<K>),
}

impl<K> Change<K> {
    /// The newest state the change knows.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Deleted(object) | Self::Resync(object) => object,
            Self::Updated { new, .. } => new,
        }
    }
}

/// The informers of one process under one identity. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Informers {
    shared: Arc<Registry>,
}

struct Registry {
    client: Client,
    shutdown: CancellationToken,
    resync_period: Duration,
    started: Mutex<HashMap<(TypeId, Filter), Box<dyn Any + Send + Sync>>>,
}

impl Debug for Informers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Informers")
            .field("started", &self.shared.started.lock().len())
            .finish()
    }
}

impl Informers {
    /// Needs a running tokio runtime as soon as an informer is asked for.
    pub fn new(client: Client, shutdown: CancellationToken) -> Self {
        Self::with_resync(client, shutdown, RESYNC_PERIOD)
    }

    /// What reads for all of them.
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    pub fn with_resync(client: Client, shutdown: CancellationToken, period: Duration) -> Self {
        let started = Mutex::new(HashMap::new());
        let registry = Registry {
            client,
            shutdown,
            resync_period: period,
            started,
        };
        Self {
            shared: Arc::new(registry),
        }
    }

    /// As the function, under the identity that the informers read by.
    pub async fn follow<K: Kind>(
        &self,
        filter: Filter,
        sink: impl Sink<K>,
        shutdown: CancellationToken,
    ) where
        K::Scope: ListScope<K>,
    {
        follow(self.shared.client.clone(), filter, sink, shutdown).await;
    }

    /// The informer of a whole kind, cluster-wide; started on first use.
    pub fn get<K: Kind>(&self) -> Informer<K>
    where
        K::Scope: ListScope<K>,
    {
        self.get_filtered(Filter::default())
    }

    /// The informer of a part of a kind; started on first use, one for each distinct filter.
    pub fn get_filtered<K: Kind>(&self, filter: Filter) -> Informer<K>
    where
        K::Scope: ListScope<K>,
    {
        let mut started = self.shared.started.lock();
        let slot = (TypeId::of::<K>(), filter.clone());
        if let Some(known) = started
            .get(&slot)
            .and_then(|any| any.downcast_ref::<Informer<K>>())
        {
            return known.clone();
        }
        let client = pace::paced(self.shared.client.clone());
        let api = <K::Scope as ListScope<K>>::api(client, filter.namespace.as_deref());
        let informer = Informer::<K>::new(self.shared.shutdown.clone());
        tokio::spawn(reflect::run(
            informer.clone(),
            api,
            filter,
            self.shared.resync_period,
        ));
        started.insert(slot, Box::new(informer.clone()));
        informer
    }
}

type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

/// A local copy of one kind. Cheap to clone; clones share.
pub struct Informer<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    store: RwLock<Store<K>>,
    /// Held while a change is applied and told, so that registration falls between two changes.
    handlers: Mutex<Vec<Handler<K>>>,
    synced: watch::Sender<bool>,
    shutdown: CancellationToken,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Kind> Debug for Informer<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Informer")
            .field("objects", &self.shared.store.read().len())
            .finish()
    }
}

impl<K: Kind> Informer<K> {
    fn new(shutdown: CancellationToken) -> Self {
        let shared = Shared {
            store: RwLock::new(Store::new()),
            handlers: Mutex::new(Vec::new()),
            synced: watch::Sender::new(false),
            shutdown,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.shared.store.read().get(key)
    }

    /// Every object, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.shared.store.read().list()
    }

    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.shared.store.read().list_namespace(namespace)
    }

    pub fn len(&self) -> usize {
        self.shared.store.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that name this uid among their owners, controller or not.
    pub fn by_owner_uid(&self, uid: &str) -> Vec<Arc<K>> {
        self.shared.store.read().by_owner_uid(uid)
    }

    /// Keeps an index from now on; the function gives the values under which an object is found.
    /// A name that is taken keeps its first function.
    pub fn add_index(
        &self,
        name: &'static str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.shared.store.write().add_index(name, Box::new(values));
    }

    /// The objects under a value of an index made by `add_index`; none if there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<K>> {
        self.shared.store.read().by_index(name, value)
    }

    /// Calls the function for every object now, as `Added`, and for each change from now on.
    /// It runs in the informer's task: it may read the informer, not add handlers to it.
    pub fn on_change(&self, handler: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let mut handlers = self.shared.handlers.lock();
        for object in self.list() {
            handler(&Change::Added(object));
        }
        handlers.push(Box::new(handler));
    }

    pub fn has_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits for the first complete list. False when the informers were shut down first: the copy
    /// is incomplete then, and must not be acted on.
    #[must_use = "an informer that was shut down before its first list must not be acted on"]
    pub async fn synced(&self) -> bool {
        let mut synced = self.shared.synced.subscribe();
        tokio::select! {
            biased;
            () = self.shared.shutdown.cancelled() => self.has_synced(),
            done = synced.wait_for(|synced| *synced) => done.is_ok(),
        }
    }
}

#[cfg(test)]
mod tests;
