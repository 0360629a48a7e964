//! Default classes, runtime classes, and what protects volumes.

use super::*;
use expect_test::expect;

fn class(name: &str, made: &str, mark: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "creationTimestamp": made,
            "annotations": { mark: "true" },
        },
    })
}

fn named(name: &str, spec: Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "web" }, "spec": spec })
}

#[tokio::test]
async fn the_newest_default_class_is_taken_where_none_is_named() {
    const MARK: &str = "storageclass.kubernetes.io/is-default-class";
    const INGRESS_MARK: &str = "ingressclass.kubernetes.io/is-default-class";
    let jane = User::named("jane");
    let site = || {
        bench(vec![
            ("storageclasses", class("old", "2026-01-01T00:00:00Z", MARK)),
            ("storageclasses", class("b", "2026-02-01T00:00:00Z", MARK)),
            ("storageclasses", class("a", "2026-02-01T00:00:00Z", MARK)),
            (
                "storageclasses",
                class("plain", "2026-03-01T00:00:00Z", "x/y"),
            ),
            (
                "ingressclasses",
                class("web", "2026-02-01T00:00:00Z", INGRESS_MARK),
            ),
        ])
    };
    let make = async |text: &str, object: Value| {
        let made = site().admit(&as_user(&jane, text), Some(object)).await;
        made.unwrap()["spec"].clone()
    };
    let claim = "CREATE persistentvolumeclaims web c";
    let field = "storageClassName";
    assert_eq!(make(claim, named("c", json!({}))).await[field], "a");
    assert_eq!(
        make(claim, named("c", json!({ field: "" }))).await[field],
        ""
    );
    let mut annotated = named("c", json!({}));
    annotated["metadata"]["annotations"] =
        json!({ "volume.beta.kubernetes.io/storage-class": "own" });
    assert!(make(claim, annotated).await.get(field).is_none());
    let ingress = "CREATE ingresses web i";
    let field = "ingressClassName";
    assert_eq!(make(ingress, named("i", json!({}))).await[field], "web");
    let mut annotated = named("i", json!({}));
    annotated["metadata"]["annotations"] = json!({ "kubernetes.io/ingress.class": "own" });
    assert!(make(ingress, annotated).await.get(field).is_none());
}

#[tokio::test]
async fn what_may_be_in_use_is_protected_once() {
    let jane = User::named("jane");
    for (plural, finalizer) in [
        ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("persistentvolumes", "kubernetes.io/pv-protection"),
        ("volumeattributesclasses", "kubernetes.io/vac-protection"),
    ] {
        let bench = bench(vec![]);
        let text = format!("CREATE {plural} web x");
        let asked = as_user(&jane, &text);
        let own = json!({ "metadata": { "name": "x", "finalizers": ["a/b"] }, "spec": {} });
        let made = bench.admit(&asked, Some(own)).await.unwrap();
        assert_eq!(made["metadata"]["finalizers"], json!(["a/b", finalizer]));
        let again = bench.admit(&asked, Some(made.clone())).await.unwrap();
        assert_eq!(
            again["metadata"]["finalizers"],
            made["metadata"]["finalizers"]
        );
    }
}

