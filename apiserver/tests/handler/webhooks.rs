//! What admission webhooks change, and what they say no to.

use super::hooks::{Hooks, patch, path};
use super::site::{CONFIG_MAPS, PATIENCE, Site, audited_site, config_map, site};
use expect_test::expect;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Adds a stage to a ConfigMap whose stage before is there; fills in pods, names and scales.
fn mutate(path: &str, request: &Value) -> Option<Value> {
    let has = |key: &str| request["object"]["data"][key] == "yes";
    let add = |path: &str, value: Value| json!({ "op": "add", "path": path, "value": value });
    match path {
        "/first" if has("start") => patch(json!([add("/data/stage-1", json!("yes"))])),
        "/second" if has("stage-1") => patch(json!([add("/data/stage-2", json!("yes"))])),
        "/init" => {
            let container = json!({ "name": "init", "image": "a" });
            patch(json!([add("/spec/initContainers", json!([container]))]))
        }
        "/name" => patch(json!([add("/metadata/name", json!("chosen"))])),
        "/elsewhere" => patch(json!([add("/metadata/namespace", json!("kube-system"))])),
        "/scale" => patch(json!([add("/spec/replicas", json!(7))])),
        "/broken" => patch(json!([{ "op": "remove", "path": "/none" }])),
        "/drop" => patch(json!([add("/nonsense", json!(1))])),
        _ => Some(json!({ "allowed": true })),
    }
}

fn started() -> Value {
    json!({ "metadata": { "name": "m" }, "data": { "start": "yes" } })
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name }, "spec": { "containers": [{ "name": "c", "image": "a" }] },
    })
}

async fn running() -> Site {
    let site = site().await;
    site.run();
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    site.post(accounts, &account).await.ok();
    site
}

#[tokio::test]
async fn webhooks_change_what_those_before_them_made() {
    let (site, hooks) = (running().await, Hooks::start(mutate).await);
    let rules = "CREATE  configmaps";
    // By the names of configurations, not in the order in which they came.
    let second = hooks.webhook("/second", rules);
    hooks.register(&site, "Mutating", "b", vec![second]).await;
    let first = hooks.webhook("/first", rules);
    hooks.register(&site, "Mutating", "a", vec![first]).await;
    let made = site.post(CONFIG_MAPS, &started()).await.ok();
    let all = json!({ "start": "yes", "stage-1": "yes", "stage-2": "yes" });
    assert_eq!(made["data"], all);
    // What is not meant is not asked about.
    let asked = hooks.seen("/first").len();
    site.patch(
        &format!("{CONFIG_MAPS}/m"),
        "merge-patch",
        &json!({ "data": { "x": "y" } }),
    )
    .await
    .ok();
    assert_eq!(hooks.seen("/first").len(), asked);
}

