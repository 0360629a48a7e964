//! When pods have to go.

use super::*;
use serde_json::{Value, json};

const SINCE: &str = "2030-01-01T00:00:00Z";

fn taint(key: &str, effect: &str, since: &str) -> Value {
    json!({ "key": key, "effect": effect, "timeAdded": since })
}

fn sick() -> Value {
    json!([taint("sick", "NoExecute", SINCE)])
}

/// Of the driver `d` and the pool `p`, with one device.
fn slice(generation: i64, device: &str, taints: &Value) -> Value {
    json!({ "metadata": { "name": format!("{device}-{generation}") }, "spec": {
        "driver": "d", "nodeName": "n",
        "pool": { "name": "p", "generation": generation, "resourceSliceCount": 1 },
        "devices": [{ "name": device, "taints": taints }],
    } })
}

/// Allocated devices of that pool, each with its tolerations, and reserved for the pod.
fn claim(devices: &[(&str, Value)]) -> Value {
    let results = devices.iter().map(|(device, tolerations)| {
        json!({
            "driver": "d", "pool": "p", "device": device, "request": "one",
            "tolerations": tolerations,
        })
    });
    let results: Vec<Value> = results.collect();
    json!({
        "metadata": { "name": "c", "namespace": "default" },
        "spec": {},
        "status": {
            "allocation": { "devices": { "results": results } },
            "reservedFor": [{ "resource": "pods", "name": "w", "uid": "u" }],
        },
    })
}

fn pod() -> Value {
    json!({
        "metadata": { "name": "w", "namespace": "default", "uid": "u" },
        "spec": {
            "nodeName": "n", "containers": [],
            "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }],
        },
    })
}

/// Seconds after the taint.
fn goes_after(pod: &Value, claim: &Value, slices: &[Value]) -> Option<i64> {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    let claim: ResourceClaim = serde_json::from_value(claim.clone()).unwrap();
    let claim = Arc::new(claim);
    let slices = slices.iter().cloned().map(serde_json::from_value);
    let slices: Vec<ResourceSlice> = slices.map(Result::unwrap).collect();
    let slices: Vec<Arc<ResourceSlice>> = slices.into_iter().map(Arc::new).collect();
    let named = |name: &str| (name == "c").then(|| Arc::clone(&claim));
    let of_pool = |pool: &str| {
        let all = slices.iter().filter(|slice| pool_of(slice) == pool);
        all.cloned().collect()
    };
    let at = super::goes_at(&pod, named, of_pool)?;
    let since: Timestamp = SINCE.parse().unwrap();
    Some(at.duration_since(since).as_secs())
}

fn bears(seconds: Option<i64>) -> Value {
    let mut one = json!({ "key": "sick", "operator": "Exists", "effect": "NoExecute" });
    if let Some(seconds) = seconds {
        one["tolerationSeconds"] = seconds.into();
    }
    one
}

#[test]
fn a_taint_drives_out_who_does_not_tolerate_it_in_its_time() {
    let after = |tolerations: Value| {
        let claim = claim(&[("a", tolerations)]);
        goes_after(&pod(), &claim, &[slice(1, "a", &sick())])
    };
    assert_eq!(after(json!([])), Some(0));
    assert_eq!(after(json!([bears(None)])), None);
    assert_eq!(after(json!([bears(Some(60))])), Some(60));
    assert_eq!(after(json!([bears(Some(-5))])), Some(0));
    let two = json!([bears(Some(60)), bears(Some(30))]);
    assert_eq!(after(two), Some(30));
    let ever = json!([bears(Some(60)), bears(None)]);
    assert_eq!(after(ever), None);
    let other = json!([{ "key": "slow", "operator": "Exists", "effect": "NoExecute" }]);
    assert_eq!(after(other), Some(0));
    // As upstream: to be driven out is tolerated by its name alone.
    let any = json!([{ "key": "sick", "operator": "Exists" }]);
    assert_eq!(after(any), Some(0));
}

#[test]
fn only_no_execute_drives_out_and_the_first_of_all_counts() {
    let after = |taints: &Value, tolerations: Value| {
        goes_after(
            &pod(),
            &claim(&[("a", tolerations)]),
            &[slice(1, "a", taints)],
        )
    };
    for effect in ["NoSchedule", "None", "Whatever"] {
        let taints = json!([taint("sick", effect, SINCE)]);
        assert_eq!(after(&taints, json!([])), None, "{effect}");
    }
    let later = taint("worse", "NoExecute", "2030-01-01T00:00:40Z");
    let both = json!([taint("sick", "NoExecute", SINCE), later]);
    assert_eq!(after(&both, json!([])), Some(0));
    assert_eq!(after(&both, json!([bears(None)])), Some(40));
    assert_eq!(after(&both, json!([bears(Some(90))])), Some(40));
    assert_eq!(after(&both, json!([bears(Some(20))])), Some(20));
    let slices = [slice(1, "a", &sick()), slice(1, "b", &sick())];
    let two = claim(&[
        ("a", json!([bears(Some(70))])),
        ("b", json!([bears(Some(50))])),
    ]);
    assert_eq!(goes_after(&pod(), &two, &slices), Some(50));
}

#[test]
fn slices_of_an_older_generation_count_no_more() {
    let claim = claim(&[("a", json!([]))]);
    let after = |slices: &[Value]| goes_after(&pod(), &claim, slices);
    let (old, new) = (slice(1, "a", &sick()), slice(2, "a", &json!([])));
    assert_eq!(after(std::slice::from_ref(&old)), Some(0));
    assert_eq!(after(&[old.clone(), new]), None);
    assert_eq!(after(&[old, slice(2, "b", &json!([]))]), None, "it is gone");
    assert_eq!(after(&[]), None);
}

#[test]
fn only_a_pod_on_a_node_with_a_claim_of_its_own_is_looked_at() {
    let slices = [slice(1, "a", &sick())];
    let own = claim(&[("a", json!([]))]);
    let after = |pod: &Value, claim: &Value| goes_after(pod, claim, &slices);
    let mut waits = pod();
    waits["spec"]["nodeName"] = json!("");
    assert_eq!(after(&waits, &own), None);
    let mut others = own.clone();
    others["status"]["reservedFor"][0]["uid"] = "before".into();
    assert_eq!(after(&pod(), &others), None, "of its predecessor");
    others["status"]["reservedFor"] = json!([
        { "apiGroup": "x.example", "resource": "pods", "name": "w", "uid": "u" },
    ]);
    assert_eq!(after(&pod(), &others), None, "of something else");
    let mut free = own.clone();
    free["status"].as_object_mut().unwrap().remove("allocation");
    assert_eq!(after(&pod(), &free), None);

    let mut made = pod();
    made["spec"]["resourceClaims"][0] = json!({ "name": "gpu", "resourceClaimTemplateName": "t" });
    assert_eq!(after(&made, &own), None, "there is none yet");
    made["status"]["resourceClaimStatuses"] = json!([{ "name": "gpu", "resourceClaimName": "c" }]);
    assert_eq!(after(&made, &own), None, "somebody else's");
    let mut mine = own;
    mine["metadata"]["ownerReferences"] = json!([
        { "apiVersion": "v1", "kind": "Pod", "name": "w", "uid": "u", "controller": true },
    ]);
    assert_eq!(after(&made, &mine), Some(0));
}
