//! A node's own requests are approved as soon as what decides is there; against a server in memory.

use super::*;
use crate::Config;
use crate::csr::tests::request;
use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::spawn;
use serde_json::json;
use tokio_util::sync::DropGuard;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const REVIEWS: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";
const CLIENT_USAGES: [&str; 2] = ["digital signature", "client auth"];
const SERVER_USAGES: [&str; 2] = ["digital signature", "server auth"];

struct Site {
    api: FakeApi,
    _running: DropGuard,
}

fn start() -> Site {
    let api = FakeApi::new();
    let _running = spawn(api.client(), Config::default(), run);
    Site { api, _running }
}

impl Site {
    fn ask(&self, name: &str, user: &str, names: &[&str], signer: &str, usages: &[&str]) {
        let mut spec = request("system:node:a", "system:nodes", names, signer, usages);
        spec.username = Some(user.to_owned());
        self.api
            .put(&format!("{REQUESTS}/{name}"), json!({ "spec": spec }));
    }

    fn is_approved(&self, name: &str) -> bool {
        let object = self.api.get(&format!("{REQUESTS}/{name}")).unwrap();
        csr::has_condition(&serde_json::from_value(object).unwrap(), "Approved")
    }

    fn node_has(&self, address: &str) {
        let status = json!({ "addresses": [{ "type": "InternalIP", "address": address }] });
        self.api.put("/api/v1/nodes/a", json!({ "status": status }));
    }

    fn approvals(&self) -> Vec<String> {
        let all = self.api.requests().into_iter();
        all.filter(|one| one.starts_with("PUT")).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_serving_request_waits_for_the_addresses_of_its_node() {
    let site = start();
    let serve = |name: &str, address: &str| {
        let signer = csr::NODE_SERVING;
        site.ask(name, "system:node:a", &[address], signer, &SERVER_USAGES);
    };
    serve("old", "10.0.0.1");
    serve("other", "10.0.0.2");
    site.node_has("10.0.0.1");
    eventually("the first is approved", || site.is_approved("old")).await;
    assert!(!site.is_approved("other"));
    site.node_has("10.0.0.2");
    eventually("the other is approved", || site.is_approved("other")).await;
    let expected = ["old", "other"].map(|name| format!("PUT {REQUESTS}/{name}/approval"));
    assert_eq!(site.approvals(), expected);
}

/// The server in memory says of no review that it is allowed.
#[tokio::test(start_paused = true)]
async fn a_client_request_of_whom_may_not_ask_is_left() {
    let site = start();
    site.ask("a", "jane", &[], csr::NODE_CLIENT, &CLIENT_USAGES);
    eventually("the server is asked", || {
        site.api.requests().contains(&REVIEWS.to_owned())
    })
    .await;
    site.node_has("10.0.0.1");
    let signer = csr::NODE_SERVING;
    site.ask("b", "system:node:a", &["10.0.0.1"], signer, &SERVER_USAGES);
    eventually("another is approved", || site.is_approved("b")).await;
    assert!(!site.is_approved("a"));
    assert_eq!(site.approvals(), [format!("PUT {REQUESTS}/b/approval")]);
}