#[tokio::test]
async fn what_a_webhook_adds_is_defaulted_and_checked() {
    let (site, hooks) = (running().await, Hooks::start(mutate).await);
    let init = hooks.webhook("/init", "CREATE  pods");
    let drop = hooks.webhook("/drop", "CREATE  pods");
    hooks
        .register(&site, "Mutating", "a", vec![init, drop])
        .await;
    let made = site.post(PODS, &pod("p")).await.ok();
    let added = &made["spec"]["initContainers"][0];
    assert_eq!(added["name"], "init");
    assert_eq!(added["terminationMessagePolicy"], "File");
    assert_eq!(made["nonsense"], Value::Null);
    // The account's token was mounted into it: the plugins had a second turn.
    let mounts = added["volumeMounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 1, "{added}");
}

#[tokio::test]
async fn a_webhook_may_name_an_object_but_not_move_it() {
    let (site, hooks) = (running().await, Hooks::start(mutate).await);
    let mut name = hooks.webhook("/name", "CREATE  configmaps");
    name["objectSelector"] = json!({ "matchLabels": { "do": "name" } });
    let mut elsewhere = hooks.webhook("/elsewhere", "CREATE,UPDATE  configmaps");
    elsewhere["objectSelector"] = json!({ "matchLabels": { "do": "move" } });
    let all = vec![name, elsewhere];
    hooks.register(&site, "Mutating", "a", all).await;
    let generated = json!({ "metadata": { "generateName": "g-", "labels": { "do": "name" } } });
    let made = site.post(CONFIG_MAPS, &generated).await.ok();
    assert_eq!(made["metadata"]["name"], "chosen");
    let mut moved = config_map("m", "x");
    moved["metadata"]["labels"] = json!({ "do": "move" });
    expect!["400 BadRequest: the namespace of the provided object does not match the namespace sent on the request"]
        .assert_eq(&site.post(CONFIG_MAPS, &moved).await.failure());
    site.post(CONFIG_MAPS, &config_map("m", "x")).await.ok();
    let refused = site.put(&format!("{CONFIG_MAPS}/m"), &moved).await;
    assert!(!refused.status.is_success(), "{}", refused.failure());
    let there = "/api/v1/namespaces/kube-system/configmaps/m";
    assert_eq!(site.get(there).await.status, 404);
}

#[tokio::test]
async fn a_scale_is_a_scale_for_webhooks_too() {
    let (site, hooks) = (running().await, Hooks::start(mutate).await);
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "c", "image": "a" }] },
    });
    let selector = json!({ "matchLabels": { "a": "b" } });
    let spec = json!({ "replicas": 1, "selector": selector, "template": template });
    let deployment = json!({ "metadata": { "name": "d" }, "spec": spec });
    site.post(DEPLOYMENTS, &deployment).await.ok();
    let scale = hooks.webhook("/scale", "UPDATE apps deployments/scale");
    hooks.register(&site, "Mutating", "a", vec![scale]).await;
    let at = format!("{DEPLOYMENTS}/d/scale");
    let wanted = json!({ "spec": { "replicas": 2 } });
    let scaled = site.patch(&at, "merge-patch", &wanted).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 7);
    let seen = hooks.seen("/scale");
    assert_eq!(seen[0]["object"]["spec"]["replicas"], 2);
    assert_eq!(seen[0]["oldObject"]["spec"]["replicas"], 1);
    assert_eq!(seen[0]["kind"]["kind"], "Scale");
    assert_eq!(seen[0]["subResource"], "scale");
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_the_webhooks_fault() {
    let (site, hooks) = (running().await, Hooks::start(mutate).await);
    let broken = hooks.webhook("/broken", "CREATE  configmaps");
    hooks.register(&site, "Mutating", "a", vec![broken]).await;
    let refused = site.post(CONFIG_MAPS, &started()).await;
    assert_eq!(refused.status, 500, "{}", refused.failure());
    assert_eq!(refused.json()["reason"], "InternalError");
}

/// Counts upwards as often as it is asked, or says what it was asked.
fn again(path: &str, request: &Value) -> Option<Value> {
    let data = &request["object"]["data"];
    let add = |key: &str, value: &str| json!([{ "op": "add", "path": format!("/data/{key}"), "value": value }]);
    let count = data["count"].as_str().map_or(0, str::len);
    match path {
        "/count" => patch(add("count", &"x".repeat(count + 1))),
        "/last" if data["last"].is_null() => patch(add("last", "yes")),
        _ => Some(json!({ "allowed": true })),
    }
}

#[tokio::test]
async fn webhooks_that_want_to_are_asked_again_once_something_changed() {
    let (site, hooks) = (running().await, Hooks::start(again).await);
    let rules = "CREATE  configmaps";
    let mut count = hooks.webhook("/count", rules);
    count["reinvocationPolicy"] = "IfNeeded".into();
    let mut quiet = hooks.webhook("/quiet", rules);
    quiet["reinvocationPolicy"] = "IfNeeded".into();
    let last = hooks.webhook("/last", rules);
    let all = vec![quiet, count, last];
    hooks.register(&site, "Mutating", "a", all).await;
    let before = ["/quiet", "/count", "/last"].map(|path| hooks.seen(path).len());
    let made = site.post(CONFIG_MAPS, &started()).await.ok();
    let asked = ["/quiet", "/count", "/last"].map(|path| hooks.seen(path).len());
    let times: Vec<usize> = asked.iter().zip(before).map(|(a, b)| a - b).collect();
    assert_eq!(times, [2, 2, 1]);
    assert_eq!(made["data"]["count"], "xx");
}

