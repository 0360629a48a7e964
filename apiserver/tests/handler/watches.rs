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
    watch_path(site, &format!("{CONFIG_MAPS}?watch=1&{query}"), accept).await
}

async fn watch_path(site: &Site, path: &str, accept: &str) -> Events {
    let request = Request::get(path).header("accept", accept);
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
async fn a_watch_ends_at_its_timeout() {
    let site = site().await;
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    let answer = tokio::time::timeout(PATIENCE, site.get(&path)).await;
    assert!(answer.unwrap().body.is_empty());
}

#[tokio::test]
async fn a_watch_from_the_future_waits_for_its_time() {
    let site = site().await;
    let first = site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let revision: u64 = first["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let mut events = watch(&site, &format!("resourceVersion={}", revision + 1), "").await;
    site.post(CONFIG_MAPS, &config_map("b", "1")).await.ok();
    site.post(CONFIG_MAPS, &config_map("c", "1")).await.ok();
    assert_eq!(events.short().await, "ADDED c");
    let least = format!("resourceVersion={}", revision + 1000);
    let initial = format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&{least}");
    let event = watch(&site, &initial, "").await.next().await;
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(504))
    );
}

#[tokio::test]
async fn what_is_compacted_is_an_error_event() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let revision = site.store.revision();
    site.store.compact(revision).await.unwrap();
    let mut events = watch(&site, "resourceVersion=1", "").await;
    let event = events.next().await;
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(event["object"]["code"], 410);
    assert!(events.line().await.is_none(), "the watch ends");
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=x");
    assert_eq!(site.get(&path).await.status, 500);
}

#[tokio::test]
async fn a_watch_from_nowhere_marks_the_end_of_what_was_there() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let mut events = watch(&site, "allowWatchBookmarks=true", "").await;
    assert_eq!(events.short().await, "ADDED a");
    let mark = events.next().await;
    assert_eq!(mark["type"], "BOOKMARK");
    let annotations = &mark["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    // Two seconds before its end an idle watch says how far it is.
    let query = "allowWatchBookmarks=1&resourceVersion=1&timeoutSeconds=3";
    let mut events = watch(&site, query, "").await;
    while events.short().await != "BOOKMARK " {}
    // Whoever asks for the initial events and for no bookmarks gets none.
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    let mut events = watch(&site, query, "").await;
    assert_eq!(events.short().await, "ADDED a");
    assert!(events.line().await.is_none());
}

#[tokio::test]
async fn one_object_is_watched_by_its_path() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    site.post(CONFIG_MAPS, &config_map("b", "1")).await.ok();
    let by_path = "/api/v1/watch/namespaces/default/configmaps/b?x=1";
    for path in [
        by_path,
        &format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Db"),
    ] {
        let mut events = watch_path(&site, &format!("{path}&watch=1"), "").await;
        assert_eq!(events.short().await, "ADDED b");
    }
    let other = format!("{by_path}&fieldSelector=metadata.name%3Da&watch=1");
    assert_eq!(
        site.get(&other).await.failure(),
        "400 BadRequest: fieldSelector metadata.name doesn't match requested name"
    );
    let mut all = watch_path(&site, "/api/v1/watch/configmaps?labelSelector=no", "").await;
    let mut labelled = config_map("c", "1");
    labelled["metadata"]["labels"] = json!({ "no": "x" });
    site.post(CONFIG_MAPS, &labelled).await.ok();
    assert_eq!(all.short().await, "ADDED c");
}

#[tokio::test]
async fn an_object_that_leaves_a_selection_does_so_at_the_revision_of_the_change() {
    let site = site().await;
    site.post(CONFIG_MAPS, &labelled("a", "x")).await.ok();
    let mut events = watch(&site, "labelSelector=l%3Dx", "").await;
    assert_eq!(events.short().await, "ADDED a");
    let changed = site
        .put(&format!("{CONFIG_MAPS}/a"), &labelled("a", "y"))
        .await
        .ok();
    let gone = events.next().await;
    let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(revision(&gone["object"]), revision(&changed));
    assert_eq!(gone["object"]["metadata"]["labels"]["l"], "x");
}

#[tokio::test]
async fn many_watchers_in_many_forms_see_the_same_events_in_order() {
    const EVENTS: usize = 40;
    let site = site().await;
    let meta = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut watchers = Vec::new();
    for accept in ["", meta, table].repeat(40) {
        watchers.push(watch(&site, "labelSelector=l%3Dx", accept).await);
    }
    for place in 0..EVENTS {
        let label = if place % 2 == 0 { "x" } else { "y" };
        let object = labelled(&format!("n{place:02}"), label);
        site.post(CONFIG_MAPS, &object).await.ok();
    }
    for events in &mut watchers {
        for place in (0..EVENTS).step_by(2) {
            let event = events.next().await;
            let object = match event["object"]["kind"].as_str() {
                Some("Table") => &event["object"]["rows"][0]["object"],
                _ => &event["object"],
            };
            assert_eq!(event["type"], "ADDED");
            assert_eq!(object["metadata"]["name"], format!("n{place:02}"));
        }
    }
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
