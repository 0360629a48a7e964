//! List and watch of the server, into the view. An object is decoded, made a record, and dropped,
//! before the view is locked: who asks it for a name waits for no decoding.

use super::{Key, Origin, View, decode};
use crate::network::wireguard::{self, Told};
use coracle_client::Client;
use coracle_client::informer::{self, Event, Filter, Sink};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Feed {
    /// For the variables of containers, which is all that a node may see of another cluster.
    Services,
    /// Endpoints and the names of namespaces too.
    All,
}

/// Runs until `stop`.
pub async fn follow(view: View, client: Client, feed: Feed, stop: CancellationToken) {
    let waits = match feed {
        Feed::Services => 1,
        Feed::All => 3,
    };
    let left = Arc::new(AtomicUsize::new(waits));
    let listed = || FirstList {
        view: view.clone(),
        left: left.clone(),
        is_done: false,
    };
    let services = Services {
        listed: HashSet::new(),
        first: listed(),
    };
    let all = Filter::default;
    let services = informer::follow::<Service>(client.clone(), all(), services, stop.clone());
    if feed == Feed::Services {
        return services.await;
    }
    let slices = Slices {
        listed: HashSet::new(),
        first: listed(),
    };
    let namespaces = Namespaces {
        listed: HashSet::new(),
        first: listed(),
    };
    tokio::join!(
        services,
        informer::follow::<EndpointSlice>(client.clone(), all(), slices, stop.clone()),
        informer::follow::<Namespace>(client, all(), namespaces, stop),
    );
}

/// The view is the server's once each kind was listed.
struct FirstList {
    view: View,
    left: Arc<AtomicUsize>,
    is_done: bool,
}

impl FirstList {
    fn done(&mut self) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.view.reach(Origin::Server);
        }
    }
}

struct Services {
    listed: HashSet<Key>,
    first: FirstList,
}

impl Sink<Service> for Services {
    fn apply(&mut self, event: Event<Service>) {
        let view = &self.first.view;
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let key = decode::object_key(&object.metadata);
                let service = decode::service(&object);
                view.change(|tables| tables.set_service(&key, Some(service)));
                self.listed.insert(key);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                view.change(|tables| tables.retain_services(&listed));
                view.listed_services();
                self.first.done();
            }
            Event::Apply(object) => {
                let key = decode::object_key(&object.metadata);
                let service = decode::service(&object);
                view.change(|tables| tables.set_service(&key, Some(service)));
            }
            Event::Delete(object) => {
                let key = decode::object_key(&object.metadata);
                view.change(|tables| tables.set_service(&key, None));
            }
        }
    }
}

struct Slices {
    listed: HashSet<Box<str>>,
    first: FirstList,
}

impl Sink<EndpointSlice> for Slices {
    fn apply(&mut self, event: Event<EndpointSlice>) {
        let view = &self.first.view;
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let name = decode::object_key(&object.metadata);
                let slice = decode::slice(&object);
                view.change(|tables| tables.set_slice(&name, slice));
                self.listed.insert((&*name).into());
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                view.change(|tables| tables.retain_slices(&listed));
                self.first.done();
            }
            Event::Apply(object) => {
                let name = decode::object_key(&object.metadata);
                let slice = decode::slice(&object);
                view.change(|tables| tables.set_slice(&name, slice));
            }
            Event::Delete(object) => {
                let name = decode::object_key(&object.metadata);
                view.change(|tables| tables.set_slice(&name, None));
            }
        }
    }
}

struct Namespaces {
    listed: HashSet<Box<str>>,
    first: FirstList,
}

impl Sink<Namespace> for Namespaces {
    fn apply(&mut self, event: Event<Namespace>) {
        let view = &self.first.view;
        let name = |object: Namespace| {
            let name = object.metadata.name.unwrap_or_default().into_boxed_str();
            if *name == *wireguard::NAMESPACE {
                view.set_encryption(Told::of(object.metadata.annotations.as_ref()));
            }
            name
        };
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let name = name(object);
                view.set_namespace(&name, true);
                self.listed.insert(name);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                view.retain_namespaces(&listed);
                view.listed_namespaces();
                self.first.done();
            }
            Event::Apply(object) => view.set_namespace(&name(object), true),
            Event::Delete(object) => {
                let name = object.metadata.name.unwrap_or_default();
                view.set_namespace(&name, false);
            }
        }
    }
}