/// Refuses what is marked, with a code and a reason of its own, and warns.
fn judge(path: &str, request: &Value) -> Option<Value> {
    match path {
        "/deny" => {
            let of = |state: &str| request[state]["data"]["key"] == "bad";
            let is_bad = of("object") || (request["object"].is_null() && of("oldObject"));
            Some(json!({
                "allowed": !is_bad,
                "status": { "message": "the data is bad", "reason": "Bad Data", "code": 418 },
                "warnings": ["look at this"],
                "auditAnnotations": { "verdict": "seen", "not a key": "x" },
            }))
        }
        "/attach" => Some(json!({
            "allowed": false,
            "status": { "message": format!("{} of {}", request["operation"], request["name"]) },
        })),
        "/fail" => None,
        _ => Some(json!({ "allowed": true })),
    }
}

#[tokio::test]
async fn a_validating_webhook_stops_writes_of_every_kind() {
    let (site, hooks) = (running().await, Hooks::start(judge).await);
    site.post(CONFIG_MAPS, &config_map("old", "bad")).await.ok();
    site.post(CONFIG_MAPS, &config_map("m", "good")).await.ok();
    let mut deny = hooks.webhook("/deny", "*  configmaps");
    deny["namespaceSelector"] = json!({
        "matchLabels": { "kubernetes.io/metadata.name": "default" },
    });
    hooks.register(&site, "Validating", "v", vec![deny]).await;
    let denied = expect![[
        r#"418 Bad Data: admission webhook "deny.example.com" denied the request: the data is bad"#
    ]];
    let bad = config_map("n", "bad");
    denied.assert_eq(&site.post(CONFIG_MAPS, &bad).await.failure());
    let at = format!("{CONFIG_MAPS}/m");
    denied.assert_eq(&site.put(&at, &config_map("m", "bad")).await.failure());
    let change = json!({ "data": { "key": "bad" } });
    let patched = site.patch(&at, "strategic-merge-patch", &change).await;
    denied.assert_eq(&patched.failure());
    let old = format!("{CONFIG_MAPS}/old");
    denied.assert_eq(&site.delete(&old, &Value::Null).await.failure());
    denied.assert_eq(&site.delete(CONFIG_MAPS, &Value::Null).await.failure());
    let allowed = site.post(CONFIG_MAPS, &config_map("n", "good")).await;
    assert_eq!(allowed.headers["warning"], "299 - \"look at this\"");
    allowed.ok();
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    site.post(elsewhere, &bad).await.ok();
}

#[tokio::test]
async fn a_connection_is_a_request_like_others() {
    let (site, hooks) = (running().await, Hooks::start(judge).await);
    let attach = hooks.webhook("/attach", "CONNECT  pods/attach,services/proxy");
    let configuration = vec![attach];
    hooks
        .register(&site, "Validating", "v", configuration)
        .await;
    let refused = site
        .get(&format!("{PODS}/p/attach?stdin=true&container=c"))
        .await;
    expect![[
        r#"400 : admission webhook "attach.example.com" denied the request: "CONNECT" of "p""#
    ]]
    .assert_eq(&refused.failure());
    let seen = hooks.seen("/attach");
    let options = json!({
        "apiVersion": "v1", "kind": "PodAttachOptions", "stdin": true, "container": "c",
    });
    assert_eq!(seen[0]["object"], options);
    assert_eq!(seen[0]["options"], Value::Null);
}

#[tokio::test]
async fn a_review_says_what_upstreams_says() {
    let (site, hooks) = (running().await, Hooks::start(judge).await);
    let review = hooks.webhook("/review", "CREATE,DELETE  configmaps");
    hooks.register(&site, "Validating", "v", vec![review]).await;
    let at = format!("{CONFIG_MAPS}?fieldManager=me&fieldValidation=Strict");
    site.post(&at, &config_map("m", "x")).await.ok();
    site.delete(
        &format!("{CONFIG_MAPS}/m"),
        &json!({ "gracePeriodSeconds": 3 }),
    )
    .await
    .ok();
    let mut seen = hooks.seen("/review");
    seen.retain(|request| request["name"] == "m");
    for request in &mut seen {
        assert_eq!(request["uid"].as_str().unwrap().len(), 36);
        request["uid"] = "U".into();
        for state in ["/object/metadata", "/oldObject/metadata"] {
            let metadata = request.pointer_mut(state);
            if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
                metadata.retain(|key, _| key == "name" || key == "namespace");
            }
        }
    }
    let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
    let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1", "data": { "key": "x" },
        "metadata": { "name": "m", "namespace": "default" },
    });
    let groups = ["system:authenticated", "system:masters"];
    let mut expected = json!({
        "uid": "U", "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": "m", "namespace": "default", "operation": "CREATE",
        "userInfo": { "username": "admin", "groups": groups },
        "object": object, "oldObject": null, "dryRun": false,
        "options": {
            "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me",
            "fieldValidation": "Strict",
        },
    });
    assert_eq!(seen[0], expected);
    expected["operation"] = "DELETE".into();
    expected["oldObject"] = expected["object"].take();
    expected["options"] = json!({
        "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 3,
    });
    assert_eq!(seen[1], expected);
}

