//! Usage and checks of whole objects, as text.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

mod claims; // Claims of devices.
mod usage; // Pods, Services, claims of volumes.

/// 2026-01-01T00:00:00Z.
const NOW: i64 = 1_767_225_600;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn with_surroundings<T>(act: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    act(&Surroundings {
        now: NOW,
        classes: &DeviceClasses::default(),
        pod: &|_, _| None,
        claims: &|_| Vec::new().into(),
    })
}

fn usage_of(plural: &str, value: Value) -> String {
    let evaluator = Evaluator::of("", plural).unwrap();
    with_surroundings(|around| evaluator.usage(&object(value), around)).to_string()
}

fn quota(name: &str, spec: Value, used: Value) -> Quota {
    let hard = spec["hard"].clone();
    let status = if used.is_null() {
        json!({})
    } else {
        json!({ "hard": hard, "used": used })
    };
    Quota::of(&object(
        json!({ "metadata": { "name": name }, "spec": spec, "status": status }),
    ))
}

/// What the quotas stand at after a write, or why it is refused.
fn check_write(
    plural: &str,
    subresource: &str,
    new: &Value,
    old: Option<&Value>,
    quotas: &[Quota],
    expected: &Expect,
) {
    let evaluator = Evaluator::of("", plural).unwrap();
    let (new, old) = (object(new.clone()), old.cloned().map(object));
    let request = Request {
        evaluator: &evaluator,
        subresource,
        new: &new,
        old: old.as_ref(),
    };
    let told = match with_surroundings(|around| check(&request, quotas, around)) {
        Ok(charges) => charges
            .iter()
            .map(|charge| format!("{}: {}\n", quotas[charge.quota].name, charge.used))
            .collect(),
        Err(why) => why.to_string(),
    };
    expected.assert_eq(&told);
}

fn pod(requests: Value, limits: Value) -> Value {
    json!({ "spec": { "containers": [
        { "name": "c", "resources": { "requests": requests, "limits": limits } },
    ] } })
}

