//! Which of upstream's loops is which of ours: all that kube-controller-manager v1.36 knows.

use std::collections::BTreeSet;

use crate::LOOPS;

/// Upstream's name, and ours.
const HERE: &[(&str, &str)] = &[
    ("bootstrap-signer-controller", "bootstrap-signer"),
    (
        "certificatesigningrequest-approving-controller",
        "csr-approve",
    ),
    ("certificatesigningrequest-cleaner-controller", "csr-clean"),
    ("certificatesigningrequest-signing-controller", "csr-sign"),
    (
        "clusterrole-aggregation-controller",
        "clusterrole-aggregation",
    ),
    ("cronjob-controller", "cronjob"),
    ("daemonset-controller", "daemonset"),
    ("deployment-controller", "deployment"),
    (
        "device-taint-eviction-controller",
        "device-taint-eviction-controller",
    ),
    ("disruption-controller", "disruption"),
    ("endpoints-controller", "endpoints"),
    ("endpointslice-controller", "endpointslice"),
    (
        "endpointslice-mirroring-controller",
        "endpointslice-mirroring",
    ),
    ("ephemeral-volume-controller", "ephemeral-volume"),
    ("garbage-collector-controller", "garbage-collector"),
    (
        "horizontal-pod-autoscaler-controller",
        "horizontalpodautoscaler",
    ),
    ("job-controller", "job"),
    (
        "legacy-serviceaccount-token-cleaner-controller",
        "legacy-serviceaccount-token-cleaner-controller",
    ),
    ("namespace-controller", "namespace"),
    ("node-ipam-controller", "node-ipam"),
    ("node-lifecycle-controller", "node-lifecycle"),
    (
        "persistentvolume-attach-detach-controller",
        "persistentvolume-attach-detach",
    ),
    (
        "persistentvolume-binder-controller",
        "persistentvolume-binder",
    ),
    (
        "persistentvolume-expander-controller",
        "persistentvolume-expander",
    ),
    ("persistentvolume-protection-controller", "pv-protection"),
    (
        "persistentvolumeclaim-protection-controller",
        "pvc-protection",
    ),
    ("pod-garbage-collector-controller", "pod-gc"),
    ("replicaset-controller", "replicaset"),
    ("replicationcontroller-controller", "replicationcontroller"),
    ("resourceclaim-controller", "resourceclaim-controller"),
    ("resourcequota-controller", "resource-quota"),
    ("root-ca-certificate-publisher-controller", "root-ca"),
    ("service-cidr-controller", "service-cidr-controller"),
    ("serviceaccount-controller", "service-account"),
    ("serviceaccount-token-controller", "service-account-token"),
    ("statefulset-controller", "statefulset"),
    ("taint-eviction-controller", "taint-eviction"),
    ("token-cleaner-controller", "token-cleaner"),
    ("ttl-after-finished-controller", "ttl-after-finished"),
    ("ttl-controller", "ttl-controller"),
    (
        "validatingadmissionpolicy-status-controller",
        "validatingadmissionpolicy-status",
    ),
    (
        "volumeattributesclass-protection-controller",
        "vac-protection",
    ),
];

/// Off by default there. The page says why.
const NOT_HERE: &[&str] = &[
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "podcertificaterequest-cleaner-controller",
    "podgroup-protection-controller",
    "resourcepoolstatusrequest-controller",
    "selinux-warning-controller",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
];

/// Edge extras, which kube-controller-manager has not.
const OWN: &[&str] = &["load-balancer", "local-path"];

const PAGE: &str = include_str!("../../docs/controllers.md");

/// The names in the first cells of tables.
fn rows() -> BTreeSet<&'static str> {
    let cells = PAGE.lines().filter_map(|line| {
        let cells = line.strip_prefix("| `")?;
        cells.split(" | ").next()
    });
    cells.flat_map(|cell| cell.split('`').step_by(2)).collect()
}

#[test]
fn each_loop_of_upstream_is_ours_or_told_of() {
    let ours: BTreeSet<&str> = LOOPS.iter().map(|one| one.name).collect();
    let named: BTreeSet<&str> = HERE
        .iter()
        .map(|(_, name)| *name)
        .chain(OWN.iter().copied())
        .collect();
    assert_eq!(ours, named);
    assert_eq!(HERE.len() + OWN.len(), LOOPS.len(), "one each");
    let rows = rows();
    for name in ours.iter().chain(NOT_HERE) {
        assert!(
            rows.contains(name),
            "docs/controllers.md has no row of {name}"
        );
    }
}
