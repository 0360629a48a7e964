//! What is kept of a Service, and what is read of pods.

use super::*;
use serde_json::json;

#[test]
fn of_a_service_only_what_is_read_is_kept() {
    let service: Service = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "web", "namespace": "default", "finalizers": ["a"], "labels": {"x": "y"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "long",
                            "service.kubernetes.io/topology-mode": "Auto"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.43.0.9", "clusterIPs": ["10.43.0.9"],
            "selector": {"app": "web"}, "ipFamilies": ["IPv4"], "sessionAffinity": "None",
            "ports": [{"port": 80}],
        },
        "status": {"loadBalancer": {}},
    }))
    .unwrap();
    let meta = json!(service.metadata);
    assert_eq!(
        meta,
        json!({
            "name": "web", "namespace": "default", "labels": {"x": "y"},
            "annotations": {"service.kubernetes.io/topology-mode": "Auto"},
        })
    );
    assert!(service.has_address() && !service.is_headless());
    assert_eq!(service.family_of_address(), Some(Family::IPv4));
    let bare: Service = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    assert!(bare.selector().is_none() && !bare.has_address());
}

#[test]
fn addresses_are_read_as_they_always_were() {
    let shown = |text: &str| parse_address(text).map(|address| address.to_string());
    assert_eq!(shown("10.0.0.1").as_deref(), Some("10.0.0.1"));
    assert_eq!(shown("010.000.0.09").as_deref(), Some("10.0.0.9"));
    assert_eq!(shown("::ffff:10.0.0.1").as_deref(), Some("10.0.0.1"));
    assert_eq!(shown("FD00:0:0::1").as_deref(), Some("fd00::1"));
    for bad in [
        "",
        "10.0.0",
        "10.0.0.256",
        "+1.0.0.1",
        "10.0.0.1.1",
        "web",
        "1..2.3",
    ] {
        assert_eq!(shown(bad), None, "{bad}");
    }
}

#[test]
fn ports_are_found_by_name_and_protocol() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {
            "containers": [{"name": "c", "ports": [
                {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                {"name": "http", "containerPort": 8080},
            ]}],
            "initContainers": [
                {"name": "first", "ports": [{"name": "init", "containerPort": 1}]},
                {"name": "side", "restartPolicy": "Always",
                 "ports": [{"name": "metrics", "containerPort": 9100}]},
            ],
        },
    }))
    .unwrap();
    let found = |port: serde_json::Value| find_port(&pod, &serde_json::from_value(port).unwrap());
    assert_eq!(found(json!({"port": 80})), Some(80));
    assert_eq!(found(json!({"port": 80, "targetPort": 81})), Some(81));
    let named = |name: &str, protocol: &str| {
        found(json!({"port": 80, "targetPort": name, "protocol": protocol}))
    };
    assert_eq!(named("http", "TCP"), Some(8080));
    assert_eq!(named("dns", "UDP"), Some(53));
    assert_eq!(named("dns", "TCP"), None);
    assert_eq!(named("metrics", "TCP"), Some(9100));
    assert_eq!(named("init", "TCP"), None);
}
