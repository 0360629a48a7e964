//! What webhooks make of kinds that users bring: conversion between versions, and admission.

use super::custom_resources::{DEFINITIONS, until, until_gone};
use super::hooks::{Hooks, patch};
use super::site::{PATIENCE, Site, site};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

pub const NAME: &str = "hosts.net.example.test";
pub const V1: &str = "/apis/net.example.test/v1/namespaces/default/hosts";
pub const V2: &str = "/apis/net.example.test/v2/namespaces/default/hosts";

/// `hostPort` of the first version is `host` and `port` of the second.
fn act(path: &str, request: &Value) -> Option<Value> {
    if path == "/mutate" {
        return patch(json!([
            { "op": "add", "path": "/note", "value": "seen" },
            { "op": "add", "path": "/nobody", "value": 1 },
        ]));
    }
    if path == "/deny" {
        return Some(json!({ "allowed": false, "status": { "message": "it stays" } }));
    }
    if path == "/rename" {
        return patch(json!([{ "op": "replace", "path": "/hostPort", "value": "other:1" }]));
    }
    if path == "/judge" {
        return Some(json!({ "allowed": request["object"]["hostPort"] != "bad:1" }));
    }
    let to = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap().iter();
    let converted = objects.map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = to.into();
        let fields = object.as_object_mut().unwrap();
        if to.ends_with("/v2") {
            let both = fields.remove("hostPort").unwrap();
            let (host, port) = both.as_str().unwrap().split_once(':').unwrap();
            fields.insert("host".into(), host.into());
            fields.insert("port".into(), port.into());
        } else {
            let [host, port] = ["host", "port"].map(|name| fields.remove(name).unwrap());
            let both = format!("{}:{}", host.as_str().unwrap(), port.as_str().unwrap());
            fields.insert("hostPort".into(), both.into());
        }
        object
    });
    let converted: Vec<Value> = converted.collect();
    Some(json!({ "result": { "status": "Success" }, "convertedObjects": converted }))
}

pub fn definition(hooks: &Hooks, stored: &str) -> Value {
    let version = |name: &str, fields: &[&str]| {
        let selectable = fields
            .iter()
            .map(|field| json!({ "jsonPath": format!(".{field}") }));
        let selectable: Value = selectable.collect();
        let fields = fields.iter().chain(&["note"]);
        let properties: Value = fields
            .map(|field| ((*field).to_owned(), json!({ "type": "string" })))
            .collect::<serde_json::Map<_, _>>()
            .into();
        json!({
            "name": name, "served": true, "storage": name == stored,
            "selectableFields": selectable,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": NAME },
        "spec": {
            "group": "net.example.test", "scope": "Namespaced",
            "names": { "plural": "hosts", "kind": "Host" },
            "versions": [version("v1", &["hostPort"]), version("v2", &["host", "port"])],
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": hooks.webhook("/convert", "CREATE  hosts")["clientConfig"],
            } },
        },
    })
}

pub async fn with_hosts() -> (Site, Hooks) {
    with_hosts_stored("v1").await
}

pub async fn with_hosts_stored(version: &str) -> (Site, Hooks) {
    let (site, hooks) = (site().await, Hooks::start(act).await);
    site.run();
    let definition = definition(&hooks, version);
    site.post(DEFINITIONS, &definition).await.ok();
    until(&site, NAME, "Established", "True").await;
    (site, hooks)
}

pub fn first(name: &str) -> Value {
    json!({
        "apiVersion": "net.example.test/v1", "kind": "Host", "metadata": { "name": name },
        "hostPort": "localhost:8080",
    })
}

#[tokio::test]
async fn objects_are_shown_and_kept_in_each_version() {
    let (site, hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    assert!(
        hooks.seen("/convert").is_empty(),
        "nothing was to be converted"
    );
    let shown = site.get(&format!("{V2}/a")).await.ok();
    assert_eq!(shown["apiVersion"], "net.example.test/v2");
    assert_eq!(
        (&shown["host"], &shown["port"]),
        (&json!("localhost"), &json!("8080"))
    );
    assert!(shown.get("hostPort").is_none());
    let second = json!({
        "apiVersion": "net.example.test/v2", "kind": "Host", "metadata": { "name": "b" },
        "host": "h", "port": "1",
    });
    let made = site.post(V2, &second).await.ok();
    assert_eq!(made["host"], "h");
    assert_eq!(site.get(&format!("{V1}/b")).await.ok()["hostPort"], "h:1");
    let changed = json!({ "port": "2" });
    let changed = site
        .patch(&format!("{V2}/b"), "merge-patch", &changed)
        .await
        .ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    assert_eq!(site.get(&format!("{V1}/b")).await.ok()["hostPort"], "h:2");
    let list = site.get(V2).await.ok();
    let ports: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["port"])
        .collect();
    assert_eq!(ports, [&json!("8080"), &json!("2")]);
    site.delete(&format!("{V2}/b"), &Value::Null).await.ok();
    assert_eq!(site.get(&format!("{V1}/b")).await.status, 404);
}

