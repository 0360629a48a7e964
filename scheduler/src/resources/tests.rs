//! What a pod asks for, all containers together.

use super::*;
use serde_json::json;

fn asked(spec: serde_json::Value) -> (i64, i64) {
    let requests = pod_requests(&serde_json::from_value(spec).unwrap());
    (requests.milli_cpu, requests.memory)
}

fn container(cpu: &str) -> serde_json::Value {
    json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } })
}

#[test]
fn containers_add_up_and_an_init_container_may_need_more() {
    let two = json!([container("100m"), container("200m")]);
    assert_eq!(asked(json!({ "containers": two })), (300, 0));
    assert_eq!(
        asked(json!({ "containers": two, "initContainers": [container("1")] })),
        (1000, 0)
    );
}

#[test]
fn sidecars_count_beside_containers_and_beside_later_init_containers() {
    let mut sidecar = container("500m");
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({
        "containers": [container("100m")],
        "initContainers": [sidecar, container("300m")],
    });
    assert_eq!(asked(spec), (800, 0));
}

#[test]
fn overhead_and_pod_level_requests_count() {
    let spec = json!({
        "containers": [container("100m")],
        "overhead": { "memory": "1Mi" },
        "resources": { "requests": { "cpu": "2" } },
    });
    assert_eq!(asked(spec), (2000, 1024 * 1024));
}

/// Huge pages may be asked for by the pod as a whole too, devices may not.
#[test]
fn pod_level_huge_pages_count() {
    let pages = |size: &str, device: &str| json!({ "hugepages-2Mi": size, "a.org/x": device });
    let spec = serde_json::from_value(json!({
        "containers": [{ "name": "c", "resources": { "requests": pages("2Mi", "1") } }],
        "resources": { "requests": pages("6Mi", "3") },
    }));
    let found = pod_requests(&spec.unwrap());
    assert_eq!(found.scalar("hugepages-2Mi"), 6 * 1024 * 1024);
    assert_eq!(found.scalar("a.org/x"), 1);
}

#[test]
fn scoring_gives_a_silent_container_a_default() {
    let spec = serde_json::from_value(json!({ "containers": [{ "name": "c" }] })).unwrap();
    let scored = pod_scored_requests(&spec);
    assert_eq!((scored.milli_cpu, scored.memory), (100, 209_715_200));
    assert_eq!(pod_requests(&spec), Resources::default());
}

#[test]
fn scalars_are_found_by_name_whatever_their_order() {
    let mut all = Resources::default();
    for name in ["b/x", "a/x", "c/x"] {
        let one = Resources {
            scalars: vec![(name.into(), 2)],
            ..Resources::default()
        };
        all.add(&one);
        all.add(&one);
    }
    assert_eq!(
        (all.scalar("a/x"), all.scalar("c/x"), all.scalar("d/x")),
        (4, 4, 0)
    );
}
