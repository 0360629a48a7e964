//! The variables that a container sees.

use super::{Sources, expand, make};
use crate::network::view::View;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};
use std::net::IpAddr;

fn pod(container: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"nodeName": "edge", "containers": [container]},
    }))
    .unwrap()
}

fn variables(container: Value, sources: &Sources) -> Result<Vec<(String, String)>, String> {
    let pod = pod(container);
    let container = pod.spec.as_ref().unwrap().containers[0].clone();
    make(&pod, &container, sources)
}

#[test]
fn expands_what_came_before_and_keeps_the_unknown() {
    let lookup = |name: &str| (name == "A").then(|| "1".to_owned());
    for (text, expected) in [
        ("$(A)-$(B)", "1-$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $( $(", "$A $( $("),
        ("100$", "100$"),
    ] {
        assert_eq!(expand(text, lookup), expected);
    }
}

#[test]
fn takes_values_from_maps_secrets_fields_and_resources() {
    let mut sources = Sources {
        pod_ips: ["10.42.0.7", "fd42::7"]
            .map(|ip| ip.parse().unwrap())
            .into_iter()
            .collect(),
        host_ips: IpAddr::from([192, 0, 2, 1]).into(),
        allocatable_memory_bytes: 1 << 30,
        ..Sources::default()
    };
    let map = json!({"data": {"color": "red", "size": "xl"}});
    sources
        .config_maps
        .insert("m".into(), Some(serde_json::from_value(map).unwrap()));
    let secret = json!({"data": {"pass": "c2VjcmV0"}});
    sources
        .secrets
        .insert("s".into(), Some(serde_json::from_value(secret).unwrap()));
    let container = json!({
        "name": "c",
        "envFrom": [{"prefix": "X_", "configMapRef": {"name": "m"}}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)/$(X_color)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}},
            {"name": "H", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIPs"}}},
            {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "pass"}}},
            {"name": "O", "valueFrom": {"secretKeyRef":
                {"name": "s", "key": "none", "optional": true}}},
            {"name": "M", "valueFrom": {"resourceFieldRef":
                {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "A", "value": "2"},
        ],
    });
    let made = variables(container, &sources).unwrap();
    let text: Vec<_> = made
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        text.join(" "),
        "X_color=red X_size=xl A=2 B=1/red IP=10.42.0.7 IPS=10.42.0.7,fd42::7 H=192.0.2.1 L=web P=secret M=1024"
    );
}

#[test]
fn says_what_is_missing() {
    let mut sources = Sources::default();
    sources.config_maps.insert("m".into(), None);
    let container = json!({"name": "c", "envFrom": [{"configMapRef": {"name": "m"}}]});
    assert_eq!(
        variables(container, &sources).unwrap_err(),
        "configmap \"m\" not found"
    );
    sources
        .config_maps
        .insert("m".into(), Some(serde_json::from_value(json!({})).unwrap()));
    let from = json!({"configMapKeyRef": {"name": "m", "key": "k"}});
    let container = json!({"name": "c", "env": [{"name": "A", "valueFrom": from}]});
    assert_eq!(
        variables(container, &sources).unwrap_err(),
        "couldn't find key k in ConfigMap shop/m"
    );
}

#[test]
fn services_are_linked_as_docker_did() {
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"clusterIP": "10.43.0.1", "ports": [{"name": "https", "port": 443}]},
    }))
    .unwrap();
    let view = View::of(&[service], &[], &[]);
    let sources = Sources {
        services: view.services_in("default"),
        ..Sources::default()
    };
    let made = variables(json!({"name": "c"}), &sources).unwrap();
    let text: Vec<_> = made
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    expect_test::expect![[r#"
        KUBERNETES_PORT=tcp://10.43.0.1:443
        KUBERNETES_PORT_443_TCP=tcp://10.43.0.1:443
        KUBERNETES_PORT_443_TCP_ADDR=10.43.0.1
        KUBERNETES_PORT_443_TCP_PORT=443
        KUBERNETES_PORT_443_TCP_PROTO=tcp
        KUBERNETES_SERVICE_HOST=10.43.0.1
        KUBERNETES_SERVICE_PORT=443
        KUBERNETES_SERVICE_PORT_HTTPS=443"#]]
    .assert_eq(&text.join("\n"));
}
