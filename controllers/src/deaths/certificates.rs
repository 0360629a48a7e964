//! Certificate requests: approved, signed, and deleted when nobody waits for them.

use std::sync::LazyLock;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, there};
use crate::csr::tests::request;
use crate::fake_cluster::FakeCluster;
use crate::{Config, csr};

const CLIENT_USAGES: [&str; 2] = ["digital signature", "client auth"];
const SERVER_USAGES: [&str; 2] = ["digital signature", "server auth"];

fn path(name: &str) -> String {
    format!("/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}")
}

/// Of a node, for a client; with these conditions since the start.
fn ask(cluster: &FakeCluster, name: &str, conditions: &[&str]) {
    let of = |kind: &&str| {
        json!({"type": kind, "status": "True", "reason": "Test", "message": "",
            "lastUpdateTime": "2030-01-01T00:00:00Z"})
    };
    let conditions: Vec<Value> = conditions.iter().map(of).collect();
    let node = ("system:node:a", "system:nodes");
    let mut spec = request(node.0, node.1, &[], csr::NODE_CLIENT, &CLIENT_USAGES);
    spec.username = Some("system:bootstrap:abcdef".to_owned());
    let metadata = json!({"creationTimestamp": "2030-01-01T00:00:00Z"});
    let status = json!({"conditions": conditions});
    let request = json!({"metadata": metadata, "spec": spec, "status": status});
    cluster.api.put(&path(name), request);
}

/// Of the node itself, for its server.
fn ask_to_serve(cluster: &FakeCluster, name: &str, address: &str) {
    let node = ("system:node:a", "system:nodes");
    let mut spec = request(
        node.0,
        node.1,
        &[address],
        csr::NODE_SERVING,
        &SERVER_USAGES,
    );
    spec.username = Some(node.0.to_owned());
    cluster
        .api
        .put(&path(name), json!({"metadata": {}, "spec": spec}));
}

fn put_node(cluster: &FakeCluster, address: &str) {
    let status = json!({"addresses": [{"type": "InternalIP", "address": address}]});
    cluster
        .api
        .put("/api/v1/nodes/a", json!({"status": status}));
}

fn is_approved(cluster: &FakeCluster, name: &str) -> bool {
    let conditions = at(cluster, &path(name), "/status/conditions");
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    conditions.len() == 1 && conditions[0]["type"] == "Approved"
}

pub(super) static APPROVED: Story = Story {
    loops: &["csr-approve"],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[
        Step {
            what: "who may ask is approved, and who denied was is not",
            happens: |cluster| {
                ask(cluster, "client", &[]);
                ask(cluster, "denied", &["Denied"]);
                ask_to_serve(cluster, "old", "10.0.0.1");
                ask_to_serve(cluster, "other", "10.0.0.2");
                put_node(cluster, "10.0.0.1");
            },
            takes: AT_ONCE,
            done: |cluster| is_approved(cluster, "client") && is_approved(cluster, "old"),
        },
        Step {
            what: "the other when the node has its address",
            happens: |cluster| put_node(cluster, "10.0.0.2"),
            takes: AT_ONCE,
            done: |cluster| is_approved(cluster, "other"),
        },
    ],
};

fn with_authority() -> Config {
    static AUTHORITY: LazyLock<(String, String)> = LazyLock::new(|| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signs itself");
        (certificate.pem(), key.serialize_pem())
    });
    Config {
        signing_cert_pem: AUTHORITY.0.clone(),
        signing_key_pem: AUTHORITY.1.clone(),
        ..Config::default()
    }
}

fn is_signed(cluster: &FakeCluster, name: &str) -> bool {
    at(cluster, &path(name), "/status/certificate").is_string()
}

pub(super) static SIGNED: Story = Story {
    loops: &["csr-sign"],
    config: with_authority,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "what is approved is signed",
            happens: |cluster| {
                ask(cluster, "one", &["Approved"]);
                ask(cluster, "two", &["Approved"]);
                ask(cluster, "denied", &["Denied"]);
                ask(cluster, "waits", &[]);
            },
            takes: AT_ONCE,
            done: |cluster| is_signed(cluster, "one") && is_signed(cluster, "two"),
        },
        Step {
            what: "one of the name of another too",
            happens: |cluster| {
                cluster.api.delete(&path("one"));
                ask(cluster, "one", &["Approved"]);
            },
            takes: AT_ONCE,
            done: |cluster| {
                is_signed(cluster, "one")
                    && !is_signed(cluster, "denied")
                    && !is_signed(cluster, "waits")
            },
        },
    ],
};

pub(super) static CLEANED: Story = Story {
    loops: &["csr-clean"],
    config: Config::default,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "none is old",
            happens: |cluster| {
                ask(cluster, "denied", &["Denied"]);
                ask(cluster, "failed", &["Approved", "Failed"]);
                ask(cluster, "approved", &["Approved"]);
                ask(cluster, "waits", &[]);
            },
            takes: AT_ONCE,
            done: |cluster| {
                cluster
                    .api
                    .objects("/apis/certificates.k8s.io/v1/certificatesigningrequests")
                    .len()
                    == 4
            },
        },
        Step {
            what: "what was decided goes after an hour",
            happens: |_| {},
            takes: Duration::from_secs(3 * 3600),
            done: |cluster| {
                !there(cluster, &path("denied"))
                    && !there(cluster, &path("failed"))
                    && there(cluster, &path("approved"))
                    && there(cluster, &path("waits"))
            },
        },
        Step {
            what: "all goes after a day",
            happens: |_| {},
            takes: Duration::from_secs(26 * 3600),
            done: |cluster| !there(cluster, &path("approved")) && !there(cluster, &path("waits")),
        },
    ],
};
