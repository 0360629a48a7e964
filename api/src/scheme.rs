//! Which kinds upstream's decoders know, and what they say of a body of another kind than the
//! endpoint takes.
//!
//! Upstream has a scheme for each of the servers it is made of; a kind that is known there is
//! converted, and one that is not is refused by the scheme's name. The names are facts of v1.36.

use crate::catalogue;
use crate::decode::quoted;
use crate::resource::Resource;

const EXTENSIONS: &str = "apiextensions.k8s.io";
const REGISTRATIONS: &str = "apiregistration.k8s.io";
const OPTIONS: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// Kinds that every group version has.
const EVERYWHERE: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// Kinds without an endpoint of their own, and versions that are known and no longer served.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "v1",
        &[
            "APIGroup",
            "APIGroupList",
            "APIResourceList",
            "APIVersions",
            "List",
            "NodeProxyOptions",
            "PodAttachOptions",
            "PodExecOptions",
            "PodLogOptions",
            "PodPortForwardOptions",
            "PodProxyOptions",
            "PodStatusResult",
            "RangeAllocation",
            "SerializedReference",
            "ServiceProxyOptions",
            "Status",
        ],
    ),
    (
        "meta.k8s.io/v1",
        &[
            "APIGroup",
            "APIGroupList",
            "APIResourceList",
            "APIVersions",
            "Status",
        ],
    ),
    ("apiextensions.k8s.io/v1", &["ConversionReview"]),
    (
        "apps/v1beta1",
        &["ControllerRevision", "Deployment", "Scale", "StatefulSet"],
    ),
    (
        "apps/v1beta2",
        &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "Scale",
            "StatefulSet",
        ],
    ),
    (
        "extensions/v1beta1",
        &[
            "DaemonSet",
            "Deployment",
            "Ingress",
            "NetworkPolicy",
            "ReplicaSet",
            "Scale",
        ],
    ),
    ("autoscaling/v2beta1", &["HorizontalPodAutoscaler"]),
    ("autoscaling/v2beta2", &["HorizontalPodAutoscaler"]),
    ("batch/v1beta1", &["CronJob"]),
    (
        "certificates.k8s.io/v1beta1",
        &["CertificateSigningRequest"],
    ),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    ("events.k8s.io/v1beta1", &["Event"]),
    (
        "networking.k8s.io/v1beta1",
        &["IPAddress", "Ingress", "IngressClass", "ServiceCIDR"],
    ),
    ("node.k8s.io/v1beta1", &["RuntimeClass"]),
    ("policy/v1beta1", &["Eviction", "PodDisruptionBudget"]),
    (
        "rbac.authorization.k8s.io/v1beta1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "storage.k8s.io/v1beta1",
        &[
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
            "StorageClass",
            "VolumeAttachment",
        ],
    ),
];

/// A kind of one group version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
}

impl<'a> Kind<'a> {
    fn group(self) -> &'a str {
        let (group, _) = self.api_version.split_once('/').unwrap_or(("", ""));
        group
    }

    fn version(self) -> &'a str {
        let (_, version) = self
            .api_version
            .split_once('/')
            .unwrap_or(("", self.api_version));
        version
    }

    /// What a body leaves out is taken to be as the endpoint has it.
    fn or(self, expected: Self) -> Self {
        let api_version = match self.api_version {
            "" | "/" => expected.api_version,
            given => given.strip_prefix('/').unwrap_or(given),
        };
        let kind = if self.kind.is_empty() {
            expected.kind
        } else {
            self.kind
        };
        Self { api_version, kind }
    }

    /// Eviction came from a version that is gone, with the same fields.
    fn is_taken_as(self, expected: Self) -> bool {
        let eviction = ["policy/v1", "policy/v1beta1"];
        let is_eviction = |one: Self| one.kind == "Eviction" && eviction.contains(&one.api_version);
        self == expected || is_eviction(self) && is_eviction(expected)
    }

    fn is_version_of(self, expected: Self) -> bool {
        self.kind == expected.kind && self.is_known_beside(expected)
    }

    fn is_known_beside(self, expected: Self) -> bool {
        let group = expected.group();
        if group == EXTENSIONS || group == REGISTRATIONS {
            return self.group() == group && is_known(self);
        }
        !matches!(self.group(), EXTENSIONS | REGISTRATIONS) && is_known(self)
    }

    /// The name that upstream's internal package of the kind has.
    fn package(self) -> &'a str {
        match self.group() {
            // Events are one kind in two groups.
            "" | "events.k8s.io" => "core",
            group => group.split('.').next().unwrap_or(group),
        }
    }
}

/// Why a body of the kind `found` is none of `expected`; `None` when it is. Empty fields of
/// `found` are not told.
pub fn refusal(expected: Kind<'_>, found: Kind<'_>) -> Option<String> {
    let found = found.or(expected);
    if found.is_taken_as(expected) {
        return None;
    }
    if found.is_version_of(expected) {
        return Some(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            found.api_version, expected.api_version
        ));
    }
    let why = mismatch(expected, found)?;
    Some(format!(
        "{} in version {} cannot be handled as a {}: {why}",
        found.kind,
        quoted(found.version()),
        expected.kind
    ))
}

/// Why what a patch made is not of the kind that it was; `None` when it is, or of another version
/// of it.
pub fn mismatch(expected: Kind<'_>, found: Kind<'_>) -> Option<String> {
    let found = found.or(expected);
    if found.is_taken_as(expected) || found.is_version_of(expected) {
        return None;
    }
    if !found.is_known_beside(expected) {
        return Some(not_registered(found, scheme(expected.group())));
    }
    Some(format!(
        "converting ({}.{}) to ({}.{}): unknown conversion",
        found.version(),
        found.kind,
        expected.package(),
        expected.kind
    ))
}

/// Why a body of the kind `found` is no options of a deletion; those are taken from any version.
pub fn options_refusal(found: Kind<'_>) -> Option<String> {
    let expected = Kind {
        api_version: "meta.k8s.io/v1",
        kind: "DeleteOptions",
    };
    let found = found.or(expected);
    (found.kind != expected.kind).then(|| not_registered(found, OPTIONS))
}

/// True for what a version may be: with one slash at most.
pub fn is_group_version(api_version: &str) -> bool {
    api_version.matches('/').count() <= 1
}

fn not_registered(found: Kind<'_>, scheme: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme {}",
        quoted(found.kind),
        quoted(found.api_version),
        quoted(scheme)
    )
}

fn scheme(group: &str) -> &'static str {
    match group {
        EXTENSIONS => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
        REGISTRATIONS => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

fn is_known(found: Kind<'_>) -> bool {
    let mut rows = catalogue::all()
        .iter()
        .filter(|row| row.group == found.group() && row.version == found.version());
    let beside = BESIDE
        .iter()
        .filter(|(version, _)| *version == found.api_version);
    let is_body = |row: &Resource| {
        let mut bodies = row.subresources.iter().filter_map(|one| one.body);
        bodies.any(|body| body == (found.group(), found.version(), found.kind))
    };
    let is_row = |row: &Resource| {
        row.kind == found.kind
            || row.verbs.contains(&"list") && found.kind.strip_suffix("List") == Some(row.kind)
            || EVERYWHERE.contains(&found.kind)
    };
    rows.any(is_row)
        || beside
            .into_iter()
            .any(|(_, kinds)| kinds.contains(&found.kind))
        || catalogue::all().iter().any(is_body)
}

#[cfg(test)]
mod tests;
