//! What a node may read and write.

use super::*;

fn pod(name: &str, node: &str) -> (&'static str, Value) {
    let pod = json!({
        "metadata": { "namespace": "web", "name": name },
        "spec": {
            "nodeName": node,
            "serviceAccountName": format!("{name}-account"),
            "imagePullSecrets": [{ "name": format!("{name}-pull") }],
            "containers": [{
                "env": [{ "valueFrom": { "secretKeyRef": { "name": format!("{name}-env") } } }],
                "envFrom": [{ "configMapRef": { "name": format!("{name}-from") } }],
            }],
            "volumes": [
                { "name": "a", "secret": { "secretName": format!("{name}-volume") } },
                { "name": "b", "projected": { "sources": [
                    { "configMap": { "name": format!("{name}-projected") } },
                ] } },
                { "name": "c", "persistentVolumeClaim": { "claimName": format!("{name}-claim") } },
            ],
        },
    });
    ("pods", pod)
}

fn allowed(authorizer: &Authorizer, user: &User, text: &str) -> bool {
    authorizer.authorize(user, &request(text)).is_allowed()
}

#[test]
fn a_node_does_its_own_work() {
    let authorizer = authorizer(&[pod("mine", "n1"), pod("theirs", "n2")]);
    let node = User::named("system:node:n1");
    for text in [
        "get nodes - n1",
        "watch nodes - n1",
        "create nodes",
        "update nodes/status - n1",
        "list pods - - spec.nodeName=n1",
        "watch pods - - spec.nodeName=n1",
        "get pods web mine",
        "delete pods web mine",
        "patch pods/status web mine",
        "get secrets web mine-pull",
        "get secrets web mine-env",
        "watch secrets web mine-volume",
        "get configmaps web mine-from",
        "get configmaps web mine-projected",
        "get persistentvolumeclaims web mine-claim",
        "get serviceaccounts web mine-account",
        "create serviceaccounts/token web mine-account",
        "get coordination.k8s.io:leases kube-node-lease n1",
        "create coordination.k8s.io:leases kube-node-lease",
        "create events web",
        "patch events web e",
        "list services",
        "get endpoints web e",
        "create certificates.k8s.io:certificatesigningrequests",
        "get /coracle/v1/nodes/n1/tunnel",
    ] {
        assert!(allowed(&authorizer, &node, text), "{text}");
    }
}

#[test]
fn a_node_does_not_touch_what_is_not_its_own() {
    let authorizer = authorizer(&[pod("mine", "n1"), pod("theirs", "n2"), pod("free", "")]);
    let node = User::named("system:node:n1");
    for text in [
        "get nodes - n2",
        "list nodes",
        "delete nodes - n1",
        "list pods",
        "list pods web",
        "list pods - - spec.nodeName=n2",
        "get pods web theirs",
        "get pods web free",
        "update pods web mine",
        "create pods/binding web mine",
        "create pods/exec web mine",
        "get secrets web theirs-env",
        "list secrets web",
        "list secrets",
        "update secrets web mine-env",
        "get secrets other mine-env",
        "get configmaps web theirs-from",
        "get serviceaccounts web theirs-account",
        "get coordination.k8s.io:leases kube-node-lease n2",
        "list coordination.k8s.io:leases kube-node-lease",
        "get coordination.k8s.io:leases kube-system n1",
        "update certificates.k8s.io:certificatesigningrequests/approval - c",
        "get apps:deployments web shop",
        "get /coracle/v1/nodes/n2/tunnel",
    ] {
        assert!(!allowed(&authorizer, &node, text), "{text}");
    }
}

#[test]
fn a_node_is_one_by_name_and_group() {
    let authorizer = authorizer(&[]);
    let mut loner = User::named("system:node:n1");
    loner.groups.retain(|group| group != "system:nodes");
    assert!(!allowed(&authorizer, &loner, "get nodes - n1"));
    let nameless = User::named("system:node:");
    assert!(!allowed(&authorizer, &nameless, "create nodes"));
}

#[test]
fn the_reason_says_why() {
    let authorizer = authorizer(&[]);
    let node = User::named("system:node:n1");
    assert_eq!(
        answer(&authorizer, &node, "get secrets web s"),
        r#"secrets "s" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace "web": no relationship found between node 'n1' and this object"#
    );
}

#[test]
fn a_pod_that_moves_or_goes_takes_its_rights_along() {
    let authorizer = authorizer(&[pod("p", "n1")]);
    let node = User::named("system:node:n1");
    assert!(allowed(&authorizer, &node, "get secrets web p-env"));
    let key = ObjectKey::new("web", "p");
    authorizer.apply("", "pods", &key, None);
    assert!(!allowed(&authorizer, &node, "get secrets web p-env"));
}

#[test]
fn a_pod_the_index_has_not_seen_is_found_in_the_store() {
    let (plural, value) = pod("fresh", "n1");
    let authorizer = Authorizer::new(Objects::new([(plural, value)]));
    let node = User::named("system:node:n1");
    assert!(allowed(&authorizer, &node, "get secrets web fresh-env"));
    assert!(allowed(&authorizer, &node, "get pods web fresh"));
    assert!(!allowed(&authorizer, &node, "get secrets web other"));
}
