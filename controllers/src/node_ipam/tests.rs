//! The loop against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::spawn;
use serde_json::Value;
use tokio_util::sync::DropGuard;

fn start(api: &FakeApi, cluster_cidr: &str) -> DropGuard {
    let config = Config {
        cluster_cidr: cluster_cidr.to_owned(),
        ..Config::default()
    };
    spawn(api.client(), config, run)
}

fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn put(api: &FakeApi, name: &str, spec: Value) {
    let node = json!({ "metadata": { "name": name, "uid": name }, "spec": spec });
    api.put(&path(name), node);
}

async fn has(api: &FakeApi, name: &str, networks: &[&str]) {
    eventually(&format!("{name} has {networks:?}"), || {
        let node = api.get(&path(name)).unwrap();
        node["spec"]["podCIDRs"] == json!(networks) && node["spec"]["podCIDR"] == networks[0]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_a_network_of_each_family_and_keeps_what_it_has() {
    let api = FakeApi::new();
    let _running = start(&api, "fd00::/56,10.42.0.0/16");
    put(&api, "a", json!({}));
    has(&api, "a", &["fd00::/64", "10.42.0.0/24"]).await;
    // From before the cluster had two: what is free is another number of each family.
    let one = json!({ "podCIDR": "10.42.1.0/24", "podCIDRs": ["10.42.1.0/24"] });
    put(&api, "b", one);
    put(&api, "c", json!({}));
    has(&api, "c", &["fd00:0:0:1::/64", "10.42.2.0/24"]).await;
    has(&api, "b", &["10.42.1.0/24"]).await;
    api.delete(&path("a"));
    put(&api, "d", json!({}));
    has(&api, "d", &["fd00::/64", "10.42.0.0/24"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_no_network_when_one_family_is_used_up() {
    let api = FakeApi::new();
    let _running = start(&api, "10.42.0.0/24,fd00::/56");
    put(&api, "a", json!({}));
    has(&api, "a", &["10.42.0.0/24", "fd00::/64"]).await;
    put(&api, "b", json!({}));
    eventually("it is told", || {
        let events = api.objects("/api/v1/events");
        events.iter().any(|one| one["reason"] == "CIDRNotAvailable")
    })
    .await;
    assert!(api.get(&path("b")).unwrap()["spec"]["podCIDR"].is_null());
    // It gets that of the one that goes.
    api.delete(&path("a"));
    has(&api, "b", &["10.42.0.0/24", "fd00::/64"]).await;
}
