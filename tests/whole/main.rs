//! Whole-binary tests: real processes, real kubectl, real containers.
//!
//! Each test lays out its own network (namespaces on one bridge), its own data directories and
//! its own ports, so they run side by side and beside whatever the machine does. They need root.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod capture; // What passes between hosts.
mod hostile_registry; // Serves images that are bad.
mod lab; // Hosts in network namespaces, and what runs on them.
mod overload;
mod pictures; // Image archives made from this machine's busybox.

mod aggregation;
mod autoscaling;
mod bad_containers;
mod bad_images;
mod caretakers;
mod claims;
mod cni;
mod command_line;
mod confinement;
mod connections;
mod containerd;
mod containers;
mod csi;
mod csi_driver; // A driver of volumes.
mod custom_resources;
mod disks;
mod dual_stack;
mod encrypted;
mod endpoints;
mod everyday;
mod faults;
mod first_steps;
mod foreign_clients;
mod identity;
mod ingress;
mod inside;
mod jobs;
mod joining;
mod leaders;
mod manifests;
mod metrics;
mod names;
mod node_care;
mod node_endpoints;
mod node_pressure;
mod oidc;
mod pod_network;
mod pod_shapes;
mod policies;
mod power;
mod preemption;
mod registry;
mod roles;
mod schedulers;
mod secrets_at_rest;
mod server_settings;
mod server_side_apply;
mod services;
mod snapshots;
mod stateful_sets;
mod static_pods;
mod storage;
mod walkthroughs;
mod webhooks;
mod workloads;
