//! What deletions of the kinds differ in: what a client is told, and what becomes of dependents
//! when it does not say.

use crate::resource::Resource;

/// What becomes of the objects that an owner leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultPolicy {
    /// The garbage collector deletes them.
    Delete,
    /// They stay: the older rule of kinds that had no collector at first.
    Orphan,
    /// The kind has no dependents and takes no wish about them.
    Unsupported,
}

/// Resources whose deletion is answered with the deleted object; others are with a Status.
const ANSWERED_WITH_OBJECT: &[(&str, &str)] = &[
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

pub fn is_answered_with_object(resource: &Resource) -> bool {
    ANSWERED_WITH_OBJECT.contains(&(resource.group, resource.plural))
}

pub fn default_policy(resource: &Resource) -> DefaultPolicy {
    match resource.stored_as {
        ("", "events") => DefaultPolicy::Unsupported,
        ("", "replicationcontrollers") | ("batch", "jobs") => DefaultPolicy::Orphan,
        _ => DefaultPolicy::Delete,
    }
}

/// What a client is warned of that leaves dependents behind without having said so.
pub fn warning(resource: &Resource) -> Option<&'static str> {
    (resource.stored_as == ("batch", "jobs")).then_some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=\
         Background to remove them or set propagationPolicy=Orphan to suppress this warning",
    )
}
