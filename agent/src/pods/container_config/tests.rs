//! What resources become.

use super::{container, sandbox};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
        "spec": spec,
        "status": {"qosClass": "Burstable"},
    }))
    .unwrap()
}

#[test]
fn requests_become_shares_and_limits_become_quotas() {
    let pod = pod(json!({"containers": [{
        "name": "c",
        "command": ["/run", "$(WHO)"],
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"cpu": "1500m", "memory": "1Gi"},
        },
    }]}));
    let spec = &pod.spec.as_ref().unwrap().containers[0];
    let env = vec![("WHO".to_owned(), "me".to_owned())];
    let made = container(&pod, spec, 3, env, 2 << 30);
    assert_eq!(made.command, ["/run", "me"]);
    assert_eq!(made.resources.cpu_shares, 256);
    assert_eq!(made.resources.cpu_quota_us, 150_000);
    assert_eq!(made.resources.memory_limit_bytes, 1 << 30);
    assert_eq!(made.resources.oom_score_adj, Some(750));
    let made = sandbox(&pod, 0, "web".into(), "Burstable");
    assert_eq!(made.cgroup, "burstable/podu1");
    assert_eq!(made.resources.memory_limit_bytes, 1 << 30);
    assert_eq!(made.resources.cpu_quota_us, 150_000);
}

#[test]
fn a_container_without_a_limit_unbounds_its_pod() {
    let pod = pod(json!({"containers": [
        {"name": "a", "resources": {"limits": {"memory": "1Gi"}}},
        {"name": "b"},
    ]}));
    let made = sandbox(&pod, 0, "web".into(), "Burstable");
    assert_eq!(made.resources.memory_limit_bytes, 0);
}
