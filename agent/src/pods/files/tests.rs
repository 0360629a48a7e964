//! What a pod reads about hosts.

use super::{hostname, hosts};
use crate::families::Families;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::net::IpAddr;

const CLUSTER: &str = "cluster.local";

fn ips(text: &str) -> Families<IpAddr> {
    let words = text.split(' ');
    words.map(|word| word.parse().unwrap()).collect()
}

fn pod(spec: Value) -> Pod {
    let meta = json!({"name": "web-0", "namespace": "shop"});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

#[test]
fn hosts_name_the_pod_and_its_aliases() {
    let pod = pod(json!({
        "containers": [],
        "subdomain": "db",
        "hostAliases": [{"ip": "10.1.1.1", "hostnames": ["a", "b"]}],
    }));
    let text = hosts(&pod, ips("10.42.0.9 fd42::9"), "", CLUSTER);
    for ip in ["10.42.0.9", "fd42::9"] {
        let line = format!("\n{ip}\tweb-0.db.shop.svc.cluster.local\tweb-0\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(text.ends_with("\n# Entries added by HostAliases.\n10.1.1.1\ta\tb\n"));
}

#[test]
fn a_long_name_is_cut_to_a_host_name() {
    let mut pod = pod(json!({"containers": []}));
    pod.metadata.name = Some(format!("{}-tail", "a".repeat(62)));
    assert_eq!(hostname(&pod, CLUSTER).unwrap(), "a".repeat(62));
}

#[test]
fn the_host_name_is_the_full_one_where_the_pod_asks_for_it() {
    let full = |subdomain: &str| {
        let spec = json!({
            "containers": [], "hostname": "one", "subdomain": subdomain, "setHostnameAsFQDN": true,
        });
        hostname(&pod(spec), CLUSTER)
    };
    assert_eq!(full("db").unwrap(), "one.db.shop.svc.cluster.local");
    assert_eq!(full("").unwrap(), "one");
    let error = full(&"d".repeat(40)).unwrap_err();
    assert!(
        error.ends_with("is too long (64 characters is the max, 67 characters requested)"),
        "{error}"
    );
}

#[test]
fn an_overriding_name_stands_alone() {
    let pod = pod(json!({
        "containers": [], "hostname": "one", "subdomain": "db", "setHostnameAsFQDN": true,
        "hostnameOverride": "edge.example.com",
    }));
    assert_eq!(hostname(&pod, CLUSTER).unwrap(), "edge.example.com");
    let text = hosts(&pod, ips("10.42.0.9"), "", CLUSTER);
    assert!(text.ends_with("\n10.42.0.9\tedge.example.com\n"), "{text}");
}
