//! The one table of resources: a kind that is not listed here does not exist.
//!
//! Discovery, routing, authorization and OpenAPI read it; adding a kind is a folder under `kinds`
//! and a line here. The order is the one discovery shows: groups as upstream lists them, plurals
//! sorted within a group version.

use crate::kinds;
use crate::resource::Resource;

static ALL: &[Resource] = &[
    kinds::review::BINDINGS,
    kinds::component_status::ROW,
    kinds::config_map::ROW,
    kinds::endpoints::ROW,
    kinds::event::ROW,
    kinds::limit_range::ROW,
    kinds::namespace::ROW,
    kinds::node::ROW,
    kinds::persistent_volume_claim::ROW,
    kinds::persistent_volume::ROW,
    kinds::pod::ROW,
    kinds::pod_template::ROW,
    kinds::replication_controller::ROW,
    kinds::resource_quota::ROW,
    kinds::secret::ROW,
    kinds::service_account::ROW,
    kinds::service::ROW,
    kinds::api_service::ROW,
    kinds::controller_revision::ROW,
    kinds::daemon_set::ROW,
    kinds::deployment::ROW,
    kinds::replica_set::ROW,
    kinds::stateful_set::ROW,
    kinds::event::NEW_ROW,
    kinds::review::SELF_SUBJECT_REVIEWS,
    kinds::review::TOKEN_REVIEWS,
    kinds::review::LOCAL_SUBJECT_ACCESS_REVIEWS,
    kinds::review::SELF_SUBJECT_ACCESS_REVIEWS,
    kinds::review::SELF_SUBJECT_RULES_REVIEWS,
    kinds::review::SUBJECT_ACCESS_REVIEWS,
    kinds::horizontal_pod_autoscaler::ROW,
    kinds::horizontal_pod_autoscaler::V1_ROW,
    kinds::cron_job::ROW,
    kinds::job::ROW,
    kinds::certificate_signing_request::ROW,
    kinds::ingress_class::ROW,
    kinds::ingress::ROW,
    kinds::ip_address::ROW,
    kinds::network_policy::ROW,
    kinds::service_cidr::ROW,
    kinds::pod_disruption_budget::ROW,
    kinds::rbac::CLUSTER_ROLE_BINDINGS,
    kinds::rbac::CLUSTER_ROLES,
    kinds::rbac::ROLE_BINDINGS,
    kinds::rbac::ROLES,
    kinds::csi_driver::ROW,
    kinds::csi_node::ROW,
    kinds::csi_storage_capacity::ROW,
    kinds::storage_class::ROW,
    kinds::volume_attachment::ROW,
    kinds::volume_attributes_class::ROW,
    kinds::mutating_admission_policy::ROW,
    kinds::mutating_admission_policy_binding::ROW,
    kinds::webhook_configuration::MUTATING,
    kinds::validating_admission_policy::ROW,
    kinds::validating_admission_policy_binding::ROW,
    kinds::webhook_configuration::VALIDATING,
    kinds::custom_resource_definition::ROW,
    kinds::priority_class::ROW,
    kinds::lease::ROW,
    kinds::runtime_class::ROW,
    kinds::endpoint_slice::ROW,
    kinds::device_class::ROW,
    kinds::resource_claim::ROW,
    kinds::resource_claim_template::ROW,
    kinds::resource_slice::ROW,
    kinds::flow_schema::ROW,
    kinds::priority_level_configuration::ROW,
    kinds::metrics::NODES,
    kinds::metrics::PODS,
];

/// An API group with its served versions, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Empty for the core group.
    pub name: &'static str,
    pub versions: &'static [&'static str],
}

/// Groups in the order of discovery. A group is served when a resource of it is in the table.
static GROUPS: &[Group] = &[
    Group::new("", &["v1"]),
    Group::new("apiregistration.k8s.io", &["v1"]),
    Group::new("apps", &["v1"]),
    Group::new("events.k8s.io", &["v1"]),
    Group::new("authentication.k8s.io", &["v1"]),
    Group::new("authorization.k8s.io", &["v1"]),
    Group::new("autoscaling", &["v2", "v1"]),
    Group::new("batch", &["v1"]),
    Group::new("certificates.k8s.io", &["v1"]),
    Group::new("networking.k8s.io", &["v1"]),
    Group::new("policy", &["v1"]),
    Group::new("rbac.authorization.k8s.io", &["v1"]),
    Group::new("storage.k8s.io", &["v1"]),
    Group::new("admissionregistration.k8s.io", &["v1"]),
    Group::new("apiextensions.k8s.io", &["v1"]),
    Group::new("scheduling.k8s.io", &["v1"]),
    Group::new("coordination.k8s.io", &["v1"]),
    Group::new("node.k8s.io", &["v1"]),
    Group::new("discovery.k8s.io", &["v1"]),
    Group::new("resource.k8s.io", &["v1"]),
    Group::new("flowcontrol.apiserver.k8s.io", &["v1"]),
    Group::new(kinds::metrics::GROUP, &["v1beta1"]),
];

impl Group {
    const fn new(name: &'static str, versions: &'static [&'static str]) -> Self {
        Self { name, versions }
    }
}

/// Every resource, in the order of discovery.
pub fn all() -> &'static [Resource] {
    ALL
}

pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    ALL.iter()
        .find(|row| row.plural == plural && row.group == group && row.version == version)
}

pub fn by_kind(group: &str, version: &str, kind: &str) -> Option<&'static Resource> {
    ALL.iter()
        .find(|row| row.kind == kind && row.group == group && row.version == version)
}

/// The resource that owns the stored objects of `group` and `plural`.
pub fn stored(group: &str, plural: &str) -> Option<&'static Resource> {
    ALL.iter()
        .find(|row| row.group == group && row.plural == plural && !row.is_second_view)
}

/// The groups that have a resource, in the order of discovery.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    GROUPS
        .iter()
        .filter(|group| ALL.iter().any(|row| row.group == group.name))
}

/// The resources of one group version, in the order of discovery.
pub fn of_version(group: &str, version: &str) -> impl Iterator<Item = &'static Resource> {
    ALL.iter()
        .filter(move |row| row.group == group && row.version == version)
}

#[cfg(test)]
mod tests;
