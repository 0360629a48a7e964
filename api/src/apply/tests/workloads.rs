//! Objects with lists: items by their keys, defaults of keys, atomic values, and what a create
//! is compared to.

use super::{NOW, shown};
use crate::apply::{Filter, Writer, put_managed_fields, scale};
use crate::object::Object;
use crate::resource::Part;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn writer(manager: &'static str, subresource: &'static str) -> Writer<'static> {
    let resource = crate::catalogue::find("apps", "v1", "deployments").expect("a row");
    let part = if subresource == "status" {
        Part::Status
    } else {
        Part::Main
    };
    Writer::of(resource, "apps/v1", part, subresource, manager, NOW)
}

fn deployment(spec: Value) -> Object {
    let value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": spec, "status": {},
    });
    Object::from_value(value).expect("an object")
}

fn with_containers(containers: Value) -> Object {
    let spec = json!({ "template": { "spec": { "containers": containers } } });
    deployment(spec)
}

fn list(object: &Object) -> Option<&Value> {
    object.get(&["metadata", "managedFields"])
}

fn applied(manager: &'static str, live: Option<&Object>, patch: &Object, force: bool) -> Object {
    let applied = writer(manager, "").apply(live, patch.root(), force);
    let object = applied
        .unwrap_or_else(|status| panic!("{}", status.message))
        .object;
    Object::from_value(Value::Object(object)).expect("an object")
}

fn refused(manager: &'static str, live: Option<&Object>, patch: &Object) -> String {
    let refused = writer(manager, "").apply(live, patch.root(), false);
    refused.expect_err("a refusal").message
}

fn check(object: &Object, expected: Expect) {
    expected.assert_eq(&shown(list(object)));
}

