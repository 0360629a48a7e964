//! The certificate is in every live namespace, and comes back; against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::spawn;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

const CA: &str = "the CA of this cluster";

struct Site {
    api: FakeApi,
    _running: DropGuard,
}

fn start(api: FakeApi) -> Site {
    let config = Config {
        ca_cert_pem: CA.to_owned(),
        ..Config::default()
    };
    let _running = spawn(api.client(), config, run);
    Site { api, _running }
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{NAME}")
}

fn add_namespace(api: &FakeApi, name: &str, metadata: Value) {
    let path = format!("/api/v1/namespaces/{name}");
    api.put(&path, json!({ "metadata": metadata }));
}

fn data(api: &FakeApi, namespace: &str) -> Value {
    api.get(&path(namespace))
        .map_or(Value::Null, |map| map["data"].clone())
}

impl Site {
    async fn published_in(&self, namespace: &str) {
        eventually("the certificate is published", || {
            data(&self.api, namespace) == json!({ FIELD: CA })
        })
        .await;
    }

    /// Waits until what was there before is surely dealt with.
    async fn has_looked(&self, other: &str) {
        add_namespace(&self.api, other, json!({}));
        self.published_in(other).await;
    }

    fn writes(&self) -> Vec<String> {
        let all = self.api.requests().into_iter();
        all.filter(|one| one.starts_with("POST") || one.starts_with("PUT"))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn every_namespace_gets_the_certificate_once() {
    let api = FakeApi::new();
    add_namespace(&api, "old", json!({}));
    let going = json!({ "deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a"] });
    add_namespace(&api, "going", going);
    let site = start(api);
    site.published_in("old").await;
    site.has_looked("new").await;
    let map = site.api.get(&path("new")).unwrap();
    assert_eq!(map["metadata"]["annotations"][ABOUT], ABOUT_TEXT);
    // A namespace that ends takes nothing more, and what is in order is not written again.
    site.api.break_watches();
    site.has_looked("last").await;
    assert_eq!(data(&site.api, "going"), Value::Null);
    let posts = ["old", "new", "last"].map(|name| {
        let path = path(name);
        format!("POST {}", path.strip_suffix(&format!("/{NAME}")).unwrap())
    });
    assert_eq!(site.writes(), posts);
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_is_mended_and_what_is_not_ours_is_kept() {
    let api = FakeApi::new();
    add_namespace(&api, "a", json!({}));
    // As an older CA left it, while nothing ran.
    let old = json!({
        "metadata": { "labels": { "own": "label" } },
        "data": { FIELD: "another CA", "more": "data" },
    });
    api.put(&path("a"), old);
    let site = start(api);
    site.published_in("a").await;
    let mended = site.api.get(&path("a")).unwrap();
    assert_eq!(mended["metadata"]["labels"], json!({ "own": "label" }));
    for changed in [
        json!({ FIELD: "forged" }),
        json!({ FIELD: CA, "more": "data" }),
        json!({}),
    ] {
        let mut map = site.api.get(&path("a")).unwrap();
        map["data"] = changed;
        site.api.put(&path("a"), map);
        site.published_in("a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_is_made_again_unless_its_namespace_went_too() {
    let api = FakeApi::new();
    add_namespace(&api, "a", json!({}));
    add_namespace(&api, "b", json!({}));
    let site = start(api);
    site.published_in("a").await;
    site.published_in("b").await;
    site.api.delete("/api/v1/namespaces/b");
    site.api.delete(&path("b"));
    site.api.delete(&path("a"));
    site.published_in("a").await;
    site.has_looked("c").await;
    assert_eq!(data(&site.api, "b"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_tried_again() {
    let api = FakeApi::new();
    let site = start(api);
    site.has_looked("a").await;
    site.api.refuse(&[500]);
    add_namespace(&site.api, "b", json!({}));
    site.published_in("b").await;
    let path = path("b");
    let post = format!("POST {}", path.strip_suffix(&format!("/{NAME}")).unwrap());
    let tried = site.writes().into_iter().filter(|one| *one == post);
    assert_eq!(tried.count(), 2);
}