#[test]
fn a_pod_that_fits_is_charged_and_one_that_does_not_is_told_what_is_left() {
    let hard = json!({ "hard": { "pods": "2", "requests.cpu": "1", "secrets": "1" } });
    let used = json!({ "pods": "1", "requests.cpu": "600m", "secrets": "1" });
    let quotas = [quota("q", hard, used)];
    let fits = pod(json!({ "cpu": "400m" }), json!({}));
    check_write(
        "pods",
        "",
        &fits,
        None,
        &quotas,
        &expect![[r#"
            q: pods=2,requests.cpu=1,secrets=1
        "#]],
    );
    let large = pod(json!({ "cpu": "401m" }), json!({}));
    check_write(
        "pods",
        "",
        &large,
        None,
        &quotas,
        &expect![
            "exceeded quota: q, requested: requests.cpu=401m, used: requests.cpu=600m, limited: requests.cpu=1"
        ],
    );
}

#[test]
fn a_quota_on_cpu_or_memory_obliges_every_container() {
    let hard = json!({ "hard": { "cpu": "1", "limits.memory": "1Gi", "ephemeral-storage": "1" } });
    let used = json!({ "cpu": "0", "limits.memory": "0", "ephemeral-storage": "0" });
    let mut silent = pod(json!({ "cpu": "1" }), json!({}));
    silent["spec"]["initContainers"] = json!([{ "name": "a" }]);
    let quotas = [quota("q", hard, used)];
    check_write(
        "pods",
        "",
        &silent,
        None,
        &quotas,
        &expect!["failed quota: q: must specify cpu for: a; limits.memory for: a,c"],
    );
    silent["spec"]["resources"] = json!({ "requests": { "cpu": "2" } });
    check_write(
        "pods",
        "",
        &silent,
        None,
        &quotas,
        &expect!["exceeded quota: q, requested: cpu=2, used: cpu=0, limited: cpu=1"],
    );
}

#[test]
fn a_quota_that_nobody_has_counted_for_is_not_asked() {
    let hard = json!({ "hard": { "pods": "0" } });
    let quotas = [quota("q", hard.clone(), Value::Null)];
    let any = pod(json!({}), json!({}));
    check_write("pods", "", &any, None, &quotas, &expect![""]);
    // In force, but without a count.
    let quotas = [quota("q", hard, json!({}))];
    check_write(
        "pods",
        "",
        &any,
        None,
        &quotas,
        &expect!["status unknown for quota: q, resources: pods"],
    );
}

#[test]
fn only_pods_in_all_scopes_are_charged() {
    let spec = |scopes: Value| json!({ "hard": { "pods": "5" }, "scopes": scopes });
    let select = |expression: Value| json!({ "hard": { "pods": "5" }, "scopeSelector": { "matchExpressions": [expression] } });
    let used = || json!({ "pods": "0" });
    let class = |operator, values| {
        let name = "PriorityClass";
        select(json!({ "scopeName": name, "operator": operator, "values": values }))
    };
    let quotas = [
        quota("best-effort", spec(json!(["BestEffort"])), used()),
        quota("not-best-effort", spec(json!(["NotBestEffort"])), used()),
        quota("terminating", spec(json!(["Terminating"])), used()),
        quota(
            "lasting-effort",
            spec(json!(["NotTerminating", "NotBestEffort"])),
            used(),
        ),
        quota("some-class", class("Exists", json!([])), used()),
        quota("no-class", class("DoesNotExist", json!([])), used()),
        quota("high", class("In", json!(["high"])), used()),
        quota("not-high", class("NotIn", json!(["high"])), used()),
        quota("across", spec(json!(["CrossNamespacePodAffinity"])), used()),
    ];
    let plain = pod(json!({}), json!({}));
    check_write(
        "pods",
        "",
        &plain,
        None,
        &quotas,
        &expect![[r#"
            best-effort: pods=1
            no-class: pods=1
            not-high: pods=1
        "#]],
    );
    let mut other = pod(json!({ "cpu": "1" }), json!({}));
    other["spec"]["activeDeadlineSeconds"] = 0.into();
    other["spec"]["priorityClassName"] = "high".into();
    let term = json!({ "weight": 1, "podAffinityTerm": { "namespaceSelector": {} } });
    other["spec"]["affinity"]["podAntiAffinity"] =
        json!({ "preferredDuringSchedulingIgnoredDuringExecution": [term] });
    check_write(
        "pods",
        "",
        &other,
        None,
        &quotas,
        &expect![[r#"
            not-best-effort: pods=1
            terminating: pods=1
            some-class: pods=1
            high: pods=1
            across: pods=1
        "#]],
    );
    // An update moves it from one to the other.
    let mut bound_to_end = plain.clone();
    bound_to_end["spec"]["activeDeadlineSeconds"] = 5.into();
    check_write(
        "pods",
        "",
        &bound_to_end,
        Some(&plain),
        &quotas,
        &expect![[r#"
            terminating: pods=1
        "#]],
    );
}

#[test]
fn nothing_but_pods_and_claims_of_volumes_is_in_a_scope() {
    let spec = json!({ "hard": { "secrets": "5" }, "scopes": ["BestEffort"] });
    let scoped = quota("q", spec, json!({ "secrets": "0" }));
    check_write("secrets", "", &json!({}), None, &[scoped], &expect![""]);
}

#[test]
fn updates_are_charged_for_what_they_add() {
    let hard = json!({ "hard": { "services.nodeports": "3", "services": "1" } });
    let used = json!({ "services.nodeports": "2", "services": "1" });
    let quotas = [quota("q", hard, used)];
    let service = |kind: &str, ports: usize| {
        let ports = vec![json!({ "port": 1 }); ports];
        json!({ "spec": { "type": kind, "ports": ports } })
    };
    let old = service("ClusterIP", 2);
    check_write(
        "services",
        "",
        &service("NodePort", 2),
        Some(&old),
        &quotas,
        &expect![
            "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3"
        ],
    );
    let old = service("NodePort", 2);
    check_write(
        "services",
        "",
        &service("NodePort", 3),
        Some(&old),
        &quotas,
        &expect![[r#"
            q: services=1,services.nodeports=3
        "#]],
    );
    // What is given back is the controller's to count.
    check_write(
        "services",
        "",
        &service("ClusterIP", 2),
        Some(&old),
        &quotas,
        &expect![""],
    );
}

#[test]
fn a_reported_status_is_charged_and_never_refused() {
    let hard = json!({ "hard": { "requests.storage": "2Gi" } });
    let quotas = [quota("q", hard, json!({ "requests.storage": "1Gi" }))];
    let claim = |allocated: &str| {
        json!({
            "spec": { "resources": { "requests": { "storage": "1Gi" } } },
            "status": { "allocatedResources": { "storage": allocated } },
        })
    };
    check_write(
        "persistentvolumeclaims",
        "status",
        &claim("3Gi"),
        Some(&claim("1Gi")),
        &quotas,
        &expect![[r#"
            q: requests.storage=3Gi
        "#]],
    );
}

#[test]
fn only_some_writes_are_charged() {
    let told = |plural: &str, subresource: &str, new: Value, old: Option<Value>| {
        let evaluator = Evaluator::of("", plural).unwrap();
        evaluator.charges(subresource, &object(new), old.map(object).as_ref())
    };
    let plain = || json!({ "spec": {} });
    let ending = || json!({ "spec": { "activeDeadlineSeconds": 1 } });
    assert!(told("pods", "", plain(), None));
    assert!(told("secrets", "", plain(), None));
    assert!(told("pods", "resize", plain(), Some(plain())));
    assert!(told("pods", "", ending(), Some(plain())));
    assert!(told("services", "", plain(), Some(plain())));
    assert!(!told("pods", "", plain(), Some(plain())));
    assert!(!told("pods", "status", plain(), Some(plain())));
    assert!(!told("pods", "binding", plain(), None));
    assert!(!told("serviceaccounts", "token", plain(), None));
    assert!(!told("secrets", "", plain(), Some(plain())));
    assert!(!told(
        "persistentvolumeclaims",
        "status",
        plain(),
        Some(plain())
    ));
    assert_eq!(Evaluator::of("", "events"), None);
    assert_eq!(Evaluator::of("events.k8s.io", "events"), None);
}

#[test]
fn the_kinds_behind_a_resource_are_those_that_count_it() {
    let classes = DeviceClasses::of(&[object(json!({
        "metadata": { "name": "fast" }, "spec": { "extendedResourceName": "example.com/gpu" },
    }))]);
    let mut told = String::new();
    for name in [
        "pods",
        "count/pods",
        "limits.memory",
        "hugepages-2Mi",
        "requests.hugepages-2Mi",
        "requests.storage",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
        "services.nodeports",
        "secrets",
        "count/secrets",
        "count/deployments.apps",
        "requests.example.com/gpu",
        "requests.example.com/other",
        "fast.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/fast",
        "count/events",
        "nonsense",
    ] {
        let kinds = kinds_behind(name, &classes);
        let kinds: Vec<String> = kinds
            .iter()
            .map(|(group, plural)| format!("{plural}.{group}"))
            .collect();
        told.push_str(&format!("{name} -> {}\n", kinds.join(" ")));
    }
    expect![[r#"
        pods -> pods.
        count/pods -> pods.
        limits.memory -> pods.
        hugepages-2Mi -> pods.
        requests.hugepages-2Mi -> pods.
        requests.storage -> persistentvolumeclaims.
        gold.storageclass.storage.k8s.io/persistentvolumeclaims -> persistentvolumeclaims.
        services.nodeports -> services.
        secrets -> secrets.
        count/secrets -> secrets.
        count/deployments.apps -> deployments.apps
        requests.example.com/gpu -> pods. resourceclaims.resource.k8s.io
        requests.example.com/other -> pods.
        fast.deviceclass.resource.k8s.io/devices -> resourceclaims.resource.k8s.io
        requests.deviceclass.resource.kubernetes.io/fast -> pods. resourceclaims.resource.k8s.io
        count/events -> 
        nonsense -> 
    "#]]
    .assert_eq(&told);
}
