//! The scheduler: picks a node for each pod that names it, and binds the pod there.
//!
//! An ordinary Kubernetes client: it reads Pods, Nodes, claims and volumes, writes Bindings, pod
//! conditions, events and what claims were given, and knows no other part of Coracle. See docs/scheduler.md.

mod sharing; // Equal values kept once.

pub mod selector; // Label selectors of typed objects.

pub mod pod_info; // What the scheduler needs of a pod, computed once.
pub mod resources; // Amounts of cpu, memory and the rest.

pub mod node_facts; // What the scheduler needs of a node.
pub mod node_info; // A node with the pods that are, or are assumed to be, on it.

pub mod cache; // The world: nodes, pods, assumed pods; and its snapshots.

pub mod volumes; // Claims, volumes and classes, and what was given away ahead of the API.

pub mod devices; // Claims, classes and slices of devices, and what was allocated ahead of the API.

pub mod views; // What plugins see beside nodes and pods.

mod laps; // What a cycle took.

pub mod framework; // Extension points, verdicts, profiles.
pub mod plugins; // One file each; one list.

pub mod queue; // Which pod is next, and which wait for what.

pub mod cycle; // One pod: filter, score, choose. Pure over a snapshot.

pub mod configuration; // A KubeSchedulerConfiguration.
pub mod explain; // Every filter's verdict and every score of one pod. Pure.

pub mod metrics; // What is counted, under upstream's names.

mod binding; // Off the cycle: reserve, permit, bind, or undo.
mod events; // From informers to cache and queue.
mod preemption; // Off the cycle: ends the pods that must make room for another.
mod report; // What a user sees: events and conditions.
#[cfg(test)]
mod scenes; // Worlds in text for all plugins together.
mod scheduler; // The loop.
mod watched; // The world as informers keep it.

pub use configuration::Configuration;
pub use explain::explain_pod;
pub use scheduler::{Config, run};
