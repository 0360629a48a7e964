//! Services, slices and pods, and where a webhook's connection leads.

use super::*;
use crate::view::tests::Objects;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn service(kind: &str) -> Value {
    json!({
        "metadata": { "name": "hook", "namespace": "ns" },
        "spec": {
            "type": kind, "ipFamilies": ["IPv4"],
            "ports": [{ "name": "https", "port": 8443 }, { "name": "other", "port": 80 }],
        },
    })
}

fn slice(name: &str, kind: &str, endpoints: Value) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "labels": { "kubernetes.io/service-name": "hook" },
        },
        "addressType": kind,
        "ports": [{ "name": "other", "port": 1 }, { "name": "https", "port": 8444 }],
        "endpoints": endpoints,
    })
}

fn endpoint(address: &str, ready: Value) -> Value {
    json!({ "addresses": [address], "conditions": { "ready": ready } })
}

fn check(objects: Vec<(&'static str, Value)>, port: u16, expected: Expect) {
    let view = Objects::new(objects);
    let tunnels = Tunnels::new(CancellationToken::new());
    let asked = Service {
        namespace: "ns".to_owned(),
        name: "hook".to_owned(),
        port,
    };
    let told = match find(view.as_ref(), &tunnels, &asked) {
        Ok(place) => format!("{place:?}"),
        Err(why) => why,
    };
    expected.assert_eq(&told);
}

#[test]
fn the_ready_one_of_the_first_family() {
    let six = slice("a", "IPv6", json!([endpoint("fd00::1", json!(true))]));
    let four = json!([
        endpoint("10.0.0.1", json!(false)),
        endpoint("10.0.0.2", Value::Null),
        endpoint("10.0.0.3", json!(false)),
    ]);
    let four = slice("b", "IPv4", four);
    let objects = vec![
        ("services", service("ClusterIP")),
        ("endpointslices", six),
        ("endpointslices", four),
    ];
    check(objects, 8443, expect!["Here(10.0.0.2:8444)"]);
}

#[test]
fn what_leads_nowhere_is_told_in_upstreams_words() {
    check(vec![], 443, expect![[r#"service "hook" not found"#]]);
    let of_kind = |kind| vec![("services", service(kind))];
    check(
        of_kind("ExternalName"),
        8443,
        expect![[r#"unsupported service type "ExternalName""#]],
    );
    check(
        of_kind("ClusterIP"),
        443,
        expect![[r#"no service port 443 found for service "hook""#]],
    );
    check(
        of_kind("NodePort"),
        8443,
        expect![[r#"no endpoints available for service "hook""#]],
    );
    let mut objects = of_kind("LoadBalancer");
    let unready = json!([endpoint("10.0.0.1", json!(false))]);
    objects.push(("endpointslices", slice("a", "IPv4", unready)));
    check(
        objects,
        8443,
        expect![[r#"no endpoints available for service "hook""#]],
    );
}

#[test]
fn no_endpoint_leads_to_the_server_itself() {
    let own = json!([endpoint("127.0.0.1", json!(true))]);
    let objects = vec![
        ("services", service("ClusterIP")),
        ("endpointslices", slice("a", "IPv4", own)),
    ];
    check(objects, 8443, expect!["address not allowed"]);
}
