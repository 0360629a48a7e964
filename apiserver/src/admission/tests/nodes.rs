//! What a node may do to itself and to its pods.

use super::*;

fn node(labels: Value) -> Value {
    json!({ "metadata": { "name": "n1", "labels": labels, "uid": "node-uid" } })
}

async fn ask(text: &str, old: Option<Value>, object: Option<Value>) -> Result<Value, String> {
    let pods = |name: &str, node: &str| {
        let pod = json!({
            "metadata": { "namespace": "web", "name": name, "uid": format!("{name}-uid") },
            "spec": {
                "nodeName": node,
                "serviceAccountName": "bot",
                "volumes": [{ "projected": { "sources": [
                    { "serviceAccountToken": { "audience": "vault", "path": "token" } },
                ] } }],
            },
        });
        ("pods", pod)
    };
    let bench = bench(vec![
        pods("mine", "n1"),
        pods("theirs", "n2"),
        ("nodes", node(json!({}))),
    ]);
    bench.view.put(
        "namespaces",
        json!({ "metadata": { "name": "kube-node-lease" } }),
    );
    let user = User::named("system:node:n1");
    let old = old.map(|old| Object::from_value(old).unwrap());
    let asked = Asked {
        user: &user,
        text,
        old: old.as_ref(),
        warnings: Warnings::default(),
    };
    bench.admit(&asked, object).await
}

#[tokio::test]
async fn a_new_node_is_tainted_once() {
    let plain = ask("CREATE nodes -", None, Some(node(json!({}))))
        .await
        .unwrap();
    let taint = json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
    assert_eq!(plain["spec"]["taints"], taint);
    let again = ask("CREATE nodes -", None, Some(plain)).await.unwrap();
    assert_eq!(again["spec"]["taints"], taint);
}

#[tokio::test]
async fn a_node_registers_itself_with_its_own_labels() {
    let fine = json!({
        "kubernetes.io/hostname": "n1",
        "topology.kubernetes.io/zone": "north",
        "node.kubernetes.io/x": "y",
        "site": "gateway",
        "example.com/rack": "7",
    });
    assert!(ask("CREATE nodes -", None, Some(node(fine))).await.is_ok());
    let bad = json!({
        "node-role.kubernetes.io/control-plane": "",
        "x.node-restriction.kubernetes.io/safe": "",
        "pod-security.kubernetes.io/x": "",
    });
    assert_eq!(
        ask("CREATE nodes -", None, Some(node(bad)))
            .await
            .unwrap_err(),
        "nodes \"n1\" is forbidden: node \"n1\" is not allowed to set the following labels: \
         node-role.kubernetes.io/control-plane, pod-security.kubernetes.io/x, \
         x.node-restriction.kubernetes.io/safe"
    );
    let mut other = node(json!({}));
    other["metadata"]["name"] = "n2".into();
    assert_eq!(
        ask("CREATE nodes -", None, Some(other)).await.unwrap_err(),
        "nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\""
    );
}

#[tokio::test]
async fn a_node_does_not_lift_its_own_restrictions() {
    let old = || Some(node(json!({ "kubernetes.io/os": "linux" })));
    let text = "UPDATE nodes - n1";
    let mut tainted = node(json!({ "kubernetes.io/os": "linux" }));
    tainted["spec"] = json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }] });
    let refused = ask(text, Some(tainted), old()).await.unwrap_err();
    assert!(
        refused.ends_with("node \"n1\" is not allowed to modify taints"),
        "{refused}"
    );
    let mut owned = node(json!({ "kubernetes.io/os": "linux" }));
    owned["metadata"]["ownerReferences"] = json!([{ "name": "x" }]);
    let refused = ask(text, old(), Some(owned)).await.unwrap_err();
    assert!(
        refused.ends_with("is not allowed to modify ownerReferences"),
        "{refused}"
    );
    let labelled = node(json!({ "kubernetes.io/os": "linux", "kubernetes.io/role": "x" }));
    let refused = ask(text, old(), Some(labelled)).await.unwrap_err();
    assert!(
        refused.ends_with("is not allowed to modify labels: kubernetes.io/role"),
        "{refused}"
    );
    assert!(ask("UPDATE nodes/status - n1", old(), old()).await.is_ok());
    assert!(ask("UPDATE nodes/status - n2", old(), old()).await.is_err());
}

