//! APIServices of other servers: what becomes of the objects, and of requests while nobody answers.

use super::site::{PATIENCE, Site, site};
use http::StatusCode;
use serde_json::{Value, json};

const ALL: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "v1.shop.example.test";

fn shop(service: &str) -> Value {
    json!({
        "metadata": { "name": NAME },
        "spec": {
            "group": "shop.example.test", "version": "v1",
            "groupPriorityMinimum": 2000, "versionPriority": 200,
            "service": { "namespace": "default", "name": service, "port": 7443 },
            "insecureSkipTLSVerify": true,
        },
    })
}

/// Waits until the condition `Available` has a reason, and gives it.
async fn available(site: &Site, reason: &str) -> Value {
    let path = format!("{ALL}/{NAME}/status");
    let found = async {
        loop {
            let object = site.get(&path).await.ok();
            let conditions = object["status"]["conditions"].as_array().cloned();
            let mut conditions = conditions.unwrap_or_default().into_iter();
            let found = conditions.find(|one| one["type"] == "Available");
            if let Some(found) = found.filter(|one| one["reason"] == reason) {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, found).await;
    waited.unwrap_or_else(|_| panic!("the reason never was {reason}"))
}

#[tokio::test]
async fn what_nobody_answers_for_is_told_and_shown() {
    let site = site().await;
    site.run();
    site.post(ALL, &shop("nowhere")).await.ok();
    let condition = available(&site, "ServiceNotFound").await;
    assert_eq!(condition["status"], "False");
    let message = "service/nowhere in \"default\" is not present";
    assert_eq!(condition["message"], message);
    for path in ["", "/namespaces/default/carts", "/carts/a?watch=1"] {
        let path = format!("/apis/shop.example.test/v1{path}");
        let answer = site.get(&path).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(&*answer.body, b"service unavailable\n");
    }
    let groups = site.get("/apis").await.ok();
    let mut groups = groups["groups"].as_array().unwrap().iter();
    let group = groups.find(|one| one["name"] == "shop.example.test");
    assert_eq!(group.unwrap()["preferredVersion"]["version"], "v1");
    let group = site.get("/apis/shop.example.test").await.ok();
    assert_eq!(group["versions"][0]["groupVersion"], "shop.example.test/v1");
    // Others have no such group.
    let other = site.get("/apis/other.example.test/v1/carts").await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
    site.delete(&format!("{ALL}/{NAME}"), &Value::Null)
        .await
        .ok();
    let path = "/apis/shop.example.test/v1/carts";
    let gone = async {
        while site.get(path).await.status != StatusCode::NOT_FOUND {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

/// The steps of the conformance suite.
#[tokio::test]
async fn statuses_are_read_written_and_patched() {
    let site = site().await;
    site.run();
    site.post(ALL, &shop("nowhere")).await.ok();
    available(&site, "ServiceNotFound").await;
    let path = format!("{ALL}/{NAME}");
    let priority = json!({ "spec": { "versionPriority": 400 } });
    let patched = site.patch(&path, "merge-patch", &priority).await.ok();
    assert_eq!(patched["spec"]["versionPriority"], 400);
    let labels = json!({ "metadata": { "labels": { "of": "test" } } });
    site.patch(&path, "strategic-merge-patch", &labels)
        .await
        .ok();
    let status = format!("{path}/status");
    let own = |kind: &str| json!({ "type": kind, "status": "True", "reason": "E2E" });
    let updated = async {
        loop {
            let mut object = site.get(&status).await.ok();
            let conditions = object["status"]["conditions"].as_array_mut().unwrap();
            conditions.push(own("StatusUpdated"));
            let put = site.put(&status, &object).await;
            if put.status != StatusCode::CONFLICT {
                return put.ok();
            }
        }
    };
    let updated = tokio::time::timeout(PATIENCE, updated).await.unwrap();
    let mut conditions = updated["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(own("StatusPatched"));
    let patch = json!({ "status": { "conditions": conditions } });
    site.patch(&status, "merge-patch", &patch).await.ok();
    let object = site.get(&path).await.ok();
    let kinds = object["status"]["conditions"].as_array().unwrap().iter();
    let kinds: Vec<&Value> = kinds.map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["Available", "StatusUpdated", "StatusPatched"]);
    let selected = format!("{ALL}?labelSelector=of%3Dtest");
    site.delete(&selected, &Value::Null).await.ok();
    assert_eq!(site.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn other_servers_learn_by_what_they_know_this_one() {
    let site = site().await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let map = site.get(path).await.ok();
    let text = |name: &str| map["data"][name].as_str().unwrap().to_owned();
    assert_eq!(
        text("requestheader-allowed-names"),
        r#"["front-proxy-client"]"#
    );
    assert_eq!(
        text("requestheader-username-headers"),
        r#"["X-Remote-User"]"#
    );
    let [users, servers] = ["client-ca-file", "requestheader-client-ca-file"].map(text);
    assert!(servers.starts_with("-----BEGIN CERTIFICATE-----"));
    // Nobody whom the cluster's own authority has certified can take a user's name.
    assert_ne!(users, servers);
}
