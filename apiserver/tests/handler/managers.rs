//! Who manages what, through the server: every write verb, server-side apply, scale, dry runs.

use super::site::{Answer, CONFIG_MAPS, Site, config_map, site};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const APPLY: &str = "application/apply-patch+yaml";

async fn apply(site: &Site, path: &str, body: &Value) -> Answer {
    site.ask("PATCH", path, APPLY, body.to_string().into())
        .await
}

/// `manager operation subresource fields`, one a line.
fn managers(object: &Value) -> String {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten().map(|entry| {
        let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {}\n",
            text("manager"),
            text("operation"),
            text("subresource"),
            entry["fieldsV1"]
        )
    });
    entries.collect()
}

fn applied_map(data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
}

#[tokio::test]
async fn every_write_says_who_manages_what() {
    let site = site().await;
    let request = Request::post(CONFIG_MAPS)
        .header("user-agent", "tool/v1.2 (linux/amd64)")
        .header("content-type", "application/json");
    let body = config_map("a", "1").to_string();
    let created = site
        .send(request.body(Full::new(Bytes::from(body))).unwrap())
        .await
        .ok();
    assert_eq!(
        managers(&created),
        "tool Update - {\"f:data\":{\".\":{},\"f:key\":{}}}\n"
    );
    let path = format!("{CONFIG_MAPS}/a");
    let more = json!({ "data": { "more": "x" } });
    let patched = site
        .patch(&format!("{path}?fieldManager=p"), "merge-patch", &more)
        .await
        .ok();
    assert!(managers(&patched).contains("p Update - {\"f:data\":{\"f:more\":{}}}"));
    let again = site
        .patch(&format!("{path}?fieldManager=q"), "merge-patch", &more)
        .await
        .ok();
    assert_eq!(patched, again, "what changes nothing writes nothing");
    let reset = json!([{ "op": "replace", "path": "/metadata/managedFields", "value": [{}] }]);
    let reset = site.patch(&path, "json-patch", &reset).await.ok();
    assert_eq!(managers(&reset), "");
    let untracked = site
        .patch(&path, "merge-patch", &json!({ "data": { "n": "1" } }))
        .await
        .ok();
    assert_eq!(managers(&untracked), "");
}

#[tokio::test]
async fn an_apply_creates_conflicts_forces_and_gives_up() {
    let site = site().await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=");
    let as_one = format!("{path}one");
    let created = apply(&site, &as_one, &applied_map(json!({ "x": "1", "y": "1" }))).await;
    assert_eq!(created.status, 201);
    let other = applied_map(json!({ "x": "2" }));
    let conflict = apply(&site, &format!("{path}two"), &other).await;
    assert_eq!(
        conflict.failure(),
        "409 Conflict: Apply failed with 1 conflict: conflict with \"one\": .data.x"
    );
    assert_eq!(
        conflict.json()["details"]["causes"][0],
        json!({
            "reason": "FieldManagerConflict",
            "message": "conflict with \"one\"",
            "field": ".data.x",
        })
    );
    let dry = format!("{path}two&force=true&dryRun=All");
    assert_eq!(apply(&site, &dry, &other).await.ok()["data"]["x"], "2");
    let forced = apply(&site, &format!("{path}two&force=true"), &other).await;
    assert_eq!(
        managers(&forced.ok()),
        "one Apply - {\"f:data\":{\"f:y\":{}}}\ntwo Apply - {\"f:data\":{\"f:x\":{}}}\n"
    );
    let given_up = apply(&site, &as_one, &applied_map(json!(null))).await.ok();
    assert_eq!(given_up["data"], json!({ "x": "2" }));
}

/// The object stays as it is, as somebody else set the same; who manages it changes all the same.
#[tokio::test]
async fn a_field_that_is_given_up_but_stays_has_one_manager_less() {
    let site = site().await;
    let both = applied_map(json!({ "x": "1", "y": "1" }));
    site.post(&format!("{CONFIG_MAPS}?fieldManager=u"), &both)
        .await
        .ok();
    let path = format!("{CONFIG_MAPS}/a?fieldManager=k");
    let whole = apply(&site, &path, &both).await.ok();
    let less = apply(&site, &path, &applied_map(json!({ "x": "1" })))
        .await
        .ok();
    assert_eq!(less["data"], both["data"]);
    assert_ne!(
        less["metadata"]["resourceVersion"],
        whole["metadata"]["resourceVersion"]
    );
    let kept = site.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(
        managers(&kept),
        "k Apply - {\"f:data\":{\"f:x\":{}}}\n\
         u Update - {\"f:data\":{\".\":{},\"f:x\":{},\"f:y\":{}}}\n"
    );
}

