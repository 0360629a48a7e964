//! Kinds that users bring, from their definition to the end of their last object.

use super::site::{PATIENCE, Site, site};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/shop.example.test/v1/namespaces/default/widgets";

/// A kind with everything: two versions, defaults, a keyed list, both subresources, columns.
fn definition() -> Value {
    let schema = json!({ "openAPIV3Schema": {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": { "type": "integer", "minimum": 1 },
                    "color": { "type": "string", "default": "red", "enum": ["red", "blue"] },
                    "note": { "type": "string", "nullable": true },
                    "port": { "x-kubernetes-int-or-string": true },
                    "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": { "type": "object", "required": ["name"], "properties": {
                            "name": { "type": "string" },
                            "port": { "type": "integer", "default": 80 },
                        } },
                    },
                },
            },
            "status": { "type": "object", "properties": {
                "ready": { "type": "integer" }, "selector": { "type": "string" },
            } },
        },
    } });
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": schema,
            "subresources": { "status": {}, "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready",
                "labelSelectorPath": ".status.selector",
            } },
            "selectableFields": [{ "jsonPath": ".spec.color" }],
            "additionalPrinterColumns": [
                { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                { "name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1 },
            ],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.shop.example.test" },
        "spec": {
            "group": "shop.example.test", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"],
                       "categories": ["all"] },
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "shop.example.test/v1", "kind": "Widget",
        "metadata": { "name": name, "labels": { "l": name } }, "spec": spec,
    })
}