#[test]
fn what_go_always_writes_is_no_field_of_its_own() {
    let new = deployment(json!({
        "strategy": { "type": "Recreate" },
        "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "c", "resources": {} }] } },
    }));
    let list = writer("a", "").update(None, &new);
    expect![[r#"
        a Update 2026-01-01T00:00:00Z {"f:spec":{"f:selector":{},"f:strategy":{"f:type":{}},"f:template":{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:resources":{}}}}}}}
    "#]]
    .assert_eq(&shown(list.as_ref()));
}

#[test]
fn a_key_with_a_default_is_part_of_the_key() {
    let ports = json!([{ "containerPort": 9 }, { "containerPort": 80, "protocol": "UDP" }]);
    let patch = with_containers(json!([{ "name": "c", "ports": ports }]));
    check(
        &applied("a", None, &patch, false),
        expect![[r#"
            a Apply 2026-01-01T00:00:00Z {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:protocol":{}},"k:{\"containerPort\":9,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}
        "#]],
    );
}

#[test]
fn items_of_several_appliers_keep_the_order_of_the_object() {
    let first = applied("a", None, &with_containers(json!([{ "name": "x" }])), false);
    let patch = with_containers(json!([{ "name": "y", "image": "i" }, { "name": "x" }]));
    let second = applied("b", Some(&first), &patch, false);
    let names = |object: &Object| -> Vec<String> {
        let items = object.list(&["spec", "template", "spec", "containers"]);
        items.iter().map(|item| item["name"].to_string()).collect()
    };
    assert_eq!(names(&second), ["\"y\"", "\"x\""]);
    let third = applied("b", Some(&second), &deployment(json!({})), false);
    assert_eq!(names(&third), ["\"x\""]);
}

#[test]
fn what_is_no_deployment_is_told_in_upstreams_words() {
    let mut texts = String::new();
    for containers in [
        json!([{ "name": "c" }, { "name": "c" }]),
        json!([{ "name": "c", "image": 1 }]),
        json!([{ "name": "c", "nosuch": 1 }]),
        json!([null]),
        json!("c"),
    ] {
        texts.push_str(&refused("a", None, &with_containers(containers)));
        texts.push('\n');
    }
    let replicas = deployment(json!({ "replicas": "3", "paused": "x" }));
    texts.push_str(&refused("a", None, &replicas));
    expect![[r#"
        failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name="c"]
        failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].image: expected string, got &value.valueUnstructured{Value:1}
        failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].nosuch: field not declared in schema
        failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: element 0: associative list with keys may not have a null element
        failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: expected list, got &{c}
        failed to create typed patch object (/web; apps/v1, Kind=Deployment): errors:
          .spec.paused: expected boolean, got &{x}
          .spec.replicas: expected numeric (int or float), got string"#]]
    .assert_eq(&texts);
}

#[test]
fn an_atomic_value_is_managed_as_a_whole() {
    let selector =
        |value: &str| deployment(json!({ "selector": { "matchLabels": { "a": value } } }));
    let first = applied("a", None, &selector("1"), false);
    let text = refused("b", Some(&first), &selector("2"));
    assert_eq!(
        text,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.selector"
    );
    check(
        &applied("b", Some(&first), &selector("2"), true),
        expect![[r#"
            b Apply 2026-01-01T00:00:00Z {"f:spec":{"f:selector":{}}}
        "#]],
    );
}

#[test]
fn the_parts_of_what_became_atomic_are_taken_for_all_of_it() {
    let mut live =
        deployment(json!({ "selector": { "matchLabels": { "a": "1" } }, "replicas": 1 }));
    let old = json!([{
        "manager": "old", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:selector": { "f:matchLabels": { "f:a": {} } } } },
    }]);
    put_managed_fields(live.root_mut(), Some(old));
    let mut new = live.clone();
    new.set(&["spec", "replicas"], 2.into());
    let list = writer("a", "").update(Some(&live), &new);
    expect![[r#"
        old Update - {"f:spec":{"f:selector":{}}}
        a Update 2026-01-01T00:00:00Z {"f:spec":{"f:replicas":{}}}
    "#]]
    .assert_eq(&shown(list.as_ref()));
}

#[test]
fn a_status_manages_no_spec_and_a_main_write_no_status() {
    let mut live = deployment(json!({ "replicas": 1 }));
    let list = writer("a", "").update(None, &live);
    put_managed_fields(live.root_mut(), list);
    let mut new = live.clone();
    new.set(&["spec", "replicas"], 2.into());
    new.set(&["status", "replicas"], 1.into());
    let both = writer("s", "status").update(Some(&live), &new);
    expect![[r#"
        a Update 2026-01-01T00:00:00Z {"f:spec":{"f:replicas":{}}}
        s Update 2026-01-01T00:00:00Z {"f:status":{"f:replicas":{}}}
    "#]]
    .assert_eq(&shown(both.as_ref()));
    let main = writer("m", "").update(Some(&live), &new);
    expect![[r#"
        m Update 2026-01-01T00:00:00Z {"f:spec":{"f:replicas":{}}}
    "#]]
    .assert_eq(&shown(main.as_ref()));
}

#[test]
fn versions_that_are_no_more_manage_nothing() {
    let mut live = deployment(json!({ "replicas": 1, "paused": true }));
    let entry = |version: &str| {
        json!({
            "manager": version, "operation": "Update", "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:paused": {} } },
        })
    };
    let list = json!([entry("apps/v1"), entry("apps/v1beta1"), entry("v1")]);
    put_managed_fields(live.root_mut(), Some(list));
    let mut new = live.clone();
    new.set(&["spec", "replicas"], 2.into());
    let list = writer("a", "").update(Some(&live), &new);
    expect![[r#"
        apps/v1 Update - {"f:spec":{"f:paused":{}}}
        a Update 2026-01-01T00:00:00Z {"f:spec":{"f:replicas":{}}}
    "#]]
    .assert_eq(&shown(list.as_ref()));
}

#[test]
fn what_client_side_apply_set_goes_over_to_kubectl() {
    let mut live = deployment(json!({ "replicas": 1, "paused": false }));
    let last = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "annotations": {} }, "spec": { "replicas": 1 },
    });
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    live.set(
        &["metadata", "annotations", annotation],
        last.to_string().into(),
    );
    let list = writer("kubectl-client-side-apply", "").update(None, &live);
    put_managed_fields(live.root_mut(), list);
    let patch = deployment(json!({ "replicas": 2 }));
    let text = refused("other", Some(&live), &patch);
    assert!(
        text.contains("conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas")
    );
    let text = refused(
        "kubectl",
        Some(&live),
        &deployment(json!({ "paused": true })),
    );
    assert!(text.contains(".spec.paused"), "{text}");
    let object = applied("kubectl", Some(&live), &patch, false);
    assert_eq!(object.i64(&["spec", "replicas"]), Some(2));
    let renewed = object.annotation(annotation).expect("the annotation stays");
    assert!(
        renewed.contains("\"replicas\":2") && renewed.ends_with("}\n"),
        "{renewed}"
    );
}

#[test]
fn a_scale_takes_the_replicas_over_and_gives_them_back() {
    let live = applied(
        "a",
        None,
        &deployment(json!({ "replicas": 1, "paused": true })),
        false,
    );
    let of_scale = scale::of_parent(list(&live), "apps/v1");
    expect![[r#"
        a Apply 2026-01-01T00:00:00Z {"f:spec":{"f:replicas":{}}}
    "#]]
    .assert_eq(&shown(of_scale.as_ref()));
    let scale_of = |replicas: i64| {
        let value = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "web" },
            "spec": { "replicas": replicas }, "status": { "replicas": 0 },
        });
        Object::from_value(value).expect("an object")
    };
    let mut before = scale_of(1);
    put_managed_fields(before.root_mut(), of_scale);
    let scaler = Writer {
        api_version: "autoscaling/v1",
        kind: "Scale",
        type_name: "io.k8s.api.autoscaling.v1.Scale",
        family: None,
        subresource: "scale",
        filter: Filter::All,
        manager: "s",
        now: NOW,
    };
    let after = scaler.update(Some(&before), &scale_of(5));
    let parent = scale::to_parent(list(&live), after.as_ref(), "apps/v1");
    expect![[r#"
        a Apply 2026-01-01T00:00:00Z {"f:spec":{"f:paused":{}}}
        s Update - {"f:spec":{"f:replicas":{}}}
    "#]]
    .assert_eq(&shown(parent.as_ref()));
}