#[tokio::test]
async fn a_claim_grows_where_its_class_lets_it() {
    let jane = User::named("jane");
    let claim = |class: &str, size: &str, phase: &str| {
        let resources = json!({ "requests": { "storage": size } });
        let mut claim = named(
            "c",
            json!({ "storageClassName": class, "resources": resources }),
        );
        claim["status"] = json!({ "phase": phase });
        claim
    };
    let grow = async |class: &str, size: &str, phase: &str| {
        let bench = bench(vec![
            (
                "storageclasses",
                json!({ "metadata": { "name": "ok" }, "allowVolumeExpansion": true }),
            ),
            ("storageclasses", json!({ "metadata": { "name": "fixed" } })),
        ]);
        let old = Object::from_value(claim(class, "1Gi", phase)).unwrap();
        let asked = Asked {
            old: Some(&old),
            ..as_user(&jane, "UPDATE persistentvolumeclaims web c")
        };
        bench
            .admit(&asked, Some(claim(class, size, phase)))
            .await
            .map(drop)
    };
    assert_eq!(grow("ok", "2Gi", "Bound").await, Ok(()));
    assert_eq!(
        grow("fixed", "1024Mi", "Bound").await,
        Ok(()),
        "the same size"
    );
    expect![[r#"persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded"#]]
        .assert_eq(&grow("ok", "2Gi", "Pending").await.unwrap_err());
    for class in ["fixed", "gone", ""] {
        expect![[r#"persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"#]]
            .assert_eq(&grow(class, "2Gi", "Bound").await.unwrap_err());
    }
}

fn vm() -> Value {
    json!({
        "metadata": { "name": "vm" },
        "handler": "h",
        "overhead": { "podFixed": { "cpu": "100m" } },
        "scheduling": {
            "nodeSelector": { "kind": "metal" },
            "tolerations": [
                { "key": "vm", "operator": "Exists", "effect": "NoSchedule" },
                { "key": "own", "operator": "Exists" },
            ],
        },
    })
}

#[tokio::test]
async fn a_runtime_class_brings_overhead_and_places() {
    let jane = User::named("jane");
    let bench = bench(vec![
        ("runtimeclasses", vm()),
        (
            "runtimeclasses",
            json!({ "metadata": { "name": "plain" }, "handler": "h" }),
        ),
    ]);
    let make = async |spec: Value| {
        let asked = as_user(&jane, "CREATE pods web p");
        bench.admit(&asked, Some(named("p", spec))).await
    };
    let own = json!([{ "key": "own", "operator": "Equal", "value": "x", "effect": "NoExecute" }]);
    let made = make(json!({
        "runtimeClassName": "vm",
        "nodeSelector": { "site": "north" },
        "tolerations": own,
        "overhead": { "cpu": "0.1" },
    }))
    .await
    .unwrap();
    assert_eq!(made["spec"]["overhead"], json!({ "cpu": "100m" }));
    assert_eq!(
        made["spec"]["nodeSelector"],
        json!({ "kind": "metal", "site": "north" })
    );
    let keys: Vec<&str> = made["spec"]["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|toleration| toleration["key"].as_str().unwrap())
        .collect();
    let defaults = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    assert_eq!(keys[..2], defaults);
    assert_eq!(
        keys[2..],
        ["vm", "own"],
        "the class's toleration covers the pod's own"
    );
    let refuse = async |spec: Value| {
        let refusal = make(spec).await.unwrap_err();
        refusal.replace("pods \"p\" is forbidden: ", "")
    };
    expect![[r#"pod rejected: RuntimeClass "gone" not found"#]]
        .assert_eq(&refuse(json!({ "runtimeClassName": "gone" })).await);
    let other = json!({ "runtimeClassName": "vm", "overhead": { "cpu": "1" } });
    expect!["pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"]
        .assert_eq(&refuse(other).await);
    for class in [json!("plain"), Value::Null] {
        let spec = json!({ "runtimeClassName": class, "overhead": { "cpu": "1" } });
        expect![
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        ]
        .assert_eq(&refuse(spec).await);
    }
    let elsewhere = json!({ "runtimeClassName": "vm", "nodeSelector": { "kind": "cloud" } });
    expect!["conflict: runtimeClass.scheduling.nodeSelector[kind] = metal; pod.spec.nodeSelector[kind] = cloud"]
        .assert_eq(&refuse(elsewhere).await);
}

#[tokio::test]
async fn pods_and_bindings_carry_the_node_s_zone() {
    let jane = User::named("jane");
    let labels = json!({ "topology.kubernetes.io/zone": "z1", "other": "x" });
    let node = json!({ "metadata": { "name": "n1", "labels": labels } });
    let bench = bench(vec![("nodes", node)]);
    let zone = json!({ "topology.kubernetes.io/zone": "z1" });
    let pod = named("p", json!({ "nodeName": "n1" }));
    let made = bench
        .admit(&as_user(&jane, "CREATE pods web p"), Some(pod))
        .await;
    assert_eq!(made.unwrap()["metadata"]["labels"], zone);
    let binding =
        json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n1" } });
    let asked = as_user(&jane, "CREATE pods/binding web p");
    let made = bench.admit(&asked, Some(binding)).await.unwrap();
    assert_eq!(made["metadata"]["labels"], zone);
}
