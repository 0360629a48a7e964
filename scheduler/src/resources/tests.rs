//! What a pod asks for, all containers together.

use super::*;
use serde_json::json;

fn of(pod: serde_json::Value) -> PodRequests {
    PodRequests::of(&serde_json::from_value(pod).unwrap())
}

fn asked(spec: serde_json::Value) -> (i64, i64) {
    let requests = of(json!({ "spec": spec })).asked;
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
    let spec = json!({
        "containers": [{ "name": "c", "resources": { "requests": pages("2Mi", "1") } }],
        "resources": { "requests": pages("6Mi", "3") },
    });
    let found = of(json!({ "spec": spec })).asked;
    assert_eq!(found.scalar("hugepages-2Mi"), 6 * 1024 * 1024);
    assert_eq!(found.scalar("a.org/x"), 1);
}

#[test]
fn scoring_gives_a_silent_container_a_default() {
    let found = of(json!({ "spec": { "containers": [{ "name": "c" }] } }));
    let scored = &found.scored;
    assert_eq!((scored.milli_cpu, scored.memory), (100, DEFAULT_MEMORY));
    assert_eq!(&found.scored_on_node, scored);
    assert_eq!(found.asked, Resources::default());
}

const DEFAULT_MEMORY: i64 = 209_715_200;

/// A pod that asks for something as a whole counts on its node without a default for what an init
/// container of it names; before it has a node each silent container counts.
#[test]
fn pod_level_requests_leave_a_silent_container_less_of_a_default_on_a_node() {
    let of = |init: serde_json::Value| {
        let found = of(json!({ "spec": {
            "containers": [container("1")],
            "initContainers": [{ "name": "i", "resources": { "requests": init } }],
            "resources": { "requests": { "cpu": "2" } },
        } }));
        assert_eq!(
            (found.scored.milli_cpu, found.scored_on_node.milli_cpu),
            (1000, 2000)
        );
        (found.scored.memory, found.scored_on_node.memory)
    };
    assert_eq!(of(json!({ "memory": "64Mi" })), (DEFAULT_MEMORY, 64 << 20));
    assert_eq!(of(json!({ "memory": "0" })), (DEFAULT_MEMORY, 0));
    assert_eq!(of(json!({})), (DEFAULT_MEMORY, DEFAULT_MEMORY));
}

/// Until the node took it back, what a container had counts; and a wish counts before it is met.
#[test]
fn a_pod_that_is_resized_counts_with_the_most_of_wish_and_fact() {
    let resized = |wish: &str, given: &str, actual: &str, condition: &str| {
        let found = of(json!({
            "spec": { "containers": [container(wish)] },
            "status": {
                "conditions": [{ "type": "PodResizePending", "status": "True",
                                 "reason": condition }],
                "containerStatuses": [{
                    "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                    "allocatedResources": { "cpu": given },
                    "resources": { "requests": { "cpu": actual } },
                }],
            },
        }));
        assert_eq!(found.asked.milli_cpu, found.scored_on_node.milli_cpu);
        found.asked.milli_cpu
    };
    assert_eq!(resized("1", "2", "3", "Deferred"), 3000);
    assert_eq!(resized("1", "2", "1", "Deferred"), 2000);
    assert_eq!(resized("4", "2", "1", "Deferred"), 4000);
    assert_eq!(resized("4", "2", "1", "Infeasible"), 2000);
}

#[test]
fn what_the_node_says_of_an_init_container_that_ends_does_not_count() {
    let resized = |policy: serde_json::Value| {
        let mut init = container("1");
        init["name"] = "i".into();
        init["restartPolicy"] = policy;
        let found = of(json!({
            "spec": { "containers": [container("1")], "initContainers": [init] },
            "status": { "initContainerStatuses": [{
                "name": "i", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                "resources": { "requests": { "cpu": "5" } },
            }] },
        }));
        found.asked.milli_cpu
    };
    assert_eq!(resized("Always".into()), 6000);
    assert_eq!(resized(serde_json::Value::Null), 1000);
}

#[test]
fn a_pod_that_is_resized_as_a_whole_counts_likewise() {
    let found = of(json!({
        "spec": {
            "containers": [container("100m")],
            "resources": { "requests": { "cpu": "1" } },
        },
        "status": {
            "resources": { "requests": { "cpu": "3" } },
            "allocatedResources": { "cpu": "2" },
        },
    }));
    assert_eq!(found.asked.milli_cpu, 3000);
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
