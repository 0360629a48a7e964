//! Services as the loops of endpoints know them: what they read, and nothing else.
//!
//! An informer of this kind holds a fraction of what whole Services take. `touched` and
//! `selecting` answer quickly however many Services there are: each is found by the first pair of
//! its selector, never by trying all.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::names::sloppy_ip;
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Pod, ServicePort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Deserializer};

use crate::labels::Selector;
use crate::pods;

/// Annotations that are kept: whether hints of topology are asked for.
pub(crate) const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
pub(crate) const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
/// On what belongs to a Service that has no address of its own.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";
/// When the change happened that an object follows.
pub(crate) const LAST_CHANGE: &str = "endpoints.kubernetes.io/last-change-trigger-time";

const BY_SELECTOR: &str = "selector";

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Service {
    #[serde(deserialize_with = "trimmed")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    #[serde(rename = "type")]
    kind: Option<String>,
    selector: Option<BTreeMap<String, String>>,
    pub(crate) ports: Vec<ServicePort>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
    pub(crate) ip_families: Vec<Family>,
    pub(crate) publish_not_ready_addresses: bool,
    pub(crate) traffic_distribution: Option<String>,
}

/// Of addresses; a slice holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub(crate) enum Family {
    IPv4,
    IPv6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::IPv4,
            IpAddr::V6(_) => Self::IPv6,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
        }
    }
}

/// Keeps of the metadata what is read.
fn trimmed<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let mut meta = ObjectMeta::deserialize(from)?;
    meta.managed_fields = None;
    meta.finalizers = None;
    meta.annotations = meta.annotations.and_then(|mut annotations| {
        annotations.retain(|name, _| name == TOPOLOGY_HINTS || name == TOPOLOGY_MODE);
        (!annotations.is_empty()).then_some(annotations)
    });
    Ok(meta)
}

impl kube::Resource for Service {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Service".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "services".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Service {
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// `NAMESPACE/NAME`, as messages say it.
    pub(crate) fn text(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }

    /// None when the Service chooses no pods: somebody else says where it leads.
    pub(crate) fn selector(&self) -> Option<&BTreeMap<String, String>> {
        let selector = self.spec.selector.as_ref();
        selector.filter(|selector| !selector.is_empty())
    }

    pub(crate) fn is_external_name(&self) -> bool {
        self.spec.kind.as_deref() == Some("ExternalName")
    }

    pub(crate) fn is_headless(&self) -> bool {
        self.spec.cluster_ip.as_deref() == Some("None")
    }

    /// Has an address of its own.
    pub(crate) fn has_address(&self) -> bool {
        !matches!(self.spec.cluster_ip.as_deref(), None | Some("" | "None"))
    }

    /// The family of its own address, if it has one.
    pub(crate) fn family_of_address(&self) -> Option<Family> {
        let address = self
            .spec
            .cluster_ip
            .as_deref()
            .filter(|_| self.has_address());
        address.map(|address| parse_address(address).map_or(Family::IPv4, Family::of))
    }

    /// The host name under which the Service makes this pod known.
    pub(crate) fn host_name_of<'a>(&self, pod: &'a Pod) -> Option<&'a String> {
        let spec = pod.spec.as_ref()?;
        let hostname = spec.hostname.as_ref().filter(|name| !name.is_empty())?;
        let is_ours = spec.subdomain.as_deref().unwrap_or_default() == self.name()
            && pod.metadata.namespace == self.metadata.namespace;
        is_ours.then_some(hostname)
    }
}

/// Reads addresses as they were always read: zeros may lead, and an IPv4 address in IPv6 is IPv4.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    sloppy_ip(text).map(|address| address.to_canonical())
}

/// Whether a pod has a place among the endpoints of Services.
pub(crate) fn is_endpoint(pod: &Pod, with_terminating: bool) -> bool {
    let status = pod.status.as_ref();
    let has_address = status.is_some_and(|status| {
        status.pod_ip.as_ref().is_some_and(|ip| !ip.is_empty())
            || status.pod_ips.as_ref().is_some_and(|all| !all.is_empty())
    });
    has_address && !pods::is_finished(pod) && (with_terminating || !pods::is_deleting(pod))
}

