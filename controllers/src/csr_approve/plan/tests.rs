//! Which requests are approved.

use super::*;
use crate::csr::tests::request;
use crate::csr::{NODE_CLIENT, NODE_SERVING};
use serde_json::json;

const CLIENT_USAGES: [&str; 2] = ["digital signature", "client auth"];
const SERVER_USAGES: [&str; 2] = ["digital signature", "server auth"];

fn node(name: &str) -> Option<Arc<Node>> {
    let node = json!({
        "metadata": { "name": "a" },
        "status": { "addresses": [
            { "type": "InternalIP", "address": "10.0.0.1" },
            { "type": "Hostname", "address": "host-a" },
            { "type": "ExternalDNS", "address": "host-s" },
            { "type": "ExternalDNS", "address": "kubernetes.default.svc" },
        ] },
    });
    (name == "a").then(|| Arc::new(serde_json::from_value(node).unwrap()))
}

fn plan_for(user: &str, common_name: &str, names: &[&str], signer: &str) -> Plan {
    let usages = if signer == NODE_SERVING {
        SERVER_USAGES
    } else {
        CLIENT_USAGES
    };
    let mut spec = request(common_name, "system:nodes", names, signer, &usages);
    spec.username = Some(user.to_owned());
    plan(
        &CertificateSigningRequest {
            spec,
            ..CertificateSigningRequest::default()
        },
        node,
        |own| Taken::of(own, [], [], &["host-s".to_owned()]),
    )
}

#[test]
fn a_client_certificate_is_a_matter_of_authorization() {
    let asked = plan_for("system:bootstrap:abcdef", "system:node:a", &[], NODE_CLIENT);
    assert_eq!(
        asked,
        Plan::ApproveIfAllowed {
            choices: vec![CLIENT]
        }
    );
    let renewed = plan_for("system:node:a", "system:node:a", &[], NODE_CLIENT);
    assert_eq!(
        renewed,
        Plan::ApproveIfAllowed {
            choices: vec![SELF_CLIENT, CLIENT]
        }
    );
    assert_eq!(plan_for("x", "admin", &[], NODE_CLIENT), Plan::Leave);
    assert_eq!(
        plan_for("x", "system:node:a", &[], "example.com/other"),
        Plan::Leave
    );
}

#[test]
fn a_serving_certificate_holds_only_what_the_node_has() {
    let serve = |user, names: &[&str]| plan_for(user, "system:node:a", names, NODE_SERVING);
    let approved = Plan::Approve { message: SERVING };
    assert_eq!(
        serve("system:node:a", &["a", "host-a", "10.0.0.1"]),
        approved
    );
    assert_eq!(serve("system:node:a", &["a", "10.0.0.2"]), Plan::Leave);
    assert_eq!(serve("system:node:a", &["kubernetes"]), Plan::Leave);
    for of_the_server in ["host-s", "kubernetes.default.svc"] {
        assert_eq!(
            serve("system:node:a", &["a", of_the_server]),
            Plan::Leave,
            "it only says that it has {of_the_server}"
        );
    }
    assert_eq!(
        serve("system:node:b", &["a"]),
        Plan::Leave,
        "another node asks"
    );
    assert_eq!(
        plan_for("system:node:b", "system:node:b", &["b"], NODE_SERVING),
        Plan::Leave,
        "its Node object is not there yet"
    );
}