#[tokio::test]
async fn a_list_of_objects_of_several_versions_is_of_one() {
    let (site, hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    let path = format!("{DEFINITIONS}/{NAME}");
    let mut changed = definition(&hooks, "v2");
    let old = site.get(&path).await.ok();
    changed["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    let changed = site.put(&path, &changed).await.ok();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    site.post(V1, &first("b")).await.ok();
    let list = site.get(V2).await.ok();
    for one in list["items"].as_array().unwrap() {
        assert_eq!(one["apiVersion"], "net.example.test/v2");
        assert_eq!(one["host"], "localhost");
    }
    // What is stored already as it is asked for is not sent.
    let asked = hooks.seen("/convert");
    let objects = asked.last().unwrap()["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0]["metadata"]["name"], "a");
}

#[tokio::test]
async fn a_list_that_is_larger_than_an_answer_is_asked_for_in_parts() {
    const COUNT: usize = 10;
    let (site, hooks) = with_hosts().await;
    for index in 0..COUNT {
        let mut large = first(&format!("a{index}"));
        large["note"] = "x".repeat(1024 * 1024).into();
        site.post(V1, &large).await.ok();
    }
    let list = site.get(V2).await.ok();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), COUNT);
    assert!(items.iter().all(|one| one["port"] == "8080"));
    assert_eq!(hooks.seen("/convert").len(), COUNT);
}

#[tokio::test]
async fn a_definition_whose_objects_stay_keeps_no_other_from_its_turn() {
    let (site, hooks) = with_hosts().await;
    let mut other = definition(&hooks, "v1");
    other["metadata"]["name"] = "masts.net.example.test".into();
    other["spec"]["names"] = json!({ "plural": "masts", "kind": "Mast" });
    let other_name = "masts.net.example.test";
    let other_path = format!("{DEFINITIONS}/{other_name}");
    site.post(V1, &first("a")).await.ok();
    let webhook = hooks.webhook("/deny", "DELETE net.example.test hosts");
    hooks
        .register(&site, "Validating", "stay", vec![webhook])
        .await;
    let path = format!("{DEFINITIONS}/{NAME}");
    site.delete(&path, &Value::Null).await.ok();
    hooks.until_asked("/deny", 1).await;
    site.post(DEFINITIONS, &other).await.ok();
    until(&site, other_name, "Established", "True").await;
    site.delete(&other_path, &Value::Null).await.ok();
    until_gone(&site, &other_path).await;
    assert_eq!(site.get(&format!("{V1}/a")).await.ok()["kind"], "Host");
}

#[tokio::test]
async fn a_definition_whose_webhook_is_away_goes_with_what_is_stored_in_its_version() {
    let (site, hooks) = with_hosts().await;
    let path = format!("{DEFINITIONS}/{NAME}");
    let mut changed = definition(&hooks, "v2");
    let old = site.get(&path).await.ok();
    changed["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    let client = &mut changed["spec"]["conversion"]["webhook"]["clientConfig"];
    client["url"] = "https://localhost:1/convert".into();
    site.put(&path, &changed).await.ok();
    let second = json!({
        "apiVersion": "net.example.test/v2", "kind": "Host", "metadata": { "name": "b" },
        "host": "h", "port": "1",
    });
    site.post(V2, &second).await.ok();
    assert_eq!(site.get(V1).await.status, 500);
    site.delete(&path, &Value::Null).await.ok();
    until_gone(&site, &path).await;
}

#[tokio::test]
async fn a_watch_shows_its_version() {
    let (site, _hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    let request = Request::get(format!("{V2}?watch=1&resourceVersion=0&timeoutSeconds=3"));
    let response = site.open(request.body(Full::default()).unwrap()).await;
    site.post(V1, &first("b")).await.ok();
    let read = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
    let read = read.expect("the watch ends").unwrap().to_bytes();
    let text = String::from_utf8(read.to_vec()).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&Value> = events
        .iter()
        .map(|event| &event["object"]["metadata"]["name"])
        .collect();
    assert_eq!(names, [&json!("a"), &json!("b")]);
    assert!(events.iter().all(|event| event["object"]["port"] == "8080"));
}

#[tokio::test]
async fn a_watch_ends_in_its_time_while_its_objects_are_converted() {
    let (site, hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    let _held = hooks.hold().await;
    let begun = site.get(V1).await.ok()["metadata"]["resourceVersion"].clone();
    let begun = begun.as_str().unwrap();
    site.post(V1, &first("b")).await.ok();
    // What was there, then what changes.
    for from in ["0", begun] {
        let path = format!("{V2}?watch=1&resourceVersion={from}&timeoutSeconds=1");
        let request = Request::get(path).body(Full::default()).unwrap();
        let response = site.open(request).await;
        let read = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
        let read = read.expect("the watch ends").unwrap().to_bytes();
        assert_eq!(read, "", "after {from}");
    }
}

#[tokio::test]
async fn fields_are_looked_at_in_the_version_of_the_request() {
    let (site, _hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    let mut other = first("b");
    other["hostPort"] = "h:1".into();
    site.post(V1, &other).await.ok();
    for (path, selector, chosen) in [
        (V2, "host%3Dlocalhost", "a"),
        (V2, "host%3Dh,port%3D1", "b"),
        (V2, "port!%3D1", "a"),
        (V1, "hostPort%3Dh:1", "b"),
    ] {
        let path = format!("{path}?limit=1&fieldSelector={selector}");
        let list = site.get(&path).await.ok();
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{selector}: {list}");
        assert_eq!(items[0]["metadata"]["name"], chosen, "{selector}");
    }

    let query = "watch=1&resourceVersion=0&timeoutSeconds=3&fieldSelector=host%3Dh";
    let request = Request::get(format!("{V2}?{query}"));
    let response = site.open(request.body(Full::default()).unwrap()).await;
    for (name, host) in [("b", "elsewhere"), ("a", "h")] {
        let change = json!({ "host": host });
        let path = format!("{V2}/{name}");
        site.patch(&path, "merge-patch", &change).await.ok();
    }
    let read = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
    let read = read.expect("the watch ends").unwrap().to_bytes();
    let text = String::from_utf8(read.to_vec()).unwrap();
    let events = text.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap();
        format!("{} {name}", event["type"].as_str().unwrap())
    });
    let events: Vec<String> = events.collect();
    assert_eq!(events, ["ADDED b", "DELETED b", "ADDED a"], "{text}");
}

#[tokio::test]
async fn a_webhook_that_is_away_is_told() {
    let (site, hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    let path = format!("{DEFINITIONS}/{NAME}");
    let url = hooks.webhook("/never", "CREATE  hosts")["clientConfig"]["url"].clone();
    let url = url.as_str().unwrap().replace(&hooks.port.to_string(), "1");
    let away =
        json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "url": url } } } } });
    site.patch(&path, "merge-patch", &away).await.ok();
    let failed = site.get(&format!("{V2}/a")).await;
    assert_eq!(failed.status, 500);
    let told = failed.failure();
    let expected = "conversion webhook for net.example.test/v1, Kind=Host failed: Post \"https://";
    assert!(told.contains(expected), "{told}");
    assert_eq!(site.get(V2).await.status, 500);
    assert_eq!(
        site.get(&format!("{V1}/a")).await.ok()["hostPort"],
        "localhost:8080"
    );
}

#[tokio::test]
async fn what_a_webhook_adds_is_pruned() {
    let (site, hooks) = with_hosts().await;
    let mut webhook = hooks.webhook("/mutate", "CREATE  hosts");
    webhook["rules"][0]["apiGroups"] = json!(["net.example.test"]);
    hooks.register(&site, "Mutating", "m", vec![webhook]).await;
    let made = site.post(V1, &first("a")).await.ok();
    assert_eq!(made["note"], "seen");
    assert!(made.get("nobody").is_none());
    assert_eq!(hooks.seen("/mutate")[0]["kind"]["kind"], "Host");
}
