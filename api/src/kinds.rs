//! One file or folder a kind: its row in the catalogue, and its rules.
//!
//! `row` has the shapes that rows share, `prepare` and `checks` the pieces that strategies and
//! validations are made of, `plain` the rules of a kind that has none of its own.

pub mod admission_registration;
pub mod checks;
pub mod devices;
pub mod flow_control;
pub mod plain;
pub mod prepare;
pub mod row;
pub mod storage;
pub mod workload;

pub mod api_service;
pub mod certificate_signing_request;
pub mod component_status;
pub mod config_map;
pub mod controller_revision;
pub mod cron_job;
pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
pub mod custom_resource_definition;
pub mod daemon_set;
pub mod deployment;
pub mod device_class;
pub mod endpoint_slice;
pub mod endpoints;
pub mod event;
pub mod flow_schema;
pub mod horizontal_pod_autoscaler;
pub mod ingress;
pub mod ingress_class;
pub mod ip_address;
pub mod job;
pub mod lease;
pub mod limit_range;
pub mod metrics;
pub mod mutating_admission_policy;
pub mod mutating_admission_policy_binding;
pub mod namespace;
pub mod network_policy;
pub mod node;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_disruption_budget;
pub mod pod_template;
pub mod priority_class;
pub mod priority_level_configuration;
pub mod rbac;
pub mod replica_set;
pub mod replication_controller;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_quota;
pub mod resource_slice;
pub mod review;
pub mod runtime_class;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod service_cidr;
pub mod stateful_set;
pub mod storage_class;
pub mod validating_admission_policy;
pub mod validating_admission_policy_binding;
pub mod volume_attachment;
pub mod volume_attributes_class;
pub mod webhook_configuration;

#[cfg(test)]
mod testing;