/// The addresses of a pod, in its order.
pub(crate) fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    let all = pod.status.iter().flat_map(|status| status.pod_ips.iter());
    all.flatten().filter_map(|one| parse_address(&one.ip))
}

/// The number behind a port of a Service in this pod: its own, or the one that is called so.
pub(crate) fn find_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match port.target_port.as_ref() {
        None => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|one| one.restart_policy.as_deref() == Some("Always"));
    let containers = spec.containers.iter().chain(sidecars);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let protocol = |text: &Option<String>| text.clone().unwrap_or_else(|| "TCP".to_owned());
    let found = ports.find(|found| {
        found.name.as_ref() == Some(name) && protocol(&found.protocol) == protocol(&port.protocol)
    });
    found.map(|found| found.container_port)
}

/// Must be called before `selecting`; again is harmless.
fn index(services: &Informer<Service>) {
    services.add_index(BY_SELECTOR, |service| {
        let first = service.selector().and_then(BTreeMap::first_key_value);
        let pair = first.map(|(key, value)| pair(service.namespace(), key, value));
        pair.into_iter().collect()
    });
}

/// Queues a Service when it changes, or a pod that it chooses or chose.
pub(crate) fn follow(
    services: &Informer<Service>,
    pods: &Informer<Pod>,
    queue: &WorkQueue<ObjectKey>,
) {
    index(services);
    let added = queue.clone();
    services.on_change(move |change| added.add(key_of(change.object().as_ref())));
    let (services, added) = (services.clone(), queue.clone());
    pods.on_change(move |change| {
        for key in touched(&services, change) {
            added.add(key);
        }
    });
}

fn pair(namespace: &str, key: &str, value: &str) -> String {
    format!("{namespace}/{key}={value}")
}

/// The Services of which a pod with these labels is one.
pub(crate) fn selecting(services: &Informer<Service>, pod: &ObjectMeta) -> BTreeSet<ObjectKey> {
    let namespace = pod.namespace.as_deref().unwrap_or_default();
    let labels = pod.labels.iter().flatten();
    let candidates = labels
        .flat_map(|(key, value)| services.by_index(BY_SELECTOR, &pair(namespace, key, value)));
    let chosen = candidates
        .filter(|service| Selector::from_map(service.selector()).matches(pod.labels.as_ref()));
    chosen.map(|service| key_of(service.as_ref())).collect()
}

/// The Services to look at again after a pod changed.
fn touched(services: &Informer<Service>, change: &Change<Pod>) -> BTreeSet<ObjectKey> {
    let (old, new) = match change {
        Change::Added(pod) | Change::Deleted(pod) => return selecting(services, &pod.metadata),
        Change::Resync(_) => return BTreeSet::new(), // Services have their own.
        Change::Updated { old, new } => (old, new),
    };
    let name = |pod: &Pod| {
        let spec = pod.spec.as_ref();
        spec.map(|spec| (spec.hostname.clone(), spec.subdomain.clone()))
    };
    let has_changed = is_changed(old, new);
    let is_renamed = old.metadata.labels != new.metadata.labels || name(old) != name(new);
    match (has_changed, is_renamed) {
        (false, false) => BTreeSet::new(),
        (true, false) => selecting(services, &new.metadata),
        (_, true) => {
            let mut all = selecting(services, &old.metadata);
            all.extend(selecting(services, &new.metadata));
            all
        }
    }
}

/// Whether a pod is another endpoint than before.
fn is_changed(old: &Pod, new: &Pod) -> bool {
    old.metadata.uid != new.metadata.uid
        || pods::is_deleting(old) != pods::is_deleting(new)
        || pods::is_finished(old) != pods::is_finished(new)
        || pods::is_ready(old) != pods::is_ready(new)
        || pods::node_name(old) != pods::node_name(new)
        || !addresses(old).eq(addresses(new))
}

/// The pods that a Service chooses, by name.
pub(crate) fn pods_of(service: &Service, pods: &Informer<Pod>) -> Vec<Arc<Pod>> {
    let selector = Selector::from_map(service.selector());
    let mut chosen = pods.list_namespace(service.namespace());
    chosen.retain(|pod| selector.matches(pod.metadata.labels.as_ref()));
    chosen
}

#[cfg(test)]
mod tests;