/// Waits until a definition has a condition.
pub async fn until(site: &Site, name: &str, kind: &str, status: &str) -> Value {
    let looked = async {
        loop {
            let found = site.get(&format!("{DEFINITIONS}/{name}")).await.ok();
            let conditions = found["status"]["conditions"].as_array();
            let is_so = |one: &Value| one["type"] == kind && one["status"] == status;
            if conditions.is_some_and(|all| all.iter().any(is_so)) {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, looked).await;
    waited.unwrap_or_else(|_| panic!("{name} does not become {kind}={status}"))
}

pub async fn until_gone(site: &Site, path: &str) {
    let looked = async {
        while site.get(path).await.status != 404 {
            tokio::task::yield_now().await;
        }
    };
    if tokio::time::timeout(PATIENCE, looked).await.is_err() {
        panic!("{path} does not go: {}", site.get(path).await.json());
    }
}

async fn with_widgets() -> Site {
    let site = site().await;
    site.run();
    site.post(DEFINITIONS, &definition()).await.ok();
    until(&site, "widgets.shop.example.test", "Established", "True").await;
    site
}

#[tokio::test]
async fn what_is_established_is_served_and_told() {
    let site = with_widgets().await;
    let found = until(&site, "widgets.shop.example.test", "NamesAccepted", "True").await;
    assert_eq!(found["status"]["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(found["status"]["storedVersions"], json!(["v1"]));
    let group = site.get("/apis/shop.example.test").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(group["versions"][1]["version"], "v1beta1");
    let list = site.get("/apis/shop.example.test/v1").await.ok();
    let names: Vec<&str> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["widgets", "widgets/scale", "widgets/status"]);
    assert_eq!(list["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(list["resources"][1]["group"], "autoscaling");
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = site.get_with("/apis", &[("accept", accept)]).await.ok();
    let groups = all["items"].as_array().unwrap();
    let own = groups
        .iter()
        .find(|one| one["metadata"]["name"] == "shop.example.test");
    let own = own.expect("the group is told");
    assert_eq!(
        own["versions"][0]["resources"][0]["categories"],
        json!(["all"])
    );
    let empty = site.get(WIDGETS).await.ok();
    assert_eq!(empty["kind"], "WidgetList");
}

#[tokio::test]
async fn fields_are_pruned_defaulted_and_checked() {
    let site = with_widgets().await;
    let spec = json!({
        "size": 2, "oops": 1, "note": null, "port": "http", "free": { "a": { "b": null } },
        "ports": [{ "name": "a", "x": 1 }],
    });
    let answer = site.post(WIDGETS, &widget("a", spec.clone())).await;
    let warnings = answer.headers.get_all("warning").iter();
    let warnings: Vec<&str> = warnings.map(|one| one.to_str().unwrap()).collect();
    assert_eq!(
        warnings,
        [
            r#"299 - "unknown field \"spec.oops\"""#,
            r#"299 - "unknown field \"spec.ports[0].x\"""#,
        ]
    );
    let made = answer.ok();
    assert_eq!(
        made["spec"],
        json!({
            "size": 2, "color": "red", "note": null, "port": "http",
            "free": { "a": { "b": null } }, "ports": [{ "name": "a", "port": 80 }],
        })
    );
    assert_eq!(made["metadata"]["generation"], 1);
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let refused = site.post(&strict, &widget("b", spec)).await;
    assert_eq!(
        refused.failure(),
        "400 BadRequest: Widget in version \"v1\" cannot be handled as a Widget: strict decoding \
         error: unknown field \"spec.oops\", unknown field \"spec.ports[0].x\""
    );
    let wrong = json!({ "size": 0, "color": "green", "ports": [{ "name": "a" }, { "name": "a" }] });
    let refused = site.post(WIDGETS, &widget("b", wrong)).await;
    assert_eq!(refused.status, 422);
    let message = refused.failure();
    for part in [
        "Widget.shop.example.test \"b\" is invalid",
        "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
        "spec.ports[1]: Duplicate value: {\"name\":\"a\"}",
    ] {
        assert!(message.contains(part), "{part}\n{message}");
    }
    let mut other = widget("b", json!({ "size": 1 }));
    other["kind"] = "Gadget".into();
    assert_eq!(site.post(WIDGETS, &other).await.status, 400);
}

#[tokio::test]
async fn versions_show_the_same_objects() {
    let site = with_widgets().await;
    site.post(WIDGETS, &widget("a", json!({ "size": 1 })))
        .await
        .ok();
    let other = WIDGETS.replace("/v1/", "/v1beta1/");
    let found = site.get(&format!("{other}/a")).await.ok();
    assert_eq!(found["apiVersion"], "shop.example.test/v1beta1");
    let list = site.get(&other).await.ok();
    assert_eq!(list["items"][0]["apiVersion"], "shop.example.test/v1beta1");
    assert_eq!(list["items"][0]["kind"], "Widget");
}

#[tokio::test]
async fn lists_are_selected_and_printed() {
    let site = with_widgets().await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "blue")] {
        let spec = json!({ "size": 1, "color": color });
        site.post(WIDGETS, &widget(name, spec)).await.ok();
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|one| one["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let blue = site
        .get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dblue"))
        .await
        .ok();
    assert_eq!(names(&blue), ["b", "c"]);
    let labelled = site.get(&format!("{WIDGETS}?labelSelector=l%3Da")).await;
    assert_eq!(names(&labelled.ok()), ["a"]);
    let unknown = site
        .get(&format!("{WIDGETS}?fieldSelector=spec.size%3D1"))
        .await;
    assert_eq!(unknown.status, 400);
    let page = site.get(&format!("{WIDGETS}?limit=2")).await.ok();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = site
        .get(&format!("{WIDGETS}?limit=2&continue={token}"))
        .await;
    assert_eq!(names(&rest.ok()), ["c"]);
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let table = site.get_with(WIDGETS, &[("accept", accept)]).await.ok();
    assert_eq!(table["columnDefinitions"][1]["name"], "Size");
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    assert_eq!(table["rows"][1]["cells"], json!(["b", 1, "blue"]));
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let partial = site.get_with(WIDGETS, &[("accept", accept)]).await.ok();
    assert_eq!(partial["items"][0]["metadata"]["name"], "a");
    assert!(partial["items"][0].get("spec").is_none());
    site.delete(&format!("{WIDGETS}?labelSelector=l!%3Da"), &Value::Null)
        .await
        .ok();
    assert_eq!(names(&site.get(WIDGETS).await.ok()), ["a"]);
}

#[tokio::test]
async fn status_and_scale_are_their_own() {
    let site = with_widgets().await;
    let mut first = widget("a", json!({ "size": 1 }));
    first["status"] = json!({ "ready": 9 });
    let mut made = site.post(WIDGETS, &first).await.ok();
    assert!(made.get("status").is_none());
    made["status"] = json!({ "ready": 1, "selector": "l=a" });
    made["spec"]["size"] = 7.into();
    let one = format!("{WIDGETS}/a");
    let status = site.put(&format!("{one}/status"), &made).await.ok();
    assert_eq!(status["spec"]["size"], 1);
    assert_eq!(status["metadata"]["generation"], 1);
    let scale = site.get(&format!("{one}/scale")).await.ok();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["spec"]["replicas"], 1);
    assert_eq!(scale["status"], json!({ "replicas": 1, "selector": "l=a" }));
    let patch = json!({ "spec": { "replicas": 3 } });
    let scaled = site
        .patch(&format!("{one}/scale"), "merge-patch", &patch)
        .await
        .ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let found = site.get(&one).await.ok();
    assert_eq!(found["spec"]["size"], 3);
    assert_eq!(found["metadata"]["generation"], 2);
    assert_eq!(found["status"]["ready"], 1);
}

#[tokio::test]
async fn patches_and_applies_merge_as_the_schema_says() {
    let site = with_widgets().await;
    let one = format!("{WIDGETS}/a");
    let apply = |manager: &str, spec: Value| {
        let path = format!("{one}?fieldManager={manager}");
        let body = json!({
            "apiVersion": "shop.example.test/v1", "kind": "Widget",
            "metadata": { "name": "a" }, "spec": spec,
        });
        let site = &site;
        async move {
            let body = body.to_string().into();
            site.ask("PATCH", &path, "application/apply-patch+yaml", body)
                .await
        }
    };
    let ports =
        |name: &str, port: i64| json!({ "size": 1, "ports": [{ "name": name, "port": port }] });
    assert_eq!(apply("x", ports("a", 1)).await.status, 201);
    let merged = apply("y", ports("b", 2)).await.ok();
    assert_eq!(
        merged["spec"]["ports"],
        json!([{ "name": "a", "port": 1 }, { "name": "b", "port": 2 }])
    );
    let conflict = apply("y", ports("a", 5)).await;
    assert_eq!(conflict.status, 409);
    assert!(conflict.failure().contains(".spec.ports[name=\"a\"].port"));
    let left = apply("x", json!({ "size": 1 })).await.ok();
    assert_eq!(left["spec"]["ports"], json!([{ "name": "b", "port": 2 }]));
    let unknown = apply("x", json!({ "size": 1, "oops": 1 })).await;
    assert!(
        unknown
            .failure()
            .contains(".spec.oops: field not declared in schema")
    );
    let patch = json!({ "spec": { "size": 4 } });
    let strategic = site.patch(&one, "strategic-merge-patch", &patch).await;
    assert_eq!(strategic.status, 415);
    let patched = site.patch(&one, "merge-patch", &patch).await.ok();
    assert_eq!(patched["spec"]["size"], 4);
    let patch = json!([{ "op": "remove", "path": "/spec/color" }]);
    let patched = site.patch(&one, "json-patch", &patch).await.ok();
    assert_eq!(patched["spec"]["color"], "red");
    let mut old = patched;
    old["metadata"]["resourceVersion"].take();
    let blind = site.put(&one, &old).await;
    assert!(blind.failure().contains("must be specified for an update"));
}

#[tokio::test]
async fn a_fault_that_was_there_does_not_stop_a_change_elsewhere() {
    let site = with_widgets().await;
    site.post(WIDGETS, &widget("a", json!({ "size": 5, "color": "blue" })))
        .await
        .ok();
    let path = format!("{DEFINITIONS}/widgets.shop.example.test");
    let stricter = json!([
        { "op": "replace", "value": ["red"],
          "path": "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/color/enum" },
        { "op": "replace", "value": ["red"],
          "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/enum" },
    ]);
    site.patch(&path, "json-patch", &stricter).await.ok();
    let one = format!("{WIDGETS}/a");
    let size = json!({ "spec": { "size": 6 } });
    let changed = site.patch(&one, "merge-patch", &size).await.ok();
    assert_eq!(changed["spec"]["color"], "blue");
    let made = widget("b", json!({ "size": 5, "color": "blue" }));
    assert_eq!(site.post(WIDGETS, &made).await.status, 422);
}

#[tokio::test]
async fn a_watch_sees_its_kind_end() {
    let site = with_widgets().await;
    let request = Request::get(format!("{WIDGETS}?watch=1&resourceVersion=0"));
    let response = site.open(request.body(Full::default()).unwrap()).await;
    let body = response.into_body();
    let mut held = widget("a", json!({ "size": 1 }));
    held["metadata"]["finalizers"] = json!(["example.test/hold"]);
    site.post(WIDGETS, &held).await.ok();
    let path = format!("{DEFINITIONS}/widgets.shop.example.test");
    let deleted = site.delete(&path, &Value::Null).await.ok();
    assert_eq!(
        deleted["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    until(&site, "widgets.shop.example.test", "Terminating", "True").await;
    let refused = site.post(WIDGETS, &widget("b", json!({ "size": 1 }))).await;
    assert_eq!(
        refused.failure(),
        "403 Forbidden: widgets.shop.example.test \"b\" is forbidden: create not allowed while \
         custom resource definition is terminating"
    );
    let gone = json!({ "metadata": { "finalizers": null } });
    site.patch(&format!("{WIDGETS}/a"), "merge-patch", &gone)
        .await
        .ok();
    until_gone(&site, &path).await;
    assert_eq!(site.get(WIDGETS).await.status, 404);
    assert_eq!(site.get("/apis/shop.example.test").await.status, 404);
    let read = tokio::time::timeout(PATIENCE, body.collect()).await;
    let read = read.expect("the watch ends").unwrap().to_bytes();
    let text = String::from_utf8(read.to_vec()).unwrap();
    let types: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(types.first().map(String::as_str), Some("ADDED"));
    assert_eq!(types.last().map(String::as_str), Some("DELETED"));
    // The name is free again, and nothing is left of before.
    site.post(DEFINITIONS, &definition()).await.ok();
    until(&site, "widgets.shop.example.test", "Established", "True").await;
    assert_eq!(site.get(WIDGETS).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_kind_that_is_taken_waits_for_its_name() {
    let site = with_widgets().await;
    let mut other = definition();
    other["metadata"]["name"] = "gadgets.shop.example.test".into();
    other["spec"]["names"] = json!({ "plural": "gadgets", "kind": "Widget" });
    site.post(DEFINITIONS, &other).await.ok();
    let name = "gadgets.shop.example.test";
    let found = until(&site, name, "NamesAccepted", "False").await;
    assert_eq!(
        found["status"]["conditions"][0]["reason"],
        "ListKindConflict"
    );
    let path = "/apis/shop.example.test/v1/namespaces/default/gadgets";
    assert_eq!(site.get(path).await.status, 404);
    let first = format!("{DEFINITIONS}/widgets.shop.example.test");
    site.delete(&first, &Value::Null).await.ok();
    until(&site, name, "Established", "True").await;
    assert_eq!(site.get(path).await.ok()["kind"], "WidgetList");
}

#[tokio::test]
async fn documents_follow_definitions() {
    let site = with_widgets().await;
    let address = |index: Value| {
        let entry = &index["paths"]["apis/shop.example.test/v1"]["serverRelativeURL"];
        entry.as_str().map(str::to_owned)
    };
    let before = address(site.get("/openapi/v3").await.ok()).expect("the group is told");
    let document = site.get(&before).await.ok();
    let model = &document["components"]["schemas"]["test.example.shop.v1.Widget"];
    let spec = &model["properties"]["spec"]["properties"];
    assert_eq!(spec["color"]["enum"], json!(["red", "blue"]));
    assert_eq!(spec["note"]["nullable"], true);
    assert_eq!(
        spec["port"]["anyOf"],
        json!([{ "type": "integer" }, { "type": "string" }])
    );
    assert!(model["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
    assert_eq!(
        model["x-kubernetes-group-version-kind"],
        json!([{ "group": "shop.example.test", "version": "v1", "kind": "Widget" }])
    );
    let path = &document["paths"]["/apis/shop.example.test/v1/namespaces/{namespace}/widgets"];
    let answered = &path["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    let list = "#/components/schemas/test.example.shop.v1.WidgetList";
    assert_eq!(answered["$ref"], list);
    let old = site.get("/openapi/v2").await;
    let tag = old.headers["etag"].clone();
    let old = old.ok();
    let model = &old["definitions"]["test.example.shop.v1.Widget"];
    let spec = &model["properties"]["spec"]["properties"];
    assert_eq!(
        spec["free"],
        json!({ "x-kubernetes-preserve-unknown-fields": true })
    );
    assert_eq!(spec["note"], json!({}));
    let protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    let packed = site.get_as(&before, protobuf).await;
    assert!(packed.status == 200 && !packed.body.is_empty());

    let definition = format!("{DEFINITIONS}/widgets.shop.example.test");
    let told = json!([0, 1].map(|version| {
        json!({
            "op": "add", "value": "Widgets of the shop.",
            "path": format!("/spec/versions/{version}/schema/openAPIV3Schema/description"),
        })
    }));
    site.patch(&definition, "json-patch", &told).await.ok();
    let after = address(site.get("/openapi/v3").await.ok()).expect("the group is told");
    assert_ne!(before, after);
    let document = site.get(&after).await.ok();
    let model = &document["components"]["schemas"]["test.example.shop.v1.Widget"];
    assert_eq!(model["description"], "Widgets of the shop.");
    assert_ne!(site.get("/openapi/v2").await.headers["etag"], tag);
    site.delete(&definition, &Value::Null).await.ok();
    until_gone(&site, &definition).await;
    assert_eq!(address(site.get("/openapi/v3").await.ok()), None);
}

#[tokio::test]
async fn rules_of_the_schema_hold() {
    let site = site().await;
    site.run();
    let mut own = definition();
    for version in own["spec"]["versions"].as_array_mut().unwrap() {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["x-kubernetes-validations"] = json!([
            { "rule": "self.size < 10 || self.color == 'blue'", "message": "large ones are blue" },
            { "rule": "self.size >= oldSelf.size", "reason": "FieldValueForbidden",
              "messageExpression": "self.size > 5 ? 'may not shrink' : 'is too small'",
              "fieldPath": ".size" },
        ]);
    }
    site.post(DEFINITIONS, &own).await.ok();
    until(&site, "widgets.shop.example.test", "Established", "True").await;
    let refused = site
        .post(WIDGETS, &widget("a", json!({ "size": 11 })))
        .await;
    assert_eq!(
        refused.failure(),
        "422 Invalid: Widget.shop.example.test \"a\" is invalid: spec: Invalid value: large ones \
         are blue"
    );
    site.post(WIDGETS, &widget("a", json!({ "size": 9 })))
        .await
        .ok();
    let smaller = json!({ "spec": { "size": 8 } });
    let refused = site
        .patch(&format!("{WIDGETS}/a"), "merge-patch", &smaller)
        .await;
    assert_eq!(
        refused.failure(),
        "422 Invalid: Widget.shop.example.test \"a\" is invalid: spec.size: Forbidden: may not \
         shrink"
    );
    let wrong = site
        .post(WIDGETS, &widget("b", json!({ "size": "x" })))
        .await;
    let told = wrong.failure();
    assert!(
        told.contains("some validation rules were not checked"),
        "{told}"
    );
}
