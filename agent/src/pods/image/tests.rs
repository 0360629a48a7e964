//! Pull secrets and the wording of durations.

use super::{go_duration, of_secret};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use std::collections::BTreeMap;
use std::time::Duration;

fn secret(key: &str, text: &str) -> Secret {
    Secret {
        data: Some(BTreeMap::from([(
            key.to_owned(),
            ByteString(text.as_bytes().to_vec()),
        )])),
        ..Secret::default()
    }
}

#[test]
fn both_forms_of_pull_secrets_are_read() {
    let text = r#"{"auths":{"r.example":{"auth":"dXNlcjpwYTpzcw=="}}}"#;
    let found = of_secret(&secret(".dockerconfigjson", text));
    assert_eq!(
        (found[0].username.as_str(), found[0].password.as_str()),
        ("user", "pa:ss")
    );
    let text = r#"{"https://index.docker.io/v1/":{"username":"u","password":"p"}}"#;
    let found = of_secret(&secret(".dockercfg", text));
    assert_eq!(found[0].registry, "https://index.docker.io/v1/");
    assert!(of_secret(&secret(".dockercfg", "{")).is_empty());
}

#[test]
fn durations_are_worded_as_go_does() {
    for (milliseconds, text) in [
        (56, "56ms"),
        (1234, "1.234s"),
        (2000, "2s"),
        (62_500, "1m2.5s"),
    ] {
        assert_eq!(go_duration(Duration::from_millis(milliseconds)), text);
    }
}
