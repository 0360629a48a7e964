use serde_json::json;

use super::*;

#[test]
fn a_query_reaches_the_server_as_it_is_meant() {
    let parameters = [
        ("labelSelector", "app=web,tier in (a,b)"),
        ("metricLabelSelector", ""),
    ];
    assert_eq!(
        with_query(
            "/apis/x/namespaces/default/pods/*/requests per s",
            &parameters
        ),
        "/apis/x/namespaces/default/pods/*/requests%20per%20s\
         ?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29"
    );
    assert_eq!(with_query("/a", &[("x", ""), ("y", "é")]), "/a?y=%C3%A9");
    assert_eq!(with_query("/a", &[("x", "1"), ("y", "2")]), "/a?x=1&y=2");
}

fn usage(containers: serde_json::Value) -> Usage {
    serde_json::from_value(json!({
        "metadata": {"name": "a"}, "timestamp": "2030-01-01T00:00:00Z", "window": "30s",
        "containers": containers,
    }))
    .unwrap()
}

#[test]
fn a_pod_uses_what_its_containers_use_together() {
    let two = usage(json!([
        {"name": "main", "usage": {"cpu": "100m", "memory": "1Mi"}},
        {"name": "side", "usage": {"cpu": "1500u"}},
    ]));
    assert_eq!(of_pod(&two, "cpu"), Some(102));
    assert_eq!(of_pod(&two, "memory"), None);
    assert_eq!(of_container(&two, "memory", "main"), Some(1_048_576_000));
    assert_eq!(of_container(&two, "memory", "side"), None);
    assert_eq!(of_container(&two, "cpu", "other"), None);
    assert_eq!(of_pod(&usage(json!([])), "cpu"), None);
}

fn group(preferred: &str, all: &[&str]) -> APIGroup {
    let version =
        |name: &str| json!({"groupVersion": format!("{CUSTOM_GROUP}/{name}"), "version": name});
    let versions: Vec<_> = all.iter().map(|name| version(name)).collect();
    serde_json::from_value(json!({
        "name": CUSTOM_GROUP, "versions": versions, "preferredVersion": version(preferred),
    }))
    .unwrap()
}

#[test]
fn custom_metrics_are_read_in_a_version_that_is_understood() {
    let chosen = |group: Option<&APIGroup>| custom_version(group);
    assert_eq!(
        chosen(Some(&group("v1beta1", &["v1beta2", "v1beta1"]))).unwrap(),
        "custom.metrics.k8s.io/v1beta1"
    );
    assert_eq!(
        chosen(Some(&group("v2", &["v2", "v1beta2"]))).unwrap(),
        "custom.metrics.k8s.io/v1beta2"
    );
    assert_eq!(
        chosen(Some(&group("v2", &["v2"]))).unwrap_err(),
        "no known available metric versions found"
    );
    assert_eq!(
        chosen(None).unwrap_err(),
        "no custom metrics API (custom.metrics.k8s.io) registered"
    );
}
