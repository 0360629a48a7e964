//! The plugins: one file each, and the one list (`registry`) that names them all.
//!
//! To add one: a file here with a type that implements `Plugin`, and a row in `registry::ROWS`.

pub mod priority_sort;
pub mod scheduling_gates;

pub mod node_declared_features;
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

pub mod dynamic_resources;

pub mod default_preemption;

pub mod inter_pod_affinity;
pub mod pod_topology_spread;

pub mod image_locality;

pub mod default_binder;

pub mod registry; // The list of them all; how profiles are made of it.

#[cfg(test)]
pub(crate) mod scene; // Worlds in text for the tests of plugins.

use crate::framework::Profile;
use crate::views::Views;
use coracle_client::Client;

/// Upstream's plugins with upstream's weights, in upstream's order.
pub fn default_profile(scheduler_name: &str, client: &Client, views: &Views) -> Profile {
    registry::Plan::new(scheduler_name).build(client, views)
}
