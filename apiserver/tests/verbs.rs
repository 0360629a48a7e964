//! Every verb and its rules, over the in-process service and a real store.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use coracle_apiserver::authenticate::User;
use coracle_apiserver::{Config, InProcess, Server};
use coracle_store::Store;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

struct Bed {
    server: Server,
    _directory: tempfile::TempDir,
}

#[allow(clippy::disallowed_methods)] // The test's clock.
async fn bed() -> Bed {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(coracle_store::Config::new(directory.path().join("store"))).unwrap();
    let config = Config {
        data_dir: directory.path().to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        advertise_address: None,
        tls_sans: Vec::new(),
        service_cidr: "10.43.0.0/16".to_owned(),
        clock: Arc::new(jiff::Timestamp::now),
    };
    let server = Server::build(config, store).await.unwrap();
    let bed = Bed {
        server,
        _directory: directory,
    };
    // A controller makes it in a whole cluster.
    let account = json!({ "metadata": { "name": "default" } });
    bed.create("/api/v1/namespaces/default/serviceaccounts", account).await;
    bed
}

impl Bed {
    fn admin(&self) -> InProcess {
        let mut user = User::named("admin");
        user.groups.push("system:masters".to_owned());
        self.server.in_process(user)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        let response = self.admin().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask_as(method, path, body, "application/json").await
    }

    async fn ask_as(&self, method: &str, path: &str, body: Value, kind: &str) -> (u16, Value) {
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(Full::new(bytes))
            .unwrap();
        let response = self.send(request).await;
        let code = response.status().as_u16();
        let value = serde_json::from_slice(response.body());
        (
            code,
            value.unwrap_or_else(|_| panic!("no JSON: {:?}", response.body())),
        )
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, Value::Null).await
    }

    /// Creates and expects it to be created.
    async fn create(&self, path: &str, body: Value) -> Value {
        let (code, value) = self.ask("POST", path, body).await;
        assert_eq!(code, 201, "{value}");
        value
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "app": name } }, "data": { "a": "1" } })
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or("")
}

fn version(object: &Value) -> u64 {
    text(&object["metadata"], "resourceVersion")
        .parse()
        .unwrap()
}

#[tokio::test]
async fn an_object_is_created_read_updated_and_deleted() {
    let bed = bed().await;
    let created = bed.create(MAPS, map("a")).await;
    assert_eq!(
        (text(&created, "kind"), text(&created, "apiVersion")),
        ("ConfigMap", "v1")
    );
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(!text(&created["metadata"], field).is_empty(), "{field}");
    }
    let path = format!("{MAPS}/a");
    assert_eq!(bed.get(&path).await, (200, created.clone()));

    let (code, again) = bed.ask("POST", MAPS, map("a")).await;
    assert_eq!(
        (code, text(&again, "message")),
        (409, "configmaps \"a\" already exists")
    );

    let mut changed = created.clone();
    changed["data"]["a"] = "2".into();
    let (code, updated) = bed.ask("PUT", &path, changed.clone()).await;
    assert_eq!(code, 200);
    assert!(version(&updated) > version(&created));
    let (code, stale) = bed.ask("PUT", &path, changed).await;
    assert_eq!((code, text(&stale, "reason")), (409, "Conflict"));
    assert!(
        text(&stale, "message").contains("the object has been modified"),
        "{stale}"
    );

    let (code, same) = bed.ask("PUT", &path, updated.clone()).await;
    assert_eq!(
        (code, &same),
        (200, &updated),
        "nothing changed, nothing is written"
    );

    let (code, status) = bed.ask("DELETE", &path, Value::Null).await;
    assert_eq!((code, text(&status, "status")), (200, "Success"));
    let (code, gone) = bed.get(&path).await;
    assert_eq!(
        (code, text(&gone, "message")),
        (404, "configmaps \"a\" not found")
    );
}