/// Whose podCIDR is a network of the world would be sent what pods of all nodes send there.
#[tokio::test]
async fn a_node_does_not_choose_the_network_of_its_pods() {
    let with = |spec: Value| {
        let mut node = node(json!({}));
        node["spec"] = spec;
        Some(node)
    };
    let given = || with(json!({ "podCIDR": "10.42.1.0/24", "podCIDRs": ["10.42.1.0/24"] }));
    for chosen in [
        json!({ "podCIDR": "192.0.2.0/24", "podCIDRs": ["192.0.2.0/24"] }),
        json!({ "podCIDRs": ["192.0.2.0/24"] }),
        json!({ "podCIDR": "192.0.2.0/24" }),
    ] {
        let made = ask("CREATE nodes -", None, with(chosen.clone())).await;
        let set = ask("UPDATE nodes - n1", with(json!({})), with(chosen.clone())).await;
        let changed = ask("UPDATE nodes - n1", given(), with(chosen)).await;
        for refused in [made, set, changed] {
            assert_eq!(
                refused.unwrap_err(),
                "nodes \"n1\" is forbidden: node \"n1\" is not allowed to choose the podCIDR of \
                 its pods"
            );
        }
    }
    let dropped = ask("UPDATE nodes - n1", given(), with(json!({}))).await;
    assert!(dropped.is_err());
    assert!(ask("UPDATE nodes - n1", given(), given()).await.is_ok());
    assert!(
        ask("UPDATE nodes/status - n1", given(), given())
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_node_handles_its_own_pods_and_no_others() {
    assert!(ask("DELETE pods web mine", None, None).await.is_ok());
    assert_eq!(
        ask("DELETE pods web theirs", None, None).await.unwrap_err(),
        "pods \"theirs\" is forbidden: node \"n1\" can only delete pods with spec.nodeName set \
         to itself"
    );
    let gone = ask("DELETE pods web gone", None, None).await.unwrap_err();
    assert_eq!(gone, "pods \"gone\" not found");
    let pod = |node: &str, label: &str| {
        Some(json!({
            "metadata": { "name": "p", "namespace": "web", "labels": { "app": label } },
            "spec": { "nodeName": node },
        }))
    };
    let status = "UPDATE pods/status web p";
    assert!(ask(status, pod("n1", "a"), pod("n1", "a")).await.is_ok());
    assert!(ask(status, pod("n2", "a"), pod("n2", "a")).await.is_err());
    assert!(ask(status, pod("n1", "a"), pod("n1", "b")).await.is_err());
    assert!(
        ask("UPDATE pods web p", pod("n1", "a"), pod("n1", "a"))
            .await
            .is_err()
    );
    assert!(ask("CREATE pods web", None, pod("n1", "a")).await.is_err());
}

/// What changes in a request, and what it is told then.
type Case = (fn(&mut Value), &'static str);

/// A stolen node speaks for the accounts of its own pods, for as long as it has them, and to whom
/// these would speak.
#[tokio::test]
async fn a_node_asks_for_tokens_of_its_own_pods() {
    let token = |change: fn(&mut Value)| {
        let mut request = json!({
            "metadata": { "name": "bot", "namespace": "web" },
            "spec": {
                "audiences": ["vault"],
                "boundObjectRef": {
                    "apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "mine-uid",
                },
            },
        });
        change(&mut request["spec"]);
        Some(request)
    };
    let text = "CREATE serviceaccounts/token web bot";
    assert_eq!(ask(text, None, token(|_| {})).await.map(drop), Ok(()));
    let cases: [Case; 7] = [
        (
            |spec| spec["boundObjectRef"] = Value::Null,
            "node requested token not bound to a pod",
        ),
        (
            |spec| spec["boundObjectRef"]["kind"] = "Node".into(),
            "node requested token not bound to a pod",
        ),
        (
            |spec| spec["boundObjectRef"]["uid"] = "".into(),
            "node requested token with a pod binding without a uid",
        ),
        (
            |spec| spec["boundObjectRef"]["uid"] = "older".into(),
            "the UID in the bound object reference (older) does not match the UID in record. The \
             object might have been deleted and then recreated",
        ),
        (
            |spec| {
                spec["boundObjectRef"] = json!({
                    "apiVersion": "v1", "kind": "Pod", "name": "theirs", "uid": "theirs-uid",
                })
            },
            "node requested token bound to a pod scheduled on a different node",
        ),
        (
            |spec| spec["audiences"] = json!(["vault", "other"]),
            "node may only request 0 or 1 audiences",
        ),
        (
            |spec| spec["audiences"] = json!(["other"]),
            "audience \"other\" not found in pod spec volume, system:node:n1 is not authorized to \
             request tokens for this audience",
        ),
    ];
    for (change, why) in cases {
        let refused = ask(text, None, token(change)).await.unwrap_err();
        assert!(refused.ends_with(why), "{refused}");
    }
}

#[tokio::test]
async fn a_mirror_pod_belongs_to_its_node() {
    let mirror = |change: fn(&mut Value)| {
        let mut pod = json!({
            "metadata": {
                "name": "p",
                "annotations": { "kubernetes.io/config.mirror": "x" },
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid",
                    "controller": true,
                }],
            },
            "spec": { "nodeName": "n1" },
        });
        change(&mut pod);
        Some(pod)
    };
    let text = "CREATE pods web";
    assert_eq!(ask(text, None, mirror(|_| {})).await.map(drop), Ok(()));
    let changes: [fn(&mut Value); 6] = [
        |pod| pod["spec"]["nodeName"] = "n2".into(),
        |pod| pod["metadata"]["ownerReferences"] = json!([]),
        |pod| pod["metadata"]["ownerReferences"][0]["name"] = "n2".into(),
        |pod| pod["metadata"]["ownerReferences"][0]["controller"] = false.into(),
        |pod| pod["metadata"]["ownerReferences"][0]["uid"] = "old".into(),
        |pod| pod["spec"]["volumes"] = json!([{ "configMap": { "name": "c" } }]),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert!(ask(text, None, mirror(change)).await.is_err(), "{index}");
    }
}

#[tokio::test]
async fn a_node_has_one_lease_and_one_csi_node() {
    let lease = |name: &str| Some(json!({ "metadata": { "name": name } }));
    assert!(
        ask("CREATE leases kube-node-lease", None, lease("n1"))
            .await
            .is_ok()
    );
    assert!(
        ask("CREATE leases kube-node-lease", None, lease("n2"))
            .await
            .is_err()
    );
    assert!(
        ask("UPDATE leases kube-node-lease n1", lease("n1"), lease("n1"))
            .await
            .is_ok()
    );
    assert!(ask("CREATE leases web", None, lease("n1")).await.is_err());
    assert!(ask("CREATE csinodes -", None, lease("n1")).await.is_ok());
    assert!(ask("CREATE csinodes -", None, lease("n2")).await.is_err());
    assert!(
        ask("UPDATE csinodes - n2", lease("n2"), lease("n2"))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_node_asks_for_certificates_in_its_own_name() {
    let request = |name: &str| {
        Some(super::certificates::request(
            "kubernetes.io/kubelet-serving",
            name,
            "system:nodes",
        ))
    };
    let text = "CREATE certificatesigningrequests -";
    assert!(ask(text, None, request("system:node:n1")).await.is_ok());
    assert_eq!(
        ask(text, None, request("system:node:n2"))
            .await
            .unwrap_err(),
        "certificatesigningrequests.certificates.k8s.io \"c\" is forbidden: can only create a \
         node CSR with CN=system:node:n1"
    );
}

#[tokio::test]
async fn a_node_says_only_how_large_a_claim_is() {
    let claim = |change: fn(&mut Value)| {
        let mut claim = json!({
            "metadata": { "name": "c", "namespace": "web" },
            "spec": { "volumeName": "v" },
            "status": { "phase": "Bound" },
        });
        change(&mut claim);
        Some(claim)
    };
    let text = "UPDATE persistentvolumeclaims/status web c";
    let sized = claim(|claim| claim["status"]["capacity"] = json!({ "storage": "2Gi" }));
    assert!(ask(text, claim(|_| {}), sized).await.is_ok());
    let refused = ask(
        text,
        claim(|_| {}),
        claim(|claim| claim["status"]["phase"] = "Lost".into()),
    );
    let refused = refused.await.unwrap_err();
    assert!(
        refused.contains("not allowed to update fields other than status.quantity"),
        "{refused}"
    );
    let whole = "UPDATE persistentvolumeclaims web c";
    let refused = ask(whole, claim(|_| {}), claim(|_| {})).await.unwrap_err();
    assert!(refused.ends_with("may only update PVC status"), "{refused}");
}

#[tokio::test]
async fn a_node_makes_slices_of_its_own_devices() {
    let slice =
        |node: &str| Some(json!({ "metadata": { "name": "s" }, "spec": { "nodeName": node } }));
    assert!(
        ask("CREATE resourceslices - s", None, slice("n1"))
            .await
            .is_ok()
    );
    assert!(
        ask("CREATE resourceslices - s", None, slice("n2"))
            .await
            .is_err()
    );
    assert!(
        ask("DELETE resourceslices - s", slice("n1"), None)
            .await
            .is_ok()
    );
    assert!(
        ask("DELETE resourceslices - s", slice("n2"), None)
            .await
            .is_err()
    );
}
