//! Aggregated roles under the controller's own rights, and what kubectl makes of access reviews.

use crate::lab::{Cluster, Lab};

const CAPACITIES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: capacities, labels: { rbac.authorization.k8s.io/aggregate-to-view: 'true' } }
rules: [{ apiGroups: [storage.k8s.io], resources: [csistoragecapacities], verbs: [get, list] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: jane, namespace: default }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: jane }]
";

fn wait_capacities(cluster: &Cluster, role: &str, expected: &str) {
    let resources = "{.rules[?(@.apiGroups[0]==\"storage.k8s.io\")].resources[0]}";
    cluster.wait_value(&["clusterrole", role], resources, expected);
}

#[test]
fn what_is_labelled_reaches_the_aggregated_roles_one_over_the_other_and_who_has_them() {
    let mut lab = Lab::new();
    let cluster = lab.server("roles", &[]);
    cluster.apply(CAPACITIES);
    // To view by its label, to edit by view's, to admin by edit's.
    for role in ["view", "edit", "admin"] {
        wait_capacities(&cluster, role, "csistoragecapacities");
    }
    let managers = "{.metadata.managedFields[*].manager}";
    let managers = cluster.value(&["clusterrole", "admin", "--show-managed-fields"], managers);
    assert!(
        managers.contains("clusterrole-aggregation-controller"),
        "{managers}"
    );
    let can = [
        "auth",
        "can-i",
        "list",
        "csistoragecapacities.storage.k8s.io",
        "--as",
        "jane",
    ];
    assert_eq!(cluster.kubectl(&can).lines().last(), Some("yes"));
    let listed = cluster.kubectl(&["auth", "can-i", "--list", "--as", "jane"]);
    let line = listed
        .lines()
        .find(|line| line.starts_with("csistoragecapacities.storage.k8s.io"));
    assert!(
        line.is_some_and(|line| line.contains("[get list]")),
        "{listed}"
    );
    cluster.kubectl(&[
        "label",
        "clusterrole",
        "capacities",
        "rbac.authorization.k8s.io/aggregate-to-view-",
    ]);
    for role in ["view", "edit", "admin"] {
        wait_capacities(&cluster, role, "");
    }
    let refused = cluster.try_kubectl(&can).unwrap_err();
    assert!(refused.contains("no"), "{refused}");
}
