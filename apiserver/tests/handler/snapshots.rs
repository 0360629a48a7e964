//! Snapshots of a running server: who gets which, one at a time, whole and without a pause.

use crate::handler::site::{CONFIG_MAPS, Site, config_map, site};
use bytes::Bytes;
use coracle_apiserver::authenticate::User;
use coracle_apiserver::snapshots::{PATH, SealingKey, Verified, WithKeys, check};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::json;

const WORDS: &str = "correct horse battery staple";
/// Far more than the pieces that wait for a client: most of it is not written yet while nobody reads.
const LARGE: usize = 200_000;
const LARGE_COUNT: usize = 20;

async fn asked(site: &Site, method: &str, user: &User) -> crate::handler::site::Answer {
    site.ask_as(user, method, PATH, "json", &json!({})).await
}

fn verified(bytes: &[u8]) -> Verified {
    check(bytes).unwrap()
}

async fn grant_get(site: &Site, name: &str) -> User {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [
            { "nonResourceURLs": [PATH], "verbs": ["get", "post"] },
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] },
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io" }],
    });
    site.post(&format!("{rbac}/clusterroles"), &role).await.ok();
    let bindings = format!("{rbac}/clusterrolebindings");
    site.post(&bindings, &binding).await.ok();
    let user = User::named(name);
    let may = json!({ "verb": "get", "resource": "pods", "namespace": "default", "name": "a" });
    site.until_may(&user, may).await;
    user
}

#[tokio::test]
async fn an_administrator_gets_the_keys_too_and_another_user_what_was_granted() {
    let site = site().await;
    site.run();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" },
        "stringData": { "word": "hunter2" },
    });
    site.post("/api/v1/namespaces/default/secrets", &secret)
        .await
        .ok();
    let jane = User::named("jane");
    for method in ["GET", "POST"] {
        let refused = asked(&site, method, &jane).await.failure();
        assert!(refused.starts_with("403 Forbidden"), "{refused}");
    }
    let key = SealingKey::new(WORDS).unwrap();
    let request = WithKeys::Sealed(&key).request();
    let body = request.map(|body| Full::new(Bytes::from(body)));
    let answer = site.send(body).await;
    let whole = verified(&answer.body);
    assert!(whole.facts.sealed == 1 && whole.facts.entries > 10);
    let header = whole.header.unwrap();
    assert_eq!(header.created, crate::handler::site::NOW);
    let files = header.keys.unwrap().open(WORDS).unwrap();
    assert!(files.are_in(&site.directory.path().join("pki")));
    assert_eq!(header.ca, Some(files.ca_fingerprint().unwrap()));

    let backup = grant_get(&site, "backup").await;
    let plain = asked(&site, "GET", &backup).await;
    let header = verified(&plain.body).header.unwrap();
    assert!(header.keys.is_none() && header.ca.is_some());
    let refused = asked(&site, "POST", &backup).await.failure();
    assert!(
        refused.contains("to members of system:masters only"),
        "{refused}"
    );
    let wrong = site.post(PATH, &json!({})).await.failure();
    assert!(
        wrong.starts_with("400 BadRequest: the body is no key"),
        "{wrong}"
    );
    assert_eq!(site.delete(PATH, &json!({})).await.status, 404);
}

#[tokio::test]
async fn a_client_that_reads_slowly_keeps_nobody_from_writing_and_gets_what_was_there_first() {
    let site = site().await;
    for number in 0..LARGE_COUNT {
        let object = config_map(&format!("large-{number}"), &"x".repeat(LARGE));
        site.post(CONFIG_MAPS, &object).await.ok();
    }
    let request = || {
        let request = WithKeys::No.request();
        request.map(|body| Full::new(Bytes::from(body))) as Request<_>
    };
    let before = site.store.revision();
    let mut slow = site.open(request()).await.into_body();
    let first = slow.frame().await.unwrap().unwrap().into_data().unwrap();
    site.post(CONFIG_MAPS, &config_map("later", "x")).await.ok();
    let busy = site.send(request()).await;
    assert_eq!(
        busy.failure(),
        "429 TooManyRequests: another snapshot is being taken"
    );
    assert!(busy.headers.contains_key("retry-after"));
    let rest = slow.collect().await.unwrap().to_bytes();
    let whole = verified(&[first, rest].concat());
    assert_eq!(whole.facts.revision, before, "what came later is not in it");
    assert!(whole.bytes > (LARGE * LARGE_COUNT) as u64);
    // The next one may begin once the first has ended.
    let mut next = site.send(request()).await;
    while next.status == 429 {
        tokio::task::yield_now().await;
        next = site.send(request()).await;
    }
    assert!(verified(&next.body).facts.revision > before);
    // So it may when its client went away.
    drop(site.open(request()).await);
    let mut next = site.send(request()).await;
    while next.status == 429 {
        tokio::task::yield_now().await;
        next = site.send(request()).await;
    }
    verified(&next.body);
}