#[tokio::test]
#[allow(clippy::too_many_lines)] // One cluster is set up for many short questions.
async fn bad_input_gets_the_right_4xx() {
    let bed = bed().await;
    let refused = async |path: &str, body: Value, code: u16, words: &str| {
        let (found, status) = bed.ask("POST", path, body).await;
        assert_eq!(found, code, "{status}");
        assert!(text(&status, "message").contains(words), "{status}");
    };
    refused(
        MAPS,
        json!({ "metadata": {} }),
        422,
        "name or generateName is required",
    )
    .await;
    refused(
        MAPS,
        json!({ "metadata": { "name": "No" } }),
        422,
        "RFC 1123",
    )
    .await;
    refused(
        MAPS,
        json!({ "kind": "Pod", "metadata": { "name": "a" } }),
        400,
        "Pod",
    )
    .await;
    refused(
        MAPS,
        json!({ "apiVersion": "v2", "metadata": { "name": "a" } }),
        400,
        "v2",
    )
    .await;
    refused(
        MAPS,
        json!({ "metadata": { "name": 5 } }),
        400,
        "cannot unmarshal number",
    )
    .await;
    let elsewhere = json!({ "metadata": { "name": "a", "namespace": "other" } });
    refused(
        MAPS,
        elsewhere,
        400,
        "does not match the namespace sent on the request",
    )
    .await;
    let missing = "/api/v1/namespaces/nowhere/configmaps";
    refused(missing, map("a"), 404, "namespaces \"nowhere\" not found").await;
    let strict = format!("{MAPS}?fieldValidation=Strict");
    let unknown = json!({ "metadata": { "name": "a" }, "dta": {} });
    refused(&strict, unknown, 400, "unknown field \"dta\"").await;
    refused(
        PODS,
        json!({ "metadata": { "name": "p" } }),
        422,
        "spec.containers",
    )
    .await;

    let request = Request::post(MAPS)
        .body(Full::new(Bytes::from_static(b"{not json")))
        .unwrap();
    assert_eq!(bed.send(request).await.status(), 400);
    let large = Bytes::from(vec![b' '; 4 * 1024 * 1024]);
    let request = Request::post(MAPS).body(Full::new(large)).unwrap();
    assert_eq!(bed.send(request).await.status(), 413);
    let request = Request::post(MAPS)
        .header("content-type", "text/plain")
        .body(Full::new(Bytes::from_static(b"x")))
        .unwrap();
    assert_eq!(bed.send(request).await.status(), 415);
    assert_eq!(bed.get("/api/v1/namespaces/default/teapots").await.0, 404);
    assert_eq!(bed.get("/apis/none/v1/x").await.0, 404);
    assert_eq!(
        bed.ask("DELETE", "/api/v1/namespaces", Value::Null).await.0,
        405
    );
}

#[tokio::test]
async fn warnings_come_as_headers() {
    let bed = bed().await;
    let body = json!({ "metadata": { "name": "a" }, "dta": {} }).to_string();
    let request = Request::post(MAPS)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = bed.send(request).await;
    assert_eq!(response.status(), 201);
    let warning = response.headers().get("warning").unwrap().to_str().unwrap();
    assert_eq!(warning, "299 - \"unknown field \\\"dta\\\"\"");
}

#[tokio::test]
async fn names_are_generated_and_dry_runs_leave_nothing() {
    let bed = bed().await;
    let body = json!({ "metadata": { "generateName": "web-" } });
    let one = bed.create(MAPS, body.clone()).await;
    let two = bed.create(MAPS, body.clone()).await;
    let name = text(&one["metadata"], "name");
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_ne!(name, text(&two["metadata"], "name"));
    let dry = bed.create(&format!("{MAPS}?dryRun=All"), map("dry")).await;
    assert_eq!(text(&dry["metadata"], "name"), "dry");
    assert_eq!(bed.get(&format!("{MAPS}/dry")).await.0, 404);
    assert_eq!(
        bed.ask("POST", &format!("{MAPS}?dryRun=Some"), map("x"))
            .await
            .0,
        422
    );
}

#[tokio::test]
async fn the_three_patches_apply() {
    let bed = bed().await;
    bed.create(MAPS, map("a")).await;
    let path = format!("{MAPS}/a");
    let merge = json!({ "data": { "b": "2", "a": null } });
    let (code, merged) = bed
        .ask_as("PATCH", &path, merge, "application/merge-patch+json")
        .await;
    assert_eq!((code, &merged["data"]), (200, &json!({ "b": "2" })));
    let operations = json!([{ "op": "replace", "path": "/data/b", "value": "3" }]);
    let (code, patched) = bed
        .ask_as("PATCH", &path, operations, "application/json-patch+json")
        .await;
    assert_eq!((code, &patched["data"]), (200, &json!({ "b": "3" })));
    bed.create(PODS, pod("p")).await;
    let strategic = json!({ "spec": { "containers": [{ "name": "c", "image": "other" }] } });
    let kind = "application/strategic-merge-patch+json";
    let (code, patched) = bed
        .ask_as("PATCH", &format!("{PODS}/p"), strategic, kind)
        .await;
    assert_eq!(code, 200, "{patched}");
    assert_eq!(patched["spec"]["containers"][0]["image"], "other");
    assert_eq!(patched["spec"]["containers"].as_array().unwrap().len(), 1);

    let stale = json!({ "metadata": { "resourceVersion": "1" }, "data": {} });
    let (code, _) = bed
        .ask_as("PATCH", &path, stale, "application/merge-patch+json")
        .await;
    assert_eq!(code, 409);
    let wrong = json!({ "data": 5 });
    let (code, _) = bed
        .ask_as("PATCH", &path, wrong, "application/merge-patch+json")
        .await;
    assert_eq!(code, 422);
    let test = json!([{ "op": "test", "path": "/data/b", "value": "nope" }]);
    let (code, _) = bed
        .ask_as("PATCH", &path, test, "application/json-patch+json")
        .await;
    assert_eq!(code, 422);
    assert_eq!(bed.ask("PATCH", &path, json!({})).await.0, 415);
}

