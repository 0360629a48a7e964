//! The Node object from what is known of the machine. Pure.

use super::allocatable;
use super::facts::Facts;
use crate::families::Families;
use crate::images::ImageInfo;
use crate::runtime::Handler;
use crate::{Config, Resources};
use coracle_api::amounts::Amounts;
use coracle_api::pod_spec::resources::is_extended;
use coracle_client::volumes::LOCAL_PATH_DIRECTORY;
use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeFeatures,
    NodeRuntimeHandler, NodeRuntimeHandlerFeatures, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The version of Kubernetes whose kubelet this node stands in for.
pub const KUBELET_VERSION: &str = "v1.36.0";
/// Upstream reports the largest images alone; the scheduler looks at no more.
const IMAGES_MAX: usize = 50;
const IMAGE_NAMES_MAX: usize = 5;
/// The kubelet's port. Nothing listens there unless the node has joined a cluster whose API server
/// dials: requests come back over the node's own connection.
const KUBELET_PORT: u16 = 10250;

pub fn labels(config: &Config, facts: &Facts) -> BTreeMap<String, String> {
    let own = [
        ("beta.kubernetes.io/arch", facts.architecture.as_str()),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", facts.architecture.as_str()),
        ("kubernetes.io/hostname", config.node_name.as_str()),
        ("kubernetes.io/os", "linux"),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    own.into_iter()
        .chain(config.labels.iter().cloned())
        .collect()
}

pub fn annotations(config: &Config) -> BTreeMap<String, String> {
    let attach = "volumes.kubernetes.io/controller-managed-attach-detach";
    let mut annotations = BTreeMap::from([(attach.to_owned(), "true".to_owned())]);
    if let Some(directory) = &config.local_path_dir {
        let directory = directory.display().to_string();
        annotations.insert(LOCAL_PATH_DIRECTORY.to_owned(), directory);
    }
    annotations
}

/// The Node to create when there is none.
pub fn node(config: &Config, facts: &Facts) -> Node {
    let taints: Vec<_> = config
        .taints
        .iter()
        .map(|(key, value, effect)| Taint {
            key: key.clone(),
            value: (!value.is_empty()).then(|| value.clone()),
            effect: effect.clone(),
            time_added: None,
        })
        .collect();
    Node {
        metadata: ObjectMeta {
            name: Some(config.node_name.clone()),
            labels: Some(labels(config, facts)),
            annotations: Some(annotations(config)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: (!taints.is_empty()).then_some(taints),
            ..NodeSpec::default()
        }),
        status: None,
    }
}

/// Of what only some nodes can do, as schedulers and upstream's API server ask for it. Sorted.
const DECLARED_FEATURES: [&str; 3] = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "RestartAllContainersOnContainerExits",
];

/// Where an API server that dials finds the node.
pub fn endpoints(port: u16) -> NodeDaemonEndpoints {
    let port = i32::from(port);
    NodeDaemonEndpoints {
        kubelet_endpoint: Some(DaemonEndpoint { port }),
    }
}

/// Types of the addresses that the node itself knows.
const INTERNAL_IP: &str = "InternalIP";
const HOSTNAME: &str = "Hostname";

/// All of the status but conditions, which need the time.
pub fn status(
    node_name: &str,
    internal_ips: Families<IpAddr>,
    facts: &Facts,
    resources: &Resources,
    runtime_version: &str,
    images: &[ImageInfo],
) -> NodeStatus {
    let address = |type_: &str, address: String| NodeAddress {
        type_: type_.to_owned(),
        address,
    };
    let addresses = internal_ips
        .iter()
        .map(|ip| address(INTERNAL_IP, ip.to_string()));
    let hostname = address(HOSTNAME, node_name.to_owned());
    let capacity = allocatable::capacity(facts, resources);
    let allocatable = allocatable::allocatable(&capacity, resources);
    NodeStatus {
        addresses: Some(addresses.chain([hostname]).collect()),
        capacity: Some(resource_list(&capacity)),
        allocatable: Some(resource_list(&allocatable)),
        declared_features: Some(DECLARED_FEATURES.map(str::to_owned).to_vec()),
        daemon_endpoints: Some(endpoints(KUBELET_PORT)),
        features: Some(NodeFeatures {
            supplemental_groups_policy: Some(facts.has_strict_groups),
        }),
        images: Some(image_list(images)),
        runtime_handlers: runtime_handlers(facts),
        node_info: Some(NodeSystemInfo {
            architecture: facts.architecture.clone(),
            boot_id: facts.boot_id.clone(),
            container_runtime_version: runtime_version.to_owned(),
            kernel_version: facts.kernel_version.clone(),
            kube_proxy_version: String::new(),
            kubelet_version: KUBELET_VERSION.to_owned(),
            machine_id: facts.machine_id.clone(),
            operating_system: "linux".to_owned(),
            os_image: facts.os_image.clone(),
            swap: None,
            system_uuid: facts.system_uuid.clone(),
        }),
        ..NodeStatus::default()
    }
}

/// What others have said that the node has, such as its devices, stays, and all of it is for pods.
pub fn keep_extended(status: &mut NodeStatus, old: &NodeStatus) {
    let known = old.capacity.iter().flatten();
    for (name, amount) in known.filter(|(name, _)| is_extended(name)) {
        for list in [&mut status.capacity, &mut status.allocatable] {
            let list = list.get_or_insert_default();
            list.insert(name.clone(), amount.clone());
        }
    }
}

/// So does where else the node is known: the address outside that someone gave it.
pub fn keep_foreign_addresses(status: &mut NodeStatus, old: &NodeStatus) {
    let own = [HOSTNAME, INTERNAL_IP];
    let known = old.addresses.iter().flatten();
    let foreign = known.filter(|address| !own.contains(&address.type_.as_str()));
    let all = status.addresses.get_or_insert_default();
    all.extend(foreign.cloned());
}

/// None of a runtime that does not tell.
fn runtime_handlers(facts: &Facts) -> Option<Vec<NodeRuntimeHandler>> {
    let handler = |handler: &Handler| NodeRuntimeHandler {
        name: Some(handler.name.clone()),
        features: Some(NodeRuntimeHandlerFeatures {
            recursive_read_only_mounts: Some(handler.has_recursive_read_only),
            user_namespaces: Some(handler.has_user_namespaces),
        }),
    };
    let all: Vec<_> = facts.handlers.iter().map(handler).collect();
    (!all.is_empty()).then_some(all)
}

pub fn resource_list(amounts: &Amounts) -> BTreeMap<String, Quantity> {
    let amounts = amounts.iter();
    amounts
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_string())))
        .collect()
}

fn image_list(images: &[ImageInfo]) -> Vec<ContainerImage> {
    let mut images: Vec<_> = images.iter().collect();
    images.sort_by(|left, right| {
        let size = right.size_bytes.cmp(&left.size_bytes);
        size.then_with(|| left.id.cmp(&right.id))
    });
    images
        .into_iter()
        .take(IMAGES_MAX)
        .map(|image| {
            let mut names = image.digests.clone();
            names.extend(image.names.iter().cloned());
            names.truncate(IMAGE_NAMES_MAX);
            ContainerImage {
                names: Some(names),
                size_bytes: i64::try_from(image.size_bytes).ok(),
            }
        })
        .collect()
}
