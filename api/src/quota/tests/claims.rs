//! What claims of devices use.

use super::*;
use std::borrow::Cow;

fn claim(requests: Value) -> Object {
    object(json!({
        "metadata": {
            "name": "c", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "resource.kubernetes.io/extended-resource-claim": "true" },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true,
            }],
        },
        "spec": { "devices": { "requests": requests } },
    }))
}

fn used(claim: &Object, pod: Option<&Value>, others: &[Object]) -> String {
    let classes = DeviceClasses::of(&[object(json!({
        "metadata": { "name": "fast" }, "spec": { "extendedResourceName": "example.com/gpu" },
    }))]);
    let around = Surroundings {
        now: NOW,
        classes: &classes,
        pod: &|_, _| pod.cloned().map(object).map(Cow::Owned),
        claims: &|_| Cow::Borrowed(others),
    };
    Evaluator::ResourceClaims.usage(claim, &around).to_string()
}

fn exactly(count: i64) -> Value {
    let exactly = json!({
        "deviceClassName": "fast", "allocationMode": "ExactCount", "count": count,
    });
    json!([{ "exactly": exactly }])
}

#[test]
fn the_worst_of_all_alternatives_counts() {
    let one = |class: &str, mode: &str, count: i64| json!({ "deviceClassName": class, "allocationMode": mode, "count": count });
    let requests = json!([
        { "firstAvailable": [one("a", "ExactCount", 2), one("a", "ExactCount", 3), one("b", "All", 0)] },
        { "exactly": one("a", "ExactCount", 1) },
    ]);
    expect!["a.deviceclass.resource.k8s.io/devices=4,b.deviceclass.resource.k8s.io/devices=32,count/resourceclaims.resource.k8s.io=1,requests.deviceclass.resource.kubernetes.io/a=4,requests.deviceclass.resource.kubernetes.io/b=32"]
        .assert_eq(&used(&claim(requests), None, &[]));
}

#[test]
fn a_claim_made_for_a_pod_is_charged_for_what_the_pod_is_not() {
    let pod = json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "u" },
        "spec": { "containers": [
            { "name": "c", "resources": { "requests": { "example.com/gpu": "2" } } },
        ] },
    });
    let three = claim(exactly(3));
    expect!["count/resourceclaims.resource.k8s.io=1,fast.deviceclass.resource.k8s.io/devices=3,requests.deviceclass.resource.kubernetes.io/fast=3,requests.example.com/gpu=1"]
        .assert_eq(&used(&three, Some(&pod), std::slice::from_ref(&three)));
    // The pod says that another one is its claim, or an older one is there.
    let whole = "requests.example.com/gpu=3";
    let mut named = pod.clone();
    named["status"]["extendedResourceClaimStatus"] = json!({ "resourceClaimName": "other" });
    assert!(used(&three, Some(&named), &[]).ends_with(whole));
    let mut older = three.clone();
    older.set(&["metadata", "name"], "b".into());
    assert!(used(&three, Some(&pod), &[older]).ends_with(whole));
    // Another pod of that name.
    let mut successor = pod;
    successor["metadata"]["uid"] = "v".into();
    assert!(used(&three, Some(&successor), &[]).ends_with(whole));
}