#[tokio::test]
async fn failures_stop_a_request_or_are_left_out() {
    let (site, hooks) = (running().await, Hooks::start(judge).await);
    let selected = |path: &str, policy: &str| {
        let mut webhook = hooks.webhook(path, "CREATE  configmaps");
        webhook["failurePolicy"] = policy.into();
        webhook["timeoutSeconds"] = 1.into();
        webhook["objectSelector"] =
            json!({ "matchLabels": { "do": format!("{}{policy}", &path[1..]) } });
        webhook["name"] = format!("{}.{}.example.com", &path[1..], policy.to_lowercase()).into();
        webhook
    };
    let all = vec![
        selected("/fail", "Fail"),
        selected("/fail", "Ignore"),
        selected("/never", "Fail"),
        selected("/never", "Ignore"),
    ];
    hooks.register(&site, "Validating", "v", all).await;
    let labelled = |label: &str| {
        let mut map = config_map(&label.to_lowercase(), "x");
        map["metadata"]["labels"] = json!({ "do": label });
        map
    };
    let post = async |label: &str| {
        let answer = site.post(CONFIG_MAPS, &labelled(label)).await;
        if answer.status.is_success() {
            return "done".to_owned();
        }
        answer.failure().replace(&hooks.port.to_string(), "PORT")
    };
    expect![[r#"500 InternalError: Internal error occurred: failed calling webhook "fail.fail.example.com": failed to call webhook: an error on the server ("") has prevented the request from succeeding"#]]
        .assert_eq(&post("failFail").await);
    expect![[r#"500 InternalError: Internal error occurred: failed calling webhook "never.fail.example.com": failed to call webhook: Post "https://localhost:PORT/never?timeout=1s": context deadline exceeded"#]]
        .assert_eq(&post("neverFail").await);
    assert_eq!(post("failIgnore").await, "done");
    assert_eq!(post("neverIgnore").await, "done");
    let metrics = site.get("/metrics").await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        r#"apiserver_admission_webhook_fail_open_count{name="fail.ignore.example.com",type="validating"} 1"#,
        r#"apiserver_admission_webhook_rejection_count{name="fail.fail.example.com",operation="CREATE",type="validating",error_type="calling_webhook_error",rejection_code="500"} 1"#,
        r#"apiserver_admission_webhook_request_total{name="never.ignore.example.com",operation="CREATE",type="validating",code="503",rejected="false"} 1"#,
        r#"apiserver_admission_webhook_admission_duration_seconds_count{name="never.fail.example.com",operation="CREATE",type="validating",rejected="true"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn configurations_of_webhooks_can_always_be_mended() {
    let (site, hooks) = (running().await, Hooks::start(judge).await);
    let fail = hooks.webhook("/fail", "* * */*");
    hooks.register_all(&site, "Validating", "v", fail).await;
    assert_eq!(
        site.post(CONFIG_MAPS, &config_map("m", "x")).await.status,
        500
    );
    let at = format!("{}/v", path("Validating"));
    let operations = json!([
        { "op": "replace", "path": "/webhooks/0/rules/0/operations", "value": ["DELETE"] },
    ]);
    site.patch(&at, "json-patch", &operations).await.ok();
    let free = async {
        while !site
            .post(CONFIG_MAPS, &config_map("m", "x"))
            .await
            .status
            .is_success()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.unwrap();
    let delete = site.delete(&format!("{CONFIG_MAPS}/m"), &Value::Null).await;
    assert_eq!(delete.status, 500);
    site.delete(&at, &Value::Null).await.ok();
}

#[tokio::test]
async fn the_audit_record_says_what_webhooks_did() {
    let site = audited_site().await;
    site.run();
    let hooks = Hooks::start(mutate).await;
    let first = hooks.webhook("/first", "CREATE  configmaps");
    hooks.register(&site, "Mutating", "a", vec![first]).await;
    let judges = Hooks::start(judge).await;
    let deny = judges.webhook("/deny", "CREATE  configmaps");
    judges.register(&site, "Validating", "v", vec![deny]).await;
    let at = format!("{CONFIG_MAPS}?fieldManager=audited");
    site.post(&at, &started()).await.ok();
    let annotations = &site.recorded(&at).await["annotations"];
    assert_eq!(
        annotations["mutation.webhook.admission.k8s.io/round_0_index_1"],
        r#"{"configuration":"a","webhook":"first.example.com","mutated":true}"#
    );
    assert_eq!(annotations["deny.example.com/verdict"], "seen");
    // The patch itself is no metadata.
    let has = |part: &str| {
        annotations
            .as_object()
            .unwrap()
            .keys()
            .any(|key| key.contains(part))
    };
    assert!(!has("patch.webhook"), "{annotations}");
    assert!(!has("not a key"), "{annotations}");
}

/// A kind with a schema in two versions, established.
async fn define(site: &Site) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "data": { "type": "object", "properties": {
            "key": { "type": "string" }, "stage": { "type": "string" },
            "size": { "type": "integer", "default": 3 },
        } },
    } } });
    let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "schema": schema });
    let definition = json!({
        "metadata": { "name": "things.shop.example.test" },
        "spec": {
            "group": "shop.example.test", "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    site.post(definitions, &definition).await.ok();
    let served = async {
        while !site.get(&things("v1")).await.status.is_success() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
}

fn things(version: &str) -> String {
    format!("/apis/shop.example.test/{version}/namespaces/default/things")
}

fn thing(version: &str, name: &str, key: &str) -> Value {
    json!({
        "apiVersion": format!("shop.example.test/{version}"), "kind": "Thing",
        "metadata": { "name": name }, "data": { "key": key },
    })
}

/// Adds a field that the schema has, and one that it has not.
fn stage(path: &str, request: &Value) -> Option<Value> {
    match path {
        "/stage" => patch(json!([
            { "op": "add", "path": "/data/stage", "value": request["object"]["apiVersion"] },
            { "op": "add", "path": "/data/unknown", "value": "x" },
        ])),
        path => judge(path, request),
    }
}

#[tokio::test]
async fn custom_resources_are_changed_pruned_and_refused_like_others() {
    let (site, hooks) = (running().await, Hooks::start(stage).await);
    define(&site).await;
    let stage = hooks.webhook("/stage", "CREATE shop.example.test things");
    hooks.register(&site, "Mutating", "a", vec![stage]).await;
    let deny = hooks.webhook("/deny", "* shop.example.test things");
    hooks.register(&site, "Validating", "v", vec![deny]).await;
    let made = site
        .post(&things("v1"), &thing("v1", "a", "good"))
        .await
        .ok();
    let data = json!({ "key": "good", "stage": "shop.example.test/v1", "size": 3 });
    assert_eq!(made["data"], data);
    let bad = site.post(&things("v2"), &thing("v2", "b", "bad")).await;
    assert_eq!(bad.status, 418, "{}", bad.failure());
    let change = json!({ "data": { "key": "bad" } });
    let at = format!("{}/a", things("v2"));
    let bad = site.patch(&at, "merge-patch", &change).await;
    assert_eq!(bad.status, 418, "{}", bad.failure());
}

#[tokio::test]
async fn a_rule_for_one_version_of_a_custom_resource_means_the_others() {
    let (site, hooks) = (running().await, Hooks::start(stage).await);
    define(&site).await;
    let mut stage = hooks.webhook("/stage", "CREATE shop.example.test things");
    stage["rules"][0]["apiVersions"] = json!(["v2"]);
    hooks.register(&site, "Mutating", "a", vec![stage]).await;
    let made = site
        .post(&things("v1"), &thing("v1", "a", "good"))
        .await
        .ok();
    assert_eq!(made["apiVersion"], "shop.example.test/v1");
    assert_eq!(made["data"]["stage"], "shop.example.test/v2");
    let seen = hooks.seen("/stage");
    assert_eq!(seen[0]["requestResource"]["version"], "v1");
    assert_eq!(seen[0]["resource"]["version"], "v2");
}
