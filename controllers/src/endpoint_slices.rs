//! What the two loops that write EndpointSlices have in common.
//!
//! Both find the slices of a Service by labels, watch their metadata alone, and read a slice when
//! they compare with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::informer::{Change, Informer};
use coracle_client::{Client, ObjectKey};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::core::PartialObjectMeta;

use crate::wire_order::Order;

mod tracker; // What was written and not yet seen.
mod writer;

pub(crate) use tracker::Tracker;
pub(crate) use writer::Writer;

pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// How long to wait for a watch that lags behind what was written.
pub(crate) const STALE_WAIT: Duration = Duration::from_millis(100);
/// The longest a generated name's prefix may be with a dash behind it.
const NAME_LENGTH_MAX: usize = 253;
const BY_SERVICE: &str = "service";

pub(crate) type SliceMeta = PartialObjectMeta<EndpointSlice>;

/// Must be called before `of_service`; again is harmless.
pub(crate) fn index(slices: &Informer<SliceMeta>) {
    slices.add_index(BY_SERVICE, |slice| {
        let key = service_of(&slice.metadata);
        key.map(|key| key.to_string()).into_iter().collect()
    });
}

/// The slices of a Service that a controller manages, by name.
pub(crate) fn of_service(
    slices: &Informer<SliceMeta>,
    key: &ObjectKey,
    manager: &str,
) -> Vec<Arc<SliceMeta>> {
    let mut found = slices.by_index(BY_SERVICE, &key.to_string());
    found.retain(|slice| is_managed_by(&slice.metadata, manager));
    found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    found
}

pub(crate) fn label<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(name).map(String::as_str)
}

pub(crate) fn is_managed_by(meta: &ObjectMeta, manager: &str) -> bool {
    label(meta, MANAGED_BY) == Some(manager)
}

/// The Service that a slice says it is of.
pub(crate) fn service_of(meta: &ObjectMeta) -> Option<ObjectKey> {
    let name = label(meta, SERVICE_NAME).filter(|name| !name.is_empty())?;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    Some(ObjectKey::new(namespace, name))
}

/// The Services to look at after a slice changed that was not written by this loop, or not so.
pub(crate) fn touched(
    tracker: &Tracker,
    manager: &str,
    change: &Change<SliceMeta>,
) -> BTreeSet<ObjectKey> {
    let new = &change.object().metadata;
    let is_ours = is_managed_by(new, manager);
    let is_news = match change {
        Change::Added(_) => is_ours && tracker.is_news(new),
        Change::Resync(_) => false,
        Change::Deleted(_) => is_ours && tracker.has(new) && !tracker.was_deletion_expected(new),
        Change::Updated { old, .. } => {
            let old = &old.metadata;
            if label(old, SERVICE_NAME) != label(new, SERVICE_NAME) {
                return [old, new].into_iter().filter_map(service_of).collect();
            }
            is_managed_by(old, manager) != is_ours || is_ours && tracker.is_news(new)
        }
    };
    let key = service_of(new).filter(|_| is_news);
    key.into_iter().collect()
}

/// What the server says about slices of which the watch told; `None` when one is not that one any
/// more, which the watch is about to tell too.
pub(crate) async fn read(
    client: &Client,
    namespace: &str,
    known: &[Arc<SliceMeta>],
) -> Result<Option<Vec<EndpointSlice>>, kube::Error> {
    let api = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let mut slices = Vec::with_capacity(known.len());
    for one in known {
        let name = one.metadata.name.as_deref().unwrap_or_default();
        let found = api.get_opt(name).await?;
        let Some(mut slice) = found.filter(|slice| slice.metadata.uid == one.metadata.uid) else {
            return Ok(None);
        };
        // The server knows who owns which field.
        slice.metadata.managed_fields = None;
        slices.push(slice);
    }
    Ok(Some(slices))
}

/// With a dash, which looks better, if the name leaves room for one.
pub(crate) fn name_prefix(service: &str) -> String {
    if service.len() < NAME_LENGTH_MAX {
        format!("{service}-")
    } else {
        service.to_owned()
    }
}

/// What makes an endpoint the same one: its addresses, its name and its pod's name. The rest of it
/// may change where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointKey {
    addresses: Vec<String>,
    hostname: String,
    target: (String, String),
}

impl EndpointKey {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let mut addresses = endpoint.addresses.clone();
        addresses.sort();
        let target = endpoint.target_ref.as_ref();
        let target = target.map(|target| (target.namespace.clone(), target.name.clone()));
        let (namespace, name) = target.unwrap_or_default();
        Self {
            addresses,
            hostname: endpoint.hostname.clone().unwrap_or_default(),
            target: (namespace.unwrap_or_default(), name.unwrap_or_default()),
        }
    }
}

/// Whether two endpoints of the same key say the same; hints aside, and of what revision the
/// target is.
pub(crate) fn says_the_same(one: &Endpoint, other: &Endpoint) -> bool {
    let conditions = |endpoint: &Endpoint| endpoint.conditions.clone().unwrap_or_default();
    one.node_name == other.node_name
        && one.zone == other.zone
        && conditions(one) == conditions(other)
        && target(one) == target(other)
}

fn target(endpoint: &Endpoint) -> Option<[&str; 6]> {
    let target = endpoint.target_ref.as_ref()?;
    let fields = [
        &target.kind,
        &target.namespace,
        &target.name,
        &target.uid,
        &target.api_version,
        &target.field_path,
    ];
    Some(fields.map(|field| field.as_deref().unwrap_or_default()))
}

/// Ports in upstream's order: two slices have the same ports when these are equal.
pub(crate) fn sorted(mut ports: Vec<EndpointPort>) -> Vec<EndpointPort> {
    ports.sort_by_cached_key(Order::of_slice_port);
    ports
}

pub(crate) fn endpoints_of(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
