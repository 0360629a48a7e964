//! What pods come to.

use super::{limit, limits, requests};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
}

#[test]
fn a_pod_is_limited_when_all_of_it_is() {
    let limited = |name: &str, memory: &str| json!({"name": name, "resources": {"limits": {"memory": memory}}});
    let spec = json!({
        "initContainers": [limited("i", "50Mi")],
        "containers": [limited("a", "20Mi"), limited("b", "10Mi")],
        "overhead": {"memory": "1Mi"},
    });
    let of = |spec: &Value| limit(&pod(spec.clone()), "memory").map(|limit| limit.value());
    assert_eq!(of(&spec), Some(51 << 20));
    let mut open = spec.clone();
    open["initContainers"][0]["resources"] = json!({});
    assert_eq!(of(&open), None);
    open["resources"] = json!({"limits": {"memory": "70Mi"}});
    assert_eq!(of(&open), Some(71 << 20));
}

#[test]
fn all_of_a_pod_is_told_whoever_in_it_says_so() {
    let resources =
        |requests: Value, limits: Value| json!({"requests": requests, "limits": limits});
    let sidecar = json!({
        "name": "s",
        "restartPolicy": "Always",
        "resources": resources(json!({"cpu": "100m"}), json!({"ephemeral-storage": "1Mi"})),
    });
    let gpu = json!({"cpu": "250m", "example.com/gpu": "2"});
    let main =
        json!({"name": "a", "resources": resources(gpu, json!({"ephemeral-storage": "2Mi"}))});
    let mut spec = json!({
        "initContainers": [sidecar, {"name": "i", "resources": resources(json!({"cpu": "1"}), json!({}))}],
        "containers": [main],
        "overhead": {"cpu": "5m", "memory": "1Mi", "ephemeral-storage": "1Mi"},
    });
    let told = |spec: &Value| {
        let pod = pod(spec.clone());
        format!("{} | {}", requests(&pod), limits(&pod))
    };
    let without =
        "cpu=1105m,ephemeral-storage=1Mi,example.com/gpu=2,memory=1Mi | ephemeral-storage=4Mi";
    assert_eq!(told(&spec), without);
    spec["resources"] = resources(json!({"cpu": "3"}), json!({"cpu": "4"}));
    let whole = "cpu=3005m,ephemeral-storage=1Mi,example.com/gpu=2,memory=1Mi | cpu=4005m,ephemeral-storage=4Mi";
    assert_eq!(told(&spec), whole);
}
