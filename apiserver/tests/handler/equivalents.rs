//! Kinds whose versions a webhook converts, seen by webhooks and policies that mean another version
//! than that of the request.

use super::custom_resources::DEFINITIONS;
use super::custom_webhooks::{NAME, V1, V2, first, with_hosts, with_hosts_stored};
use super::hooks::Hooks;
use super::policies::{enact, enact_bound, enact_change, mark, policy, rule};
use serde_json::{Value, json};

fn second(name: &str, host: &str, port: &str) -> Value {
    json!({
        "apiVersion": "net.example.test/v2", "kind": "Host", "metadata": { "name": name },
        "host": host, "port": port,
    })
}

/// A webhook that means the first version.
fn of_first(hooks: &Hooks, path: &str) -> Value {
    let mut webhook = hooks.webhook(path, "CREATE,UPDATE net.example.test hosts");
    webhook["rules"][0]["apiVersions"] = json!(["v1"]);
    webhook["failurePolicy"] = "Ignore".into();
    webhook
}

#[tokio::test]
async fn a_webhook_sees_its_version_and_changes_that_of_the_request() {
    let (site, hooks) = with_hosts().await;
    let all = vec![of_first(&hooks, "/rename")];
    hooks.register(&site, "Mutating", "m", all).await;
    let made = site.post(V2, &second("a", "h", "2")).await.ok();
    assert_eq!(
        (&made["host"], &made["port"]),
        (&json!("other"), &json!("1"))
    );
    assert_eq!(made["apiVersion"], "net.example.test/v2");
    assert!(made.get("hostPort").is_none());
    let seen = hooks.seen("/rename");
    let object = &seen[0]["object"];
    assert_eq!(object["apiVersion"], "net.example.test/v1");
    assert_eq!(object["hostPort"], "h:2");
    let stored = site.get(&format!("{V1}/a")).await.ok();
    assert_eq!(stored["hostPort"], "other:1");
}

#[tokio::test]
async fn a_webhook_judges_what_is_written_in_another_version() {
    let (site, hooks) = with_hosts().await;
    let all = vec![of_first(&hooks, "/judge")];
    hooks.register(&site, "Validating", "v", all).await;
    site.post(V2, &second("a", "good", "1")).await.ok();
    let refused = site.post(V2, &second("b", "bad", "1")).await;
    assert_eq!(refused.status, 400);
    let worse = json!({ "host": "bad" });
    let path = format!("{V2}/a");
    let refused = site.patch(&path, "merge-patch", &worse).await;
    assert_eq!(refused.status, 400);
    let seen = hooks.seen("/judge");
    assert_eq!(seen.last().unwrap()["oldObject"]["hostPort"], "good:1");
}

#[tokio::test]
async fn what_cannot_be_shown_is_not_let_through() {
    let (site, hooks) = with_hosts_stored("v2").await;
    let all = vec![of_first(&hooks, "/judge")];
    hooks.register(&site, "Validating", "v", all).await;
    site.post(V2, &second("a", "good", "1")).await.ok();
    let url = hooks.webhook("/never", "CREATE  hosts")["clientConfig"]["url"].clone();
    let url = url.as_str().unwrap().replace(&hooks.port.to_string(), "1");
    let away =
        json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "url": url } } } } });
    let path = format!("{DEFINITIONS}/{NAME}");
    site.patch(&path, "merge-patch", &away).await.ok();
    let failed = site.post(V2, &second("b", "good", "1")).await;
    assert_eq!(failed.status, 500);
    let told = failed.failure();
    let expected = "Internal error occurred: conversion webhook for net.example.test/v2, Kind=Host \
                    failed: Post \"https://";
    assert!(told.contains(expected), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_judges_what_is_written_in_another_version() {
    let (site, _hooks) = with_hosts().await;
    let spec = json!({
        "validations": [{ "expression": "object.hostPort != 'bad:1'" }],
    });
    let hosts = rule("net.example.test", "hosts");
    enact(&site, policy("p", hosts, spec), &["Deny"]).await;
    site.post(V2, &second("a", "good", "1")).await.ok();
    let refused = site.post(V2, &second("b", "bad", "1")).await;
    assert_eq!(refused.status, 422);
    let told = refused.failure();
    assert!(told.contains("failed expression"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_has_parameters_in_the_version_that_it_names() {
    let (site, _hooks) = with_hosts().await;
    site.post(V1, &first("params")).await.ok();
    let spec = json!({
        "paramKind": { "apiVersion": "net.example.test/v2", "kind": "Host" },
        "validations": [{ "expression": "object.data.host == params.host" }],
    });
    let maps = rule("", "configmaps");
    let named = json!({ "paramRef": {
        "name": "params", "namespace": "default", "parameterNotFoundAction": "Deny",
    }, "validationActions": ["Deny"] });
    enact_bound(&site, policy("q", maps, spec), named).await;
    let map = |host: &str| json!({ "metadata": { "name": "m" }, "data": { "host": host } });
    let trial = "/api/v1/namespaces/default/configmaps?dryRun=All";
    site.post(trial, &map("localhost")).await.ok();
    assert_eq!(site.post(trial, &map("other")).await.status, 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_changes_what_is_written_in_another_version() {
    let (site, _hooks) = with_hosts().await;
    let mutation = json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": "
        request.resource.resource == 'hosts' ? [
            JSONPatch{op: 'replace', path: '/hostPort', value: 'other:' + string(1)}] : []" } });
    let mutations = json!([mutation, mark("p")]);
    let hosts = rule("net.example.test", "hosts");
    enact_change(&site, "p", hosts, mutations).await;
    let made = site.post(V2, &second("a", "h", "2")).await.ok();
    assert_eq!(
        (&made["host"], &made["port"]),
        (&json!("other"), &json!("1"))
    );
    let stored = site.get(&format!("{V1}/a")).await.ok();
    assert_eq!(stored["hostPort"], "other:1");
}