#[tokio::test]
async fn what_is_no_apply_is_refused() {
    let site = site().await;
    let path = format!("{CONFIG_MAPS}/a");
    let map = applied_map(json!({ "x": "1" }));
    let refused = [
        (path.clone(), map.to_string()),
        (format!("{path}?fieldManager=a%09b"), map.to_string()),
        (
            format!("{path}?fieldManager=m"),
            "{\"kind\":\"ConfigMap\"}".to_owned(),
        ),
        (
            format!("{path}?fieldManager=m"),
            map.to_string().replace("\"name\":\"a\"", "\"name\":\"b\""),
        ),
        (
            format!("{path}?fieldManager=m&fieldValidation=Strict"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: a\n  x: b\n"
                .to_owned(),
        ),
        (format!("{path}?fieldManager=m"), "{".to_owned()),
    ];
    let mut texts = Vec::new();
    for (path, body) in refused {
        let answer = site.ask("PATCH", &path, APPLY, body.into()).await;
        texts.push(answer.failure());
    }
    expect_test::expect![[r#"
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\tb": invalid character U+0009 (at position 1)
        400 BadRequest: invalid object type: /, Kind=ConfigMap
        400 BadRequest: the name of the object (b) does not match the name on the URL (a)
        400 BadRequest: error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:
          line 6: key "x" already set in map
        400 BadRequest: error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content"#]].assert_eq(&texts.join("\n"));
    let cbor = site
        .ask("PATCH", &path, "application/apply-patch+cbor", Vec::new())
        .await;
    assert_eq!(
        cbor.failure(),
        "415 UnsupportedMediaType: 415: Unsupported Media Type"
    );
    let forced = format!("{path}?force=true");
    let forced = site.patch(&forced, "merge-patch", &json!({})).await;
    assert!(
        forced
            .failure()
            .ends_with("force: Forbidden: may not be specified for non-apply patch")
    );
}

/// However much there is to say, clients read so much of a header and no more.
#[tokio::test]
async fn warnings_are_one_set_and_bounded() {
    let site = site().await;
    let mut wrong = config_map("a", "1");
    for one in 0..40 {
        wrong[format!("{one:02}{}", "x".repeat(300))] = json!({});
    }
    let made = site.post(CONFIG_MAPS, &wrong).await;
    assert_eq!(made.status, 201);
    let told: Vec<_> = made.headers.get_all("warning").iter().collect();
    assert_eq!(told.len(), 16);
    let first = format!("299 - \"unknown field \\\"00{}\"", "x".repeat(239));
    assert_eq!(told[0], first.as_str());
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let all = site.ask("DELETE", jobs, "", Vec::new()).await;
    let told = all.headers.get("warning").unwrap().to_str().unwrap();
    assert!(
        told.starts_with("299 - \"child pods are preserved"),
        "{told}"
    );
}

#[tokio::test]
async fn warnings_come_with_failures_too() {
    let site = site().await;
    let mut wrong = config_map("B@D", "1");
    wrong["dta"] = json!({});
    let refused = site.post(CONFIG_MAPS, &wrong).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        refused.headers.get("warning").unwrap(),
        "299 - \"unknown field \\\"dta\\\"\""
    );
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let twice = "{\"data\":{\"k\":\"1\",\"k\":\"2\"}}";
    let path = format!("{CONFIG_MAPS}/a");
    let warned = site
        .ask("PATCH", &path, "application/merge-patch+json", twice.into())
        .await;
    assert_eq!(
        warned.headers.get("warning").unwrap(),
        "299 - \"duplicate field \\\"data.k\\\"\""
    );
}

#[tokio::test]
async fn a_scale_and_a_status_have_managers_of_their_own() {
    let site = site().await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "a" }] },
            },
        },
    });
    let path = format!("{DEPLOYMENTS}/web");
    let applied = format!("{path}?fieldManager=a");
    assert_eq!(apply(&site, &applied, &deployment).await.status, 201);
    let replicas = json!({ "spec": { "replicas": 5 } });
    let scaled = format!("{path}/scale?fieldManager=s");
    site.patch(&scaled, "merge-patch", &replicas).await.ok();
    let status = json!({ "status": { "replicas": 5 }, "spec": { "replicas": 9 } });
    let observed = format!("{path}/status?fieldManager=o");
    site.patch(&observed, "merge-patch", &status).await.ok();
    let shown = managers(&site.get(&path).await.ok());
    assert!(
        shown.contains("s Update scale {\"f:spec\":{\"f:replicas\":{}}}"),
        "{shown}"
    );
    assert!(
        shown.contains("o Update status {\"f:status\":{\"f:replicas\":{}}}"),
        "{shown}"
    );
    let conflict = apply(&site, &applied, &deployment).await;
    assert_eq!(
        conflict.failure(),
        "409 Conflict: Apply failed with 1 conflict: conflict with \"s\" with subresource \
         \"scale\" using apps/v1: .spec.replicas"
    );
}

#[tokio::test]
async fn a_request_for_a_token_names_its_manager_with_and_without_metadata() {
    let site = site().await;
    let account = json!({ "metadata": { "name": "probe" } });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    site.post(accounts, &account).await.ok();
    for asked in [json!({}), json!({ "metadata": {} })] {
        let answer = site.post(&format!("{accounts}/probe/token"), &asked).await;
        let managers = answer.ok()["metadata"]["managedFields"].clone();
        assert_eq!(managers[0]["subresource"], "token");
        let fields = json!({ "f:spec": { "f:expirationSeconds": {} } });
        assert_eq!(managers[0]["fieldsV1"], fields);
    }
}
