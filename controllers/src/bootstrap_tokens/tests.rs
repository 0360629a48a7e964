//! Tokens that end, and signatures that come and go with them; against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::spawn;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

const MAP: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const NOW: &str = "2030-01-01T00:00:00Z";

fn secret(id: &str, change: &[(&str, &str)]) -> Secret {
    let mut data = std::collections::BTreeMap::new();
    let own = [
        ("token-id", id),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-signing", "true"),
    ];
    for (key, value) in own.iter().chain(change) {
        data.insert((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
    }
    Secret {
        metadata: kube::api::ObjectMeta {
            name: Some(format!("bootstrap-token-{id}")),
            namespace: Some(NAMESPACE.to_owned()),
            ..Default::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

fn path(id: &str) -> String {
    format!("/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}")
}

fn put(api: &FakeApi, id: &str, change: &[(&str, &str)]) {
    api.put(&path(id), serde_json::to_value(secret(id, change)).unwrap());
}

#[test]
fn an_end_is_read_and_one_that_cannot_be_is_past() {
    let now: Timestamp = NOW.parse().unwrap();
    for (ends, expected) in [
        ("", Life::ForEver),
        ("2030-01-01T00:00:30Z", Life::Left(Duration::from_secs(30))),
        (
            "2030-01-01T01:00:30+01:00",
            Life::Left(Duration::from_secs(30)),
        ),
        (NOW, Life::Over),
        ("2029-01-01T00:00:00Z", Life::Over),
        ("soon", Life::Over),
    ] {
        let secret = secret("abcdef", &[("expiration", ends)]);
        assert_eq!(token::life(&secret, now), expected, "{ends}");
    }
}

#[test]
fn only_a_good_token_that_may_signs() {
    let now: Timestamp = NOW.parse().unwrap();
    let signs = |secret: &Secret| token::to_sign_with(secret, now).is_some();
    assert!(signs(&secret("abcdef", &[])));
    for change in [
        ("token-id", "ghijkl"),
        ("token-secret", ""),
        ("expiration", NOW),
        ("usage-bootstrap-signing", "false"),
    ] {
        assert!(!signs(&secret("abcdef", &[change])), "{change:?}");
    }
    for id in ["abcde", "ABCDEF"] {
        assert!(!signs(&secret(id, &[])), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_goes_when_its_time_is_over_and_not_before() {
    let api = FakeApi::new();
    put(&api, "aaaaaa", &[("expiration", "2030-01-01T03:00:00Z")]);
    put(&api, "bbbbbb", &[("expiration", "2029-01-01T00:00:00Z")]);
    put(&api, "cccccc", &[]);
    let _running = spawn(api.client(), Config::default(), run_cleaner);
    let is_there = |id: &str| api.get(&path(id)).is_some();
    eventually("one was over", || !is_there("bbbbbb")).await;
    tokio::time::advance(Duration::from_secs(2 * 3600)).await;
    assert!(is_there("aaaaaa"));
    // Prolonged while it lives.
    put(&api, "aaaaaa", &[("expiration", "2030-01-01T04:00:00Z")]);
    tokio::time::advance(Duration::from_secs(3600 + 60)).await;
    assert!(is_there("aaaaaa"));
    tokio::time::advance(Duration::from_secs(3600)).await;
    eventually("it is over", || !is_there("aaaaaa")).await;
    assert!(is_there("cccccc"));
}

#[tokio::test(start_paused = true)]
async fn signatures_come_and_go_with_tokens() {
    let api = FakeApi::new();
    put(&api, "aaaaaa", &[]);
    let _running = spawn(api.client(), Config::default(), run_signer);
    let data = || api.get(MAP).map_or(Value::Null, |map| map["data"].clone());
    let has = |id: &str| data()[format!("jws-kubeconfig-{id}")].is_string();
    // Nobody made it: it is not made here.
    put(&api, "bbbbbb", &[]);
    let map = json!({ "data": { "kubeconfig": "a", "other": "b", "jws-kubeconfig-zzzzzz": "c" } });
    api.put(MAP, map);
    eventually("both have signed", || has("aaaaaa") && has("bbbbbb")).await;
    assert!(!has("zzzzzz"), "{}", data());
    assert_eq!(data()["other"], "b");
    let before = data()["jws-kubeconfig-aaaaaa"].clone();
    let mut changed = api.get(MAP).unwrap();
    changed["data"]["kubeconfig"] = "another".into();
    api.put(MAP, changed);
    let is_new = || has("aaaaaa") && data()["jws-kubeconfig-aaaaaa"] != before;
    eventually("signed anew", is_new).await;
    api.delete(&path("bbbbbb"));
    eventually("its signature went", || !has("bbbbbb")).await;
    assert!(has("aaaaaa"));
}
