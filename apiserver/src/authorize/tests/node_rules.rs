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
fn a_node_reads_what_its_network_needs_and_writes_none_of_it() {
    let authorizer = authorizer(&[pod("mine", "n1"), pod("theirs", "n2")]);
    let node = User::named("system:node:n1");
    let network = [
        "nodes",
        "namespaces",
        "services",
        "discovery.k8s.io:endpointslices",
    ];
    for resource in network {
        for verb in ["list", "watch"] {
            assert!(allowed(&authorizer, &node, &format!("{verb} {resource}")));
        }
    }
    assert!(allowed(&authorizer, &node, "get /coracle/v1/policy"));
    let other = User::named("jane");
    assert!(!allowed(&authorizer, &other, "get /coracle/v1/policy"));
    for text in [
        "get secrets web theirs-env",
        "list secrets",
        "get configmaps web theirs-from",
        "create pods/exec web theirs",
        "list pods",
        "list networking.k8s.io:networkpolicies",
        "create discovery.k8s.io:endpointslices web",
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

/// A pod of n1 with a claim bound to a volume, and of a resource claim from a template.
fn with_volumes() -> Vec<(&'static str, Value)> {
    let (plural, mut pod) = pod("mine", "n1");
    pod["spec"]["resourceClaims"] = json!([
        { "name": "gpu", "resourceClaimTemplateName": "t" },
        { "name": "nic", "resourceClaimName": "nic-claim" },
        { "name": "none", "resourceClaimTemplateName": "t" },
    ]);
    pod["spec"]["volumes"][2]["persistentVolumeClaim"]["claimName"] = "data".into();
    pod["status"] = json!({
        "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "mine-gpu-x1" }],
        "extendedResourceClaimStatus": { "resourceClaimName": "mine-extended" },
    });
    let volume = |name: &str, claim: &str, source: Value| {
        let mut spec = json!({ "claimRef": { "namespace": "web", "name": claim } });
        spec.as_object_mut()
            .unwrap()
            .extend(source.as_object().unwrap().clone());
        (
            "persistentvolumes",
            json!({ "metadata": { "name": name }, "spec": spec }),
        )
    };
    let secret = |namespace: &str, name: &str| json!({ "namespace": namespace, "name": name });
    let csi = json!({ "csi": {
        "nodeStageSecretRef": secret("storage", "stage"),
        "nodePublishSecretRef": secret("storage", "publish"),
        "nodeExpandSecretRef": secret("storage", "expand"),
        "controllerExpandSecretRef": secret("storage", "controller"),
    } });
    let on_node = |name: &str, node: &str| json!({ "metadata": { "name": name }, "spec": { "nodeName": node } });
    vec![
        (plural, pod),
        volume("pv-mine", "data", csi),
        volume(
            "pv-other",
            "other",
            json!({ "rbd": { "secretRef": { "name": "rbd-other" } } }),
        ),
        volume(
            "pv-old",
            "data",
            json!({ "azureFile": { "secretName": "azure" } }),
        ),
        ("volumeattachments", on_node("va-mine", "n1")),
        ("volumeattachments", on_node("va-other", "n2")),
        ("resourceslices", on_node("slice-mine", "n1")),
        ("resourceslices", on_node("slice-other", "n2")),
        (
            "resourceslices",
            json!({ "metadata": { "name": "all" }, "spec": { "allNodes": true } }),
        ),
    ]
}

#[test]
fn what_a_pod_uses_leads_further_and_stops_there() {
    let authorizer = authorizer(&with_volumes());
    let node = User::named("system:node:n1");
    for text in [
        "get persistentvolumeclaims web data",
        "patch persistentvolumeclaims/status web data",
        "get persistentvolumes - pv-mine",
        "get secrets storage stage",
        "get secrets storage publish",
        "get secrets storage expand",
        "get secrets web azure",
        "get resource.k8s.io:resourceclaims web mine-gpu-x1",
        "get resource.k8s.io:resourceclaims web nic-claim",
        "get resource.k8s.io:resourceclaims web mine-extended",
        "get storage.k8s.io:volumeattachments - va-mine",
        "get resource.k8s.io:resourceslices - slice-mine",
        "delete resource.k8s.io:resourceslices - slice-mine",
        "create resource.k8s.io:resourceslices",
        "watch resource.k8s.io:resourceslices - - spec.nodeName=n1",
        "deletecollection resource.k8s.io:resourceslices - - spec.nodeName=n1",
        "get storage.k8s.io:csinodes - n1",
    ] {
        assert!(allowed(&authorizer, &node, text), "{text}");
    }
    for text in [
        "get persistentvolumes - pv-other",
        "list persistentvolumes",
        "update persistentvolumes - pv-mine",
        "get persistentvolumes/status - pv-mine",
        "get persistentvolumeclaims web other",
        "list persistentvolumeclaims web",
        "get secrets storage controller",
        "get secrets web rbd-other",
        "get secrets web stage",
        "get resource.k8s.io:resourceclaims web none",
        "list resource.k8s.io:resourceclaims web",
        "patch resource.k8s.io:resourceclaims/status web nic-claim",
        "get storage.k8s.io:volumeattachments - va-other",
        "list storage.k8s.io:volumeattachments",
        "get resource.k8s.io:resourceslices - slice-other",
        "get resource.k8s.io:resourceslices - all",
        "list resource.k8s.io:resourceslices",
        "list resource.k8s.io:resourceslices - - spec.nodeName=n2",
        "get storage.k8s.io:csinodes - n2",
        "get storage.k8s.io:csinodes/status - n1",
        "create certificates.k8s.io:podcertificaterequests web",
    ] {
        assert!(!allowed(&authorizer, &node, text), "{text}");
    }
}

#[test]
fn a_path_ends_with_any_of_its_edges() {
    let authorizer = authorizer(&with_volumes());
    let node = User::named("system:node:n1");
    let ask = |text| allowed(&authorizer, &node, text);
    authorizer.apply(
        "",
        "persistentvolumes",
        &ObjectKey::new("", "pv-mine"),
        None,
    );
    assert!(!ask("get persistentvolumes - pv-mine") && !ask("get secrets storage stage"));
    assert!(ask("get secrets web azure"), "of another volume");
    let key = ObjectKey::new("", "slice-mine");
    authorizer.apply("resource.k8s.io", "resourceslices", &key, None);
    assert!(!ask("get resource.k8s.io:resourceslices - slice-mine"));
    authorizer.apply("", "pods", &ObjectKey::new("web", "mine"), None);
    assert!(!ask("get secrets web azure") && !ask("get persistentvolumeclaims web data"));
}

#[test]
fn reasons_are_upstreams() {
    let authorizer = authorizer(&with_volumes());
    let node = User::named("system:node:n1");
    let reason = |text: &str| {
        let told = answer(&authorizer, &node, text);
        told.split_once(": ").map_or(String::new(), |(_, rest)| {
            rest.rsplit_once(": ")
                .map_or("", |(_, reason)| reason)
                .to_owned()
        })
    };
    let cases = [
        (
            "list persistentvolumes",
            "can only get individual resources of this type",
        ),
        (
            "get persistentvolumes/status - pv-mine",
            "cannot get subresource",
        ),
        (
            "get persistentvolumeclaims/status web data",
            "can only get/update/patch this type",
        ),
        (
            "get persistentvolumes - pv-other",
            "no relationship found between node 'n1' and this object",
        ),
        (
            "update secrets web x",
            "can only read resources of this type",
        ),
        ("list secrets web", "No Object name found"),
        (
            "list secrets",
            "can only read namespaced object of this type",
        ),
        (
            "list resource.k8s.io:resourceslices",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        (
            "list pods",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (
            // To list them is granted for the network.
            "get nodes",
            "node 'n1' cannot read all nodes, only its own Node object",
        ),
        (
            "create serviceaccounts web",
            "can only create tokens for individual service accounts",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(reason(text), expected, "{text}");
    }
}
