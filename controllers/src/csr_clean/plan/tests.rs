//! Which requests go, and when.

use super::*;
use serde_json::{Value, json};

const NOW: &str = "2026-06-02T12:00:00Z";

fn why(status: Value) -> Option<&'static str> {
    why_at(status, NOW)
}

fn why_at(status: Value, now: &str) -> Option<&'static str> {
    let request = json!({
        "metadata": { "name": "a", "creationTimestamp": "2026-06-01T11:00:00Z" },
        "spec": { "request": "", "signerName": "example.com/a" },
        "status": status,
    });
    why_over(
        &serde_json::from_value(request).unwrap(),
        now.parse().unwrap(),
    )
}

fn condition(kind: &str, at: &str) -> Value {
    json!({ "type": kind, "status": "True", "lastUpdateTime": at })
}

#[test]
fn requests_go_an_hour_after_their_end_and_a_day_without_one() {
    let (old, young) = ("2026-06-02T10:59:00Z", "2026-06-02T11:01:00Z");
    for (kind, reason) in [("Denied", "denied"), ("Failed", "failed")] {
        let with = |at| why(json!({ "conditions": [condition(kind, at)] }));
        assert_eq!((with(old), with(young)), (Some(reason), None));
    }
    let issued =
        |at| why(json!({ "conditions": [condition("Approved", at)], "certificate": "YQ==" }));
    assert_eq!((issued(old), issued(young)), (Some("issued"), None));
    let approved = |at| why(json!({ "conditions": [condition("Approved", at)] }));
    assert_eq!(approved(old), None);
    assert_eq!(
        approved("2026-06-01T11:00:00Z"),
        Some("approved and never issued")
    );
    assert_eq!(why(json!({})), Some("never decided about"));
    assert_eq!(why_at(json!({}), "2026-06-02T10:00:00Z"), None);
}

#[test]
fn a_request_goes_with_its_certificate() {
    let mut params = rcgen::CertificateParams::default();
    params.not_after = rcgen::date_time_ymd(2026, 6, 2);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let status = json!({
        "conditions": [condition("Approved", "2026-06-02T11:59:00Z")],
        "certificate": k8s_openapi::ByteString(pem.into_bytes()),
    });
    assert_eq!(why(status), Some("its certificate has ended"));
}
