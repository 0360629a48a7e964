//! From objects to records.

use super::*;
use serde_json::{Value, json};

fn service_of(spec: Value) -> Service {
    let object = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "6f1c5c0e-6b52-4a6e-9c1b-0f4e7c1d2a3b"},
        "spec": spec,
    });
    service(&serde_json::from_value(object).unwrap())
}

#[test]
fn defaults_are_resolved() {
    let plain = service_of(json!({"clusterIP": "10.43.0.5", "ports": [{"port": 80}]}));
    assert_eq!(plain.kind, ServiceKind::ClusterIp);
    assert_eq!(
        plain.cluster_ips[..],
        ["10.43.0.5".parse::<IpAddr>().unwrap()]
    );
    assert!(!plain.uid.is_nil() && !plain.is_headless && !plain.is_external_local);
    assert_eq!(plain.affinity_seconds, None);
    assert_eq!(
        plain.ports[..],
        [ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            node_port: 0,
        }]
    );
}

#[test]
fn everything_that_routing_asks_for_is_kept() {
    let object = json!({
        "metadata": {
            "name": "web", "namespace": "shop",
            "labels": {"service.kubernetes.io/service-proxy-name": "other"},
        },
        "spec": {
            "type": "LoadBalancer", "clusterIPs": ["10.43.0.5", "fd43::5"],
            "externalIPs": ["192.168.1.9"], "externalTrafficPolicy": "Local",
            "internalTrafficPolicy": "Local", "healthCheckNodePort": 31000,
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
            "loadBalancerSourceRanges": [" 10.1.2.3/8 ", "fd00::1/16", "bad/99", "x"],
            "trafficDistribution": "PreferSameNode",
            "ports": [
                {"name": "sctp", "protocol": "SCTP", "port": 7, "nodePort": 30007},
                {"name": "odd", "protocol": "ODD", "port": 8},
            ],
        },
        "status": {"loadBalancer": {"ingress": [
            {"ip": "192.168.1.20", "ipMode": "VIP"}, {"ip": "192.168.1.21", "ipMode": "Proxy"},
            {"ip": "192.168.1.22"}, {"hostname": "lb.example"},
        ]}},
    });
    let kept = service(&serde_json::from_value(object).unwrap());
    assert_eq!(kept.kind, ServiceKind::LoadBalancer);
    assert_eq!(kept.cluster_ips.len(), 2);
    assert!(kept.is_external_local && kept.is_internal_local);
    assert!(kept.is_routed_by_others);
    assert_eq!(kept.health_check_node_port, 31000);
    assert_eq!(kept.affinity_seconds, Some(60));
    assert_eq!(kept.distribution, Distribution::PreferSameNode);
    let texts: Vec<_> = kept
        .load_balancer_ips
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(texts, ["192.168.1.20", "192.168.1.22"]);
    let ranges = kept.source_ranges.iter();
    let ranges: Vec<_> = ranges.map(ToString::to_string).collect();
    assert_eq!(ranges, ["10.0.0.0/8", "fd00::/16"]);
    assert_eq!(kept.ports.len(), 1);
    assert_eq!(
        (kept.ports[0].protocol, kept.ports[0].node_port),
        (Protocol::Sctp, 30007)
    );
}

#[test]
fn policies_count_where_they_mean_something() {
    let local = json!({"externalTrafficPolicy": "Local", "clusterIP": "10.43.0.5"});
    assert!(!service_of(local).is_external_local);
    let with_ip = json!({
        "externalTrafficPolicy": "Local", "clusterIP": "10.43.0.5", "externalIPs": ["192.168.1.9"],
    });
    assert!(service_of(with_ip).is_external_local);
    let away =
        service_of(json!({"type": "ExternalName", "externalName": "x.example", "clusterIP": ""}));
    assert_eq!(away.external_name.as_deref(), Some("x.example"));
    assert!(away.cluster_ips.is_empty() && !away.is_headless);
    let headless = service_of(json!({"clusterIP": "None", "clusterIPs": ["None"]}));
    assert!(headless.is_headless && headless.cluster_ips.is_empty());
}

fn slice_of(kind: &str, labels: Value, endpoints: Value) -> Option<(Key, Slice)> {
    let object = json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": labels},
        "addressType": kind, "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080}, {"name": "all"}],
    });
    slice(&serde_json::from_value(object).unwrap())
}

#[test]
fn conditions_that_are_not_said_are_upstreams_defaults() {
    let labels = json!({"kubernetes.io/service-name": "web"});
    let endpoints = json!([
        {"addresses": ["10.42.0.1"]},
        {
            "addresses": ["10.42.0.2"], "hostname": "web-0", "nodeName": "a", "zone": "z",
            "conditions": {"ready": false, "serving": true, "terminating": true},
            "hints": {"forZones": [{"name": "z"}], "forNodes": [{"name": "a"}]},
        },
        {"addresses": ["fd00::1"]},
    ]);
    let (key, slice) = slice_of("IPv4", labels.clone(), endpoints).unwrap();
    assert_eq!(&*key, "shop/web");
    assert_eq!(slice.endpoints.len(), 2);
    let [first, second] = &slice.endpoints[..] else {
        panic!("two of the family");
    };
    assert!(first.is_ready && first.is_serving && !first.is_terminating);
    assert!(!second.is_ready && second.is_serving && second.is_terminating);
    assert_eq!(second.node.as_deref(), Some("a"));
    assert!(Arc::ptr_eq(
        second.zone.as_ref().unwrap(),
        &second.hint_zones[0]
    ));
    assert_eq!(
        (slice.ports[0].port, slice.ports[1].port),
        (Some(8080), None)
    );
    assert_eq!(slice_of("FQDN", labels, json!([])), None);
    assert_eq!(slice_of("IPv4", json!({}), json!([])), None);
}
