//! The node's view of Services and EndpointSlices, shared by routing and by DNS.
//!
//! Fed by list and watch of the server; what comes is decoded into compact records and dropped.
//! Kept on the node's disk, so that after a restart without the server names and Services go on.
//!
//! Invariants: a reader told of a change finds it (or a later one) in the view; a list that
//! shows nothing new tells nobody. While `origin` is `Nothing` the view must not be acted on: an
//! empty view is not an empty cluster.

mod decode; // From the server's objects.
mod feed; // List and watch.
mod kept; // On disk.
mod record;
mod subscription;
mod tables; // What is known. Pure.

pub use feed::{Feed, follow};
pub use kept::Keeper;
pub use record::{
    Distribution, Endpoint, Protocol, Service, ServiceKind, ServicePort, Slice, SlicePort, uid,
};
pub use subscription::Subscription;

use super::wireguard::Told;
use parking_lot::RwLock;
use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use subscription::Subscribers;
use tables::Tables;
use tokio::sync::watch;

/// Of the agent's directory, where the view is kept.
pub const FILE: &str = "network.services";

/// `NAMESPACE/NAME` of a Service.
pub type Key = Arc<str>;

pub fn key(namespace: &str, name: &str) -> Key {
    format!("{namespace}/{name}").into()
}

/// Namespace and name.
pub fn parts(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// What is known under one key. Cheap to clone; to compare two, compare the pointers first: what
/// did not change keeps its `Arc`.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// None while slices are known of a Service that is not.
    pub service: Option<Arc<Service>>,
    /// Ordered by name.
    pub slices: Vec<Arc<Slice>>,
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.service.is_none() && self.slices.is_empty()
    }

    /// Of all slices, an endpoint with its slice.
    pub fn endpoints(&self) -> impl Iterator<Item = (&Slice, &Endpoint)> {
        let slices = self.slices.iter().map(Arc::as_ref);
        slices.flat_map(|slice| {
            slice
                .endpoints
                .iter()
                .map(move |endpoint| (slice, endpoint))
        })
    }
}

/// Where what the view shows is from.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Origin {
    Nothing,
    /// From the node's disk: what the server said last before a restart.
    Disk,
    /// A whole list of the server, and its changes since.
    Server,
}

/// Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct View(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tables: RwLock<Tables>,
    namespaces: watch::Sender<BTreeSet<Box<str>>>,
    subscribers: Subscribers,
    origin: watch::Sender<Origin>,
    services_listed: watch::Sender<bool>,
    encryption: watch::Sender<Told>,
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

