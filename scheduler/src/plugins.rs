//! The plugins: one file each, and the one list that names them all.
//!
//! To add one: a file here with a type that implements `Plugin`, and a row in `default_profile`.

pub mod priority_sort;
pub mod scheduling_gates;

pub mod node_name;
pub mod node_unschedulable;

pub mod taint_toleration;

pub mod node_affinity;
pub mod node_selector; // How node selector terms match; no plugin.

pub mod node_ports;

pub mod node_resources; // What nodes have and give away, for scores; no plugin.
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;

pub mod node_volume_limits;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

pub mod default_preemption;

pub mod inter_pod_affinity;
pub mod pod_topology_spread;

pub mod image_locality;

pub mod default_binder;

#[cfg(test)]
pub(crate) mod scene; // Worlds in text for the tests of plugins.

use crate::framework::Profile;
use crate::views::Views;
use coracle_client::Client;
use std::sync::Arc;

/// Upstream's plugins with upstream's weights, in upstream's order of filters.
pub fn default_profile(scheduler_name: &str, client: Client, views: &Views) -> Profile {
    let volume_binding = volume_binding::VolumeBinding::new(
        client.clone(),
        Arc::clone(&views.cache),
        Arc::clone(&views.volumes),
    );
    let volumes = || Arc::clone(&views.volumes);
    let volume_restrictions = volume_restrictions::VolumeRestrictions::new(volumes());
    let volume_limits = node_volume_limits::NodeVolumeLimits::new(volumes());
    let volume_zone = volume_zone::VolumeZone::new(volumes());
    let affinity = inter_pod_affinity::InterPodAffinity::new(
        views.namespaces.clone(),
        inter_pod_affinity::Args::default(),
    );
    let spread = pod_topology_spread::PodTopologySpread::new(views.owners.clone());
    Profile::new(
        scheduler_name,
        vec![
            (Arc::new(scheduling_gates::SchedulingGates), 0),
            (Arc::new(priority_sort::PrioritySort), 0),
            (Arc::new(node_unschedulable::NodeUnschedulable), 0),
            (Arc::new(node_name::NodeName), 0),
            (Arc::new(taint_toleration::TaintToleration), 3),
            (Arc::new(node_affinity::NodeAffinity::default()), 2),
            (Arc::new(node_ports::NodePorts), 0),
            (Arc::new(node_resources_fit::NodeResourcesFit::default()), 1),
            (Arc::new(volume_restrictions), 0),
            (Arc::new(volume_limits), 0),
            (Arc::new(volume_binding), 0),
            (Arc::new(volume_zone), 0),
            (Arc::new(spread), 2),
            (Arc::new(affinity), 2),
            (Arc::new(default_preemption::DefaultPreemption), 0),
            (
                Arc::new(node_resources_balanced_allocation::BalancedAllocation::default()),
                1,
            ),
            (Arc::new(image_locality::ImageLocality), 1),
            (Arc::new(default_binder::DefaultBinder::new(client)), 0),
        ],
    )
}
