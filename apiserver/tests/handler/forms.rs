//! Tables, YAML, partial metadata.

use super::site::{CONFIG_MAPS, config_map, site};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn the_client_chooses_the_form() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let table = site.get_as(CONFIG_MAPS, TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["columnDefinitions"][1]["name"], "Data");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let one = site.get_as(&format!("{CONFIG_MAPS}/a"), TABLE).await.ok();
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    let yaml = site.get_as(CONFIG_MAPS, "application/yaml").await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    assert!(String::from_utf8_lossy(&yaml.body).contains("kind: ConfigMapList"));
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = site.get_as(CONFIG_MAPS, partial).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0]["data"].is_null());
}

#[tokio::test]
async fn yaml_comes_in_too() {
    let site = site().await;
    let body = "metadata:\n  name: y\ndata:\n  key: \"1\"\n";
    let answer = site
        .ask("POST", CONFIG_MAPS, "application/yaml", body.into())
        .await
        .ok();
    assert_eq!(answer["data"]["key"], "1");
}

#[tokio::test]
async fn an_event_is_the_same_in_both_its_groups() {
    let site = site().await;
    let event = serde_json::json!({
        "metadata": { "name": "e" },
        "involvedObject": { "kind": "Pod", "namespace": "default", "name": "p" },
        "reason": "Started", "message": "it runs", "type": "Normal",
        "source": { "component": "kubelet" }, "count": 2,
        "firstTimestamp": "2026-06-01T00:00:00Z", "lastTimestamp": "2026-06-01T00:00:00Z",
    });
    site.post("/api/v1/namespaces/default/events", &event)
        .await
        .ok();
    let other = "/apis/events.k8s.io/v1/namespaces/default/events";
    let list = site.get(other).await.ok();
    assert_eq!(list["apiVersion"], "events.k8s.io/v1");
    assert_eq!(list["items"][0]["note"], "it runs");
    assert_eq!(list["items"][0]["regarding"]["name"], "p");
}

#[tokio::test]
async fn a_deprecated_kind_is_warned_of() {
    let site = site().await;
    let answer = site.get("/api/v1/namespaces/default/endpoints").await;
    assert_eq!(
        answer.headers["warning"],
        "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\""
    );
    let answer = site.get("/api/v1/namespaces/default/services").await;
    assert!(!answer.headers.contains_key("warning"));
}
