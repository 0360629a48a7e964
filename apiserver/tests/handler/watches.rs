//! Events, selectors, bookmarks, the initial list.

use super::site::{CONFIG_MAPS, PATIENCE, Site, config_map, site};
use coracle_apiserver::tunnel::Body;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// The lines of a watch.
struct Events {
    body: Body,
    read: Vec<u8>,
}

impl Events {
    async fn next(&mut self) -> Value {
        tokio::time::timeout(PATIENCE, self.line())
            .await
            .expect("an event in time")
            .expect("a stream that goes on")
    }

    /// Type and name, or the revision of a bookmark.
    async fn short(&mut self) -> String {
        let event = self.next().await;
        let kind = event["type"].as_str().unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("");
        format!("{kind} {name}")
    }

    async fn line(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.read.extend_from_slice(&frame.into_data().unwrap());
        }
    }
}

async fn watch(site: &Site, query: &str, accept: &str) -> Events {
    let request = Request::get(format!("{CONFIG_MAPS}?watch=1&{query}")).header("accept", accept);
    let response = site.open(request.body(Full::default()).unwrap()).await;
    assert_eq!(response.status(), 200);
    Events {
        body: response.into_body(),
        read: Vec::new(),
    }
}

fn labelled(name: &str, label: &str) -> Value {
    let mut object = config_map(name, "1");
    object["metadata"]["labels"] = json!({ "l": label });
    object
}

#[tokio::test]
async fn a_watch_goes_on_from_a_revision() {
    let site = site().await;
    let first = site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
    site.put(&format!("{CONFIG_MAPS}/a"), &config_map("a", "2"))
        .await
        .ok();
    let mut events = watch(&site, &format!("resourceVersion={revision}"), "").await;
    let event = events.next().await;
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["data"]["key"], "2");
    site.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null)
        .await
        .ok();
    let event = events.next().await;
    assert_eq!(event["type"], "DELETED");
    assert_ne!(event["object"]["metadata"]["resourceVersion"], revision);
}

#[tokio::test]
async fn a_selector_turns_changes_into_comings_and_goings() {
    let site = site().await;
    site.post(CONFIG_MAPS, &labelled("a", "x")).await.ok();
    site.post(CONFIG_MAPS, &labelled("b", "y")).await.ok();
    let mut events = watch(&site, "labelSelector=l%3Dx", "").await;
    assert_eq!(events.short().await, "ADDED a");
    site.put(&format!("{CONFIG_MAPS}/b"), &labelled("b", "x"))
        .await
        .ok();
    assert_eq!(events.short().await, "ADDED b");
    site.put(&format!("{CONFIG_MAPS}/a"), &labelled("a", "y"))
        .await
        .ok();
    let gone = events.next().await;
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["l"], "x");
    site.put(&format!("{CONFIG_MAPS}/b"), &labelled("b", "z"))
        .await
        .ok();
    assert_eq!(events.short().await, "DELETED b");
}

#[tokio::test]
async fn the_initial_list_ends_with_a_marked_bookmark() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = watch(&site, query, "").await;
    assert_eq!(events.short().await, "ADDED a");
    let mark = events.next().await;
    assert_eq!(mark["type"], "BOOKMARK");
    let annotations = &mark["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    site.post(CONFIG_MAPS, &config_map("b", "1")).await.ok();
    assert_eq!(events.short().await, "ADDED b");
    let path = format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true");
    assert_eq!(site.get(&path).await.status, 422);
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout_and_with_the_future_it_does_not_begin() {
    let site = site().await;
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    let answer = tokio::time::timeout(PATIENCE, site.get(&path)).await;
    assert!(answer.unwrap().body.is_empty());
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=999999");
    assert_eq!(site.get(&path).await.status, 504);
}

#[tokio::test]
async fn a_watched_table_has_its_columns_once() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    site.post(CONFIG_MAPS, &config_map("b", "1")).await.ok();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut events = watch(&site, "", table).await;
    let first = events.next().await;
    assert!(first["object"]["columnDefinitions"].is_array());
    let second = events.next().await;
    assert!(
        second["object"]["columnDefinitions"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
}
