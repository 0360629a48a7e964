//! Places of webhooks, and the URLs that their requests have.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

fn check(config: Value, expected: Expect) {
    let told = match ClientConfig::read(&config) {
        Ok(read) => {
            let port = match &read.address {
                Address::Url { port, .. } => *port,
                Address::Service(service) => service.port,
            };
            let (authority, path, host) = (read.authority(), &read.path, read.address.host());
            format!("https://{authority}{path} as {host} at {port}")
        }
        Err(why) => why,
    };
    expected.assert_eq(&told);
}

#[test]
fn a_service_is_named_as_its_certificate_must_be() {
    let service = |path: Value, port: Value| json!({ "service": { "namespace": "ns", "name": "hook", "path": path, "port": port } });
    check(
        service(json!("/a//b/"), json!(8443)),
        expect!["https://hook.ns.svc:8443/a/b as hook.ns.svc at 8443"],
    );
    check(
        service(Value::Null, Value::Null),
        expect!["https://hook.ns.svc:443/ as hook.ns.svc at 443"],
    );
    check(
        service(Value::Null, json!(70000)),
        expect!["invalid port 70000"],
    );
}

#[test]
fn a_url_keeps_its_port_or_has_none() {
    let url = |url: &str| json!({ "url": url });
    check(
        url("https://hooks.example.com"),
        expect!["https://hooks.example.com/ as hooks.example.com at 443"],
    );
    check(
        url("https://hooks.example.com:8443/a/../b"),
        expect!["https://hooks.example.com:8443/b as hooks.example.com at 8443"],
    );
    check(
        url("https://[::1]:9/x"),
        expect!["https://[::1]:9/x as [::1] at 9"],
    );
    check(
        url("http://hooks.example.com"),
        expect![[r#"Unparsable URL: parse "http://hooks.example.com": the scheme is not https"#]],
    );
    check(
        json!({}),
        expect!["webhook configuration must have either service or URL"],
    );
}

#[test]
fn a_bundle_that_is_no_text_is_said_to_be_none() {
    let config = json!({ "url": "https://a", "caBundle": STANDARD.encode([0xff, 0xfe]) });
    check(
        config,
        expect!["unable to load root certificates: unable to parse bytes as PEM block"],
    );
}