impl View {
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            tables: RwLock::default(),
            namespaces: watch::Sender::default(),
            subscribers: Subscribers::default(),
            origin: watch::Sender::new(Origin::Nothing),
            services_listed: watch::Sender::new(false),
            encryption: watch::Sender::default(),
        }))
    }

    /// Of these objects, as if a server had told of them.
    #[cfg(test)]
    pub fn of(
        services: &[k8s_openapi::api::core::v1::Service],
        slices: &[k8s_openapi::api::discovery::v1::EndpointSlice],
        namespaces: &[&str],
    ) -> Self {
        let view = Self::new();
        for object in services {
            let key = decode::object_key(&object.metadata);
            view.change(|tables| tables.set_service(&key, Some(decode::service(object))));
        }
        for object in slices {
            let name = decode::object_key(&object.metadata);
            view.change(|tables| tables.set_slice(&name, decode::slice(object)));
        }
        for namespace in namespaces {
            view.set_namespace(namespace, true);
        }
        view.listed_services();
        view.reach(Origin::Server);
        view
    }

    #[cfg(test)]
    pub fn forget(&self, key: &str) {
        self.change(|tables| tables.set_service(&key.into(), None));
    }

    #[cfg(test)]
    pub fn put_slice(&self, object: &k8s_openapi::api::discovery::v1::EndpointSlice) {
        let name = decode::object_key(&object.metadata);
        self.change(|tables| tables.set_slice(&name, decode::slice(object)));
    }

    /// None when neither the Service nor a slice of it is known.
    pub fn get(&self, key: &str) -> Option<Entry> {
        self.read(key, Clone::clone)
    }

    /// Looks at an entry under the view's lock, without a copy. `look` must be quick.
    pub fn read<T>(&self, key: &str, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        self.0.tables.read().get(key).map(look)
    }

    /// Every entry, ordered by key. All of one moment.
    pub fn all(&self) -> Vec<(Key, Entry)> {
        let tables = self.0.tables.read();
        let all = tables.iter();
        all.map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// The Services of a namespace, ordered by name, and their keys.
    pub fn services_in(&self, namespace: &str) -> Vec<(Key, Arc<Service>)> {
        let tables = self.0.tables.read();
        let of = tables.in_namespace(namespace);
        of.filter_map(|(key, entry)| Some((key.clone(), entry.service.clone()?)))
            .collect()
    }

    pub fn has_namespace(&self, name: &str) -> bool {
        self.0.namespaces.borrow().contains(name)
    }

    fn namespaces(&self) -> Vec<Box<str>> {
        self.0.namespaces.borrow().iter().cloned().collect()
    }

    fn set_namespace(&self, name: &str, is_there: bool) {
        self.0.namespaces.send_if_modified(|namespaces| {
            if is_there {
                namespaces.insert(name.into())
            } else {
                namespaces.remove(name)
            }
        });
    }

    fn retain_namespaces(&self, listed: &HashSet<Box<str>>) {
        self.0.namespaces.send_if_modified(|namespaces| {
            let before = namespaces.len();
            namespaces.retain(|name| listed.contains(name));
            namespaces.len() < before
        });
    }

    /// Wakes its reader when a namespace comes or goes; who asks for names alone needs it not.
    fn namespaces_changed(&self) -> watch::Receiver<BTreeSet<Box<str>>> {
        self.0.namespaces.subscribe()
    }

    /// What the server says of the encryption of the pods' network, in this run.
    pub fn encryption(&self) -> watch::Receiver<Told> {
        self.0.encryption.subscribe()
    }

    /// A server that has said nothing by then asks for no encryption.
    fn listed_namespaces(&self) {
        self.0.encryption.send_if_modified(|known| {
            let is_silent = *known == Told::Nothing;
            if is_silent {
                *known = Told::Plain;
            }
            is_silent
        });
    }

    pub(super) fn set_encryption(&self, told: Told) {
        self.0.encryption.send_if_modified(|known| {
            let is_new = *known != told;
            *known = told;
            is_new
        });
    }

    /// The Service that has this cluster IP.
    pub fn service_at(&self, address: IpAddr) -> Option<Key> {
        self.0.tables.read().service_at(address)
    }

    /// The Services that have an endpoint of this address, ordered by key.
    pub fn services_of_endpoint(&self, address: IpAddr) -> Vec<Key> {
        self.0.tables.read().services_of_endpoint(address)
    }

    pub fn origin(&self) -> Origin {
        *self.0.origin.borrow()
    }

    /// Waits until the view shows something to act on.
    pub async fn known(&self) -> Origin {
        let mut origin = self.0.origin.subscribe();
        let known = origin.wait_for(|origin| *origin >= Origin::Disk).await;
        *known.expect("the view holds the sender")
    }

    /// Waits for the first whole list of Services alone.
    pub async fn services_synced(&self) {
        let mut listed = self.0.services_listed.subscribe();
        let listed = listed.wait_for(|is_listed| *is_listed).await;
        listed.expect("the view holds the sender");
    }

    /// Whether Services were listed at least once, in this run or before it.
    pub fn has_services(&self) -> bool {
        *self.0.services_listed.borrow() || self.origin() >= Origin::Disk
    }

    fn listed_services(&self) {
        self.0.services_listed.send_replace(true);
    }

    /// Tells which keys changed from now on; at first all that are known.
    pub fn subscribe(&self) -> Subscription {
        let tables = self.0.tables.read();
        let keys = tables.iter().map(|(key, _)| key.clone());
        self.0.subscribers.add(keys.collect())
    }

    /// The one way in: changes the tables and tells of the keys that it gives back.
    fn change(&self, change: impl FnOnce(&mut Tables) -> Vec<Key>) {
        let changed = change(&mut self.0.tables.write());
        if !changed.is_empty() {
            self.0.subscribers.tell(&changed);
        }
    }

    fn reach(&self, origin: Origin) {
        self.0.origin.send_if_modified(|known| {
            let is_later = *known < origin;
            *known = (*known).max(origin);
            is_later
        });
    }
}

#[cfg(test)]
mod tests;