#[tokio::test]
#[allow(clippy::too_many_lines)] // One cluster is set up for many short questions.
async fn lists_select_page_and_take_forms() {
    let bed = bed().await;
    for name in ["a", "b", "c", "d", "e"] {
        bed.create(MAPS, map(name)).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| text(&item["metadata"], "name").to_owned())
            .collect()
    };
    let (_, all) = bed.get(MAPS).await;
    assert_eq!(text(&all, "kind"), "ConfigMapList");
    assert_eq!(names(&all), ["a", "b", "c", "d", "e"]);
    let (_, chosen) = bed
        .get(&format!("{MAPS}?labelSelector=app%20in%20(b,d)"))
        .await;
    assert_eq!(names(&chosen), ["b", "d"]);
    let (_, chosen) = bed
        .get(&format!("{MAPS}?fieldSelector=metadata.name!=c"))
        .await;
    assert_eq!(names(&chosen), ["a", "b", "d", "e"]);
    let (_, chosen) = bed
        .get(&format!("{MAPS}?fieldSelector=metadata.name=c"))
        .await;
    assert_eq!(names(&chosen), ["c"]);
    assert_eq!(
        bed.get(&format!("{MAPS}?fieldSelector=data.a=1")).await.0,
        400
    );

    let (_, first) = bed.get(&format!("{MAPS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    bed.create(MAPS, map("bb")).await;
    let next = text(&first["metadata"], "continue").to_owned();
    let (_, second) = bed.get(&format!("{MAPS}?limit=2&continue={next}")).await;
    assert_eq!(names(&second), ["c", "d"], "pages show one state");
    assert_eq!(version(&second), version(&first));
    let next = text(&second["metadata"], "continue").to_owned();
    let (_, third) = bed.get(&format!("{MAPS}?limit=2&continue={next}")).await;
    assert_eq!(
        (names(&third), third["metadata"]["continue"].is_null()),
        (vec!["e".into()], true)
    );
    assert_eq!(bed.get(&format!("{MAPS}?continue=nonsense")).await.0, 400);

    let exact = format!(
        "{MAPS}?resourceVersionMatch=Exact&resourceVersion={}",
        version(&first)
    );
    assert_eq!(names(&bed.get(&exact).await.1), ["a", "b", "c", "d", "e"]);
    let future = format!("{MAPS}?resourceVersion=999999999");
    let (code, status) = bed.get(&future).await;
    assert_eq!((code, text(&status, "reason")), (504, "Timeout"));

    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = Request::get(MAPS)
        .header("accept", table)
        .body(Full::default())
        .unwrap();
    let table: Value = serde_json::from_slice(bed.send(request).await.body()).unwrap();
    assert_eq!(text(&table, "kind"), "Table");
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let request = Request::get(MAPS)
        .header("accept", partial)
        .body(Full::default())
        .unwrap();
    let partial: Value = serde_json::from_slice(bed.send(request).await.body()).unwrap();
    assert_eq!(text(&partial, "kind"), "PartialObjectMetadataList");
    assert!(partial["items"][0]["data"].is_null());
    let request = Request::get(MAPS)
        .header("accept", "application/yaml")
        .body(Full::default())
        .unwrap();
    let yaml = bed.send(request).await;
    assert!(String::from_utf8_lossy(yaml.body()).contains("kind: ConfigMapList"));
    let request = Request::get(MAPS)
        .header("accept", "text/html")
        .body(Full::default())
        .unwrap();
    assert_eq!(bed.send(request).await.status(), 406);
}

/// The next events of a watch, as `TYPE name`.
async fn events(bed: &Bed, path: &str, count: usize) -> Vec<String> {
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let response = bed.admin().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut text_so_far = String::new();
    let read = async {
        while text_so_far.matches('\n').count() < count {
            let frame = body.frame().await.expect("the watch goes on").unwrap();
            text_so_far.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("an event is missing");
    let line = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        format!(
            "{} {}",
            text(&event, "type"),
            text(&event["object"]["metadata"], "name")
        )
    };
    text_so_far.lines().map(line).collect()
}

#[tokio::test]
async fn a_watch_begins_where_it_is_told_and_follows_selectors() {
    let bed = bed().await;
    let a = bed.create(MAPS, map("a")).await;
    let path = format!("{MAPS}/a");
    let mut changed = a.clone();
    changed["metadata"]["labels"] = json!({ "app": "other" });
    bed.ask("PUT", &path, changed).await;
    bed.ask("DELETE", &path, Value::Null).await;
    let before = version(&a) - 1;
    let all = format!("{MAPS}?watch=true&resourceVersion={before}");
    assert_eq!(
        events(&bed, &all, 3).await,
        ["ADDED a", "MODIFIED a", "DELETED a"]
    );
    let chosen = format!("{all}&labelSelector=app=a");
    assert_eq!(events(&bed, &chosen, 2).await, ["ADDED a", "DELETED a"]);
    let other = format!("{all}&labelSelector=app=other");
    assert_eq!(events(&bed, &other, 2).await, ["ADDED a", "DELETED a"]);

    bed.create(MAPS, map("b")).await;
    assert_eq!(
        events(&bed, &format!("{MAPS}?watch=1"), 1).await,
        ["ADDED b"]
    );
    let streaming = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
         &allowWatchBookmarks=true"
    );
    assert_eq!(events(&bed, &streaming, 2).await, ["ADDED b", "BOOKMARK "]);
    let bad = format!("{MAPS}?watch=1&sendInitialEvents=true");
    assert_eq!(bed.get(&bad).await.0, 422);
    let future = format!("{MAPS}?watch=1&resourceVersion=99999999");
    assert_eq!(bed.get(&future).await.0, 504);
}

#[tokio::test]
async fn deletion_honours_preconditions_finalizers_and_grace() {
    let bed = bed().await;
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let held = bed.create(MAPS, held).await;
    let path = format!("{MAPS}/held");
    let wrong = json!({ "preconditions": { "uid": "other" } });
    assert_eq!(bed.ask("DELETE", &path, wrong).await.0, 409);
    let (code, ending) = bed.ask("DELETE", &path, Value::Null).await;
    assert_eq!(code, 200);
    assert!(!text(&ending["metadata"], "deletionTimestamp").is_empty());
    assert_eq!(bed.get(&path).await.0, 200, "its finalizer holds it");
    let free = json!({ "metadata": { "finalizers": null, "uid": held["metadata"]["uid"] } });
    assert_eq!(
        bed.ask_as("PATCH", &path, free, "application/merge-patch+json")
            .await
            .0,
        200
    );
    assert_eq!(bed.get(&path).await.0, 404);

    bed.create(MAPS, map("front")).await;
    let path = format!("{MAPS}/front");
    let policy = json!({ "propagationPolicy": "Foreground" });
    let (_, ending) = bed.ask("DELETE", &path, policy).await;
    assert_eq!(
        ending["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    let bad = json!({ "propagationPolicy": "Sideways" });
    assert!(bed.ask("DELETE", &path, bad).await.0 >= 400);

    bed.create(PODS, pod("p")).await;
    let (code, _) = bed.ask("DELETE", &format!("{PODS}/p"), Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(
        bed.get(&format!("{PODS}/p")).await.0,
        404,
        "it had no node: it goes at once"
    );
    bed.create(PODS, pod("placed")).await;
    let binding = json!({
        "metadata": { "name": "placed" }, "target": { "kind": "Node", "name": "n" },
    });
    bed.create(&format!("{PODS}/placed/binding"), binding.clone())
        .await;
    let (code, again) = bed
        .ask("POST", &format!("{PODS}/placed/binding"), binding)
        .await;
    assert_eq!(code, 409, "{again}");
    let path = format!("{PODS}/placed");
    let (_, ending) = bed.ask("DELETE", &path, Value::Null).await;
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(bed.get(&path).await.0, 200);
    let now = json!({ "gracePeriodSeconds": 0 });
    bed.ask("DELETE", &path, now).await;
    assert_eq!(bed.get(&path).await.0, 404);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let bed = bed().await;
    for name in ["a", "b", "c"] {
        bed.create(MAPS, map(name)).await;
    }
    let (code, _) = bed
        .ask(
            "DELETE",
            &format!("{MAPS}?labelSelector=app!=b"),
            Value::Null,
        )
        .await;
    assert_eq!(code, 200);
    let (_, left) = bed.get(MAPS).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn status_and_scale_are_apart_from_the_rest() {
    let bed = bed().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
        "status": { "replicas": 9 },
    });
    let created = bed.create(path, deployment).await;
    assert_eq!(created["metadata"]["generation"], 1);
    assert!(
        created["status"]["replicas"].is_null(),
        "a create sets no status"
    );
    let one = format!("{path}/web");
    let mut changed = created.clone();
    changed["status"]["replicas"] = 5.into();
    changed["spec"]["replicas"] = 7.into();
    let (code, updated) = bed.ask("PUT", &format!("{one}/status"), changed).await;
    assert_eq!(code, 200, "{updated}");
    assert_eq!(
        (&updated["status"]["replicas"], &updated["spec"]["replicas"]),
        (&5.into(), &2.into())
    );
    assert_eq!(updated["metadata"]["generation"], 1);

    let (_, scale) = bed.get(&format!("{one}/scale")).await;
    assert_eq!(
        (text(&scale, "kind"), &scale["spec"]["replicas"]),
        ("Scale", &2.into())
    );
    assert_eq!(scale["status"]["selector"], "app=web");
    let mut wanted = scale.clone();
    wanted["spec"]["replicas"] = 4.into();
    let (code, _) = bed.ask("PUT", &format!("{one}/scale"), wanted).await;
    assert_eq!(code, 200);
    let (_, scaled) = bed.get(&one).await;
    assert_eq!(
        (
            &scaled["spec"]["replicas"],
            &scaled["metadata"]["generation"]
        ),
        (&4.into(), &2.into())
    );
    let patch = json!({ "spec": { "replicas": -1 } });
    let kind = "application/merge-patch+json";
    assert_eq!(
        bed.ask_as("PATCH", &format!("{one}/scale"), patch, kind)
            .await
            .0,
        422
    );
}

#[tokio::test]
async fn events_are_one_thing_in_two_groups() {
    let bed = bed().await;
    let event = json!({
        "metadata": { "name": "e", "namespace": "default" },
        "involvedObject": { "kind": "Pod", "name": "p", "namespace": "default" },
        "reason": "Because", "message": "told", "type": "Normal",
        "source": { "component": "test" },
    });
    bed.create("/api/v1/namespaces/default/events", event).await;
    let (code, seen) = bed
        .get("/apis/events.k8s.io/v1/namespaces/default/events/e")
        .await;
    assert_eq!(code, 200);
    assert_eq!(
        (text(&seen, "apiVersion"), text(&seen, "note")),
        ("events.k8s.io/v1", "told")
    );
    assert_eq!(seen["regarding"]["name"], "p");
    let (_, list) = bed.get("/apis/events.k8s.io/v1/events").await;
    assert_eq!(list["items"][0]["note"], "told");
}

#[tokio::test]
async fn a_namespace_ends_when_its_finalizers_are_gone() {
    let bed = bed().await;
    bed.create(
        "/api/v1/namespaces",
        json!({ "metadata": { "name": "site" } }),
    )
    .await;
    let path = "/api/v1/namespaces/site";
    let (_, ending) = bed.ask("DELETE", path, Value::Null).await;
    assert_eq!(ending["status"]["phase"], "Terminating");
    let (code, refused) = bed
        .ask("POST", &format!("{path}/configmaps"), map("late"))
        .await;
    assert_eq!(code, 403, "{refused}");
    let mut done = ending.clone();
    done["spec"]["finalizers"] = json!([]);
    let (code, _) = bed.ask("PUT", &format!("{path}/finalize"), done).await;
    assert_eq!(code, 200);
    assert_eq!(bed.get(path).await.0, 404);
}

#[tokio::test]
async fn services_get_addresses_and_the_kubernetes_service_is_there() {
    let bed = bed().await;
    let path = "/api/v1/namespaces/default/services";
    let (_, own) = bed.get(&format!("{path}/kubernetes")).await;
    assert_eq!(own["spec"]["clusterIP"], "10.43.0.1", "{own}");
    let service = json!({
        "metadata": { "name": "web" },
        "spec": { "type": "NodePort", "ports": [{ "port": 80 }] },
    });
    let created = bed.create(path, service).await;
    assert!(
        text(&created["spec"], "clusterIP").starts_with("10.43."),
        "{created}"
    );
    let port = created["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    assert!((30000..=32767).contains(&port));
    let taken = json!({
        "metadata": { "name": "two" },
        "spec": { "clusterIP": created["spec"]["clusterIP"], "ports": [{ "port": 80 }] },
    });
    let (code, status) = bed.ask("POST", path, taken).await;
    assert_eq!(code, 422, "{status}");
}
