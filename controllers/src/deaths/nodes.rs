//! Networks of nodes.

use serde_json::json;

use super::{AT_ONCE, Step, Story, at, nothing, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;

fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn two_families() -> Config {
    Config {
        cluster_cidr: "fd00::/56,10.42.0.0/16".to_owned(),
        ..Config::default()
    }
}

fn add(cluster: &FakeCluster, name: &str) {
    cluster
        .api
        .put(&node(name), json!({"metadata": {}, "spec": {}}));
}

fn has_networks(cluster: &FakeCluster, name: &str, networks: &[&str]) -> bool {
    at(cluster, &node(name), "/spec/podCIDRs") == json!(networks)
}

pub(super) static NETWORKS: Story = Story {
    loops: &["node-ipam"],
    config: two_families,
    beat: nothing,
    deaths_min: 3,
    steps: &[
        Step {
            what: "a node has its own, beside one that had it before",
            happens: |cluster| {
                let spec = json!({"podCIDR": "10.42.0.0/24", "podCIDRs": ["10.42.0.0/24"]});
                cluster
                    .api
                    .put(&node("old"), json!({"metadata": {}, "spec": spec}));
                add(cluster, "a");
            },
            takes: AT_ONCE,
            done: |cluster| has_networks(cluster, "a", &["fd00::/64", "10.42.1.0/24"]),
        },
        Step {
            what: "the next node has the next ones",
            happens: |cluster| add(cluster, "b"),
            takes: AT_ONCE,
            done: |cluster| has_networks(cluster, "b", &["fd00:0:0:1::/64", "10.42.2.0/24"]),
        },
        Step {
            what: "what a node leaves is for the next",
            happens: |cluster| cluster.api.delete(&node("a")),
            takes: AT_ONCE,
            done: |cluster| !there(cluster, &node("a")),
        },
        Step {
            what: "which has it",
            happens: |cluster| add(cluster, "c"),
            takes: AT_ONCE,
            done: |cluster| has_networks(cluster, "c", &["fd00::/64", "10.42.1.0/24"]),
        },
    ],
};
