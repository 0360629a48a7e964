//! Strategic, merge and JSON patches, document in and document out.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

const POD: &str = "io.k8s.api.core.v1.Pod";
const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const SERVICE: &str = "io.k8s.api.core.v1.Service";

fn strategic(type_name: &str, current: Value, patch: Value, expect: Expect) {
    expect.assert_eq(&match strategic_merge_patch(&current, &patch, type_name) {
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    });
}

fn containers(items: Value) -> Value {
    json!({ "spec": { "containers": items } })
}

#[test]
fn containers_merge_by_name() {
    strategic(
        POD,
        containers(json!([
            { "name": "a", "image": "a:1", "env": [{ "name": "X", "value": "1" }],
              "ports": [{ "containerPort": 80, "name": "http" }] },
            { "name": "b", "image": "b:1" },
        ])),
        containers(json!([
            { "name": "a", "image": "a:2", "env": [{ "name": "Y", "value": "2" },
              { "name": "X", "value": "3" }],
              "ports": [{ "containerPort": 80, "name": "web" }, { "containerPort": 81 }] },
        ])),
        expect![[
            r#"{"spec":{"containers":[{"env":[{"name":"Y","value":"2"},{"name":"X","value":"3"}],"image":"a:2","name":"a","ports":[{"containerPort":80,"name":"web"},{"containerPort":81}]},{"image":"b:1","name":"b"}]}}"#
        ]],
    );
}

#[test]
fn a_new_item_comes_first() {
    strategic(
        POD,
        containers(json!([{ "name": "app", "image": "nginx" }])),
        containers(json!([{ "name": "side", "image": "redis", "tty": null }])),
        expect![[
            r#"{"spec":{"containers":[{"image":"redis","name":"side","tty":null},{"image":"nginx","name":"app"}]}}"#
        ]],
    );
}

#[test]
fn an_item_is_deleted() {
    strategic(
        POD,
        containers(json!([{ "name": "a" }, { "name": "b" }, { "name": "c" }])),
        containers(json!([{ "$patch": "delete", "name": "b" }])),
        expect![[r#"{"spec":{"containers":[{"name":"a"},{"name":"c"}]}}"#]],
    );
}

#[test]
fn a_list_is_replaced() {
    strategic(
        POD,
        containers(json!([{ "name": "a" }, { "name": "b" }])),
        containers(json!([{ "$patch": "replace" }, { "name": "c" }])),
        expect![[r#"{"spec":{"containers":[{"name":"c"}]}}"#]],
    );
}

#[test]
fn an_object_is_replaced_or_emptied() {
    let current = json!({ "spec": { "securityContext": { "runAsUser": 1, "fsGroup": 2 } } });
    strategic(
        POD,
        current.clone(),
        json!({ "spec": { "securityContext": { "$patch": "replace", "runAsUser": 5 } } }),
        expect![[r#"{"spec":{"securityContext":{"runAsUser":5}}}"#]],
    );
    strategic(
        POD,
        current.clone(),
        json!({ "spec": { "securityContext": { "$patch": "delete" } } }),
        expect![[r#"{"spec":{"securityContext":{}}}"#]],
    );
    strategic(
        POD,
        current,
        json!({ "spec": { "securityContext": { "$patch": "explode" } } }),
        expect!["unknown patch type: explode in map: map[$patch:explode]"],
    );
}

#[test]
fn tolerations_are_atomic() {
    let tolerations = |key: &str| json!({ "spec": { "tolerations": [{ "key": key }] } });
    strategic(
        POD,
        tolerations("a"),
        tolerations("b"),
        expect![[r#"{"spec":{"tolerations":[{"key":"b"}]}}"#]],
    );
}

#[test]
fn finalizers_are_a_set() {
    let current = json!({ "metadata": { "finalizers": ["a", "b"] } });
    strategic(
        POD,
        current.clone(),
        json!({ "metadata": { "finalizers": ["c", "b"] } }),
        expect![[r#"{"metadata":{"finalizers":["c","a","b"]}}"#]],
    );
    strategic(
        POD,
        current,
        json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["b", "d"], "finalizers": ["d"] } }),
        expect![[r#"{"metadata":{"finalizers":["b","d"]}}"#]],
    );
}

#[test]
fn retain_keys_of_a_strategy() {
    strategic(
        DEPLOYMENT,
        json!({ "spec": { "strategy": { "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 1 } } } }),
        json!({ "spec": { "strategy": { "$retainKeys": ["type"], "type": "Recreate" } } }),
        expect![[r#"{"spec":{"strategy":{"type":"Recreate"}}}"#]],
    );
    strategic(
        DEPLOYMENT,
        json!({ "spec": { "strategy": {} } }),
        json!({ "spec": { "strategy": { "$retainKeys": ["rollingUpdate"], "type": "x" } } }),
        expect!["invalid patch format of retainKeys"],
    );
}

/// What `kubectl apply` sends when one container is changed, one added and one taken away.
#[test]
fn element_order_of_apply() {
    strategic(
        DEPLOYMENT,
        json!({ "spec": { "template": { "spec": { "containers": [
            { "name": "injected" }, { "name": "a", "image": "a:1" }, { "name": "gone" },
            { "name": "b", "image": "b:1" }] } } } }),
        json!({ "spec": { "template": { "spec": {
            "$setElementOrder/containers": [{ "name": "b" }, { "name": "new" }, { "name": "a" }],
            "containers": [{ "name": "new", "image": "n:1" }, { "name": "a", "image": "a:2" },
                { "$patch": "delete", "name": "gone" }] } } } }),
        expect![[
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"injected"},{"image":"b:1","name":"b"},{"image":"n:1","name":"new"},{"image":"a:2","name":"a"}]}}}}"#
        ]],
    );
}

/// Upstream works in place: an added item takes the slot of a deleted one in the server's order.
#[test]
fn added_items_take_the_slots_of_deleted_ones() {
    strategic(
        POD,
        containers(json!([{ "name": "e" }, { "name": "c" }, { "name": "d" }, { "name": "f" }])),
        json!({ "spec": {
            "$setElementOrder/containers": [{ "name": "a" }, { "name": "d" }, { "name": "g" }],
            "containers": [{ "$patch": "delete", "name": "e" }, { "name": "a" }, { "name": "d" }],
        } }),
        expect![[
            r#"{"spec":{"containers":[{"name":"c"},{"name":"f"},{"name":"a"},{"name":"d"}]}}"#
        ]],
    );
}

#[test]
fn a_patch_out_of_its_own_order() {
    strategic(
        POD,
        containers(json!([{ "name": "a" }])),
        json!({ "spec": {
            "$setElementOrder/containers": [{ "name": "a" }, { "name": "b" }],
            "containers": [{ "name": "b" }, { "name": "a" }],
        } }),
        expect![[r#"
            The order in patch list:
            [map[name:b] map[name:a]]
             doesn't match $setElementOrder list:
            [map[name:a] map[name:b]]
        "#]],
    );
}

#[test]
fn order_alone() {
    strategic(
        POD,
        containers(json!([{ "name": "a" }, { "name": "b" }])),
        json!({ "spec": { "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }] } }),
        expect![[r#"{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}"#]],
    );
}

#[test]
fn service_ports_and_labels() {
    strategic(
        SERVICE,
        json!({ "metadata": { "labels": { "a": "1", "b": "2" } },
                "spec": { "ports": [{ "port": 80, "nodePort": 30000 }], "selector": { "x": "y" } } }),
        json!({ "metadata": { "labels": { "a": null, "c": "3" } },
                "spec": { "ports": [{ "port": 80, "name": "http" }], "selector": null } }),
        expect![[
            r#"{"metadata":{"labels":{"b":"2","c":"3"}},"spec":{"ports":[{"name":"http","nodePort":30000,"port":80}]}}"#
        ]],
    );
}

#[test]
fn volumes_retain_keys() {
    strategic(
        POD,
        json!({ "spec": { "volumes": [{ "name": "v", "emptyDir": {} }] } }),
        json!({ "spec": { "volumes": [{ "$retainKeys": ["name", "configMap"], "name": "v",
                "configMap": { "name": "c" } }] } }),
        expect![[r#"{"spec":{"volumes":[{"configMap":{"name":"c"},"name":"v"}]}}"#]],
    );
}

/// What upstream did not foresee, it answers with 500; what it did, with 400 or 422.
#[test]
fn patches_that_cannot_be() {
    let fail = |patch: Value| {
        let current = json!({
            "metadata": { "finalizers": ["a"], "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "a", "env": [{ "name": "x" }] }] },
        });
        let error = strategic_merge_patch(&current, &patch, POD).unwrap_err();
        let code = match error {
            PatchError::Malformed(_) => 400,
            PatchError::NotApplicable(_) => 422,
            _ => 500,
        };
        format!("{code} {error}")
    };
    let items = |items: Value| fail(containers(items));
    let first = |patch: Value| fail(json!({ "spec": patch }));
    expect!["500 list element types are not identical: [[map[env:[map[name:x]] name:a]] [x]]"]
        .assert_eq(&items(json!(["x"])));
    expect!["500 merging lists cannot yet be specified in the patch"]
        .assert_eq(&items(json!([{ "$patch": "merge", "name": "a" }])));
    expect!["500 unknown patch type: %!s(int64=1) in map: map[$patch:1 name:a]"]
        .assert_eq(&items(json!([{ "$patch": 1, "name": "a" }])));
    expect!["500 map: map[image:x] does not contain declared merge key: name"]
        .assert_eq(&items(json!([{ "image": "x" }])));
    expect!["500 expected a []interface {}, but received a string"]
        .assert_eq(&first(json!({ "$setElementOrder/containers": "a" })));
    expect!["500 expected a map[string]interface {}, but received a string"].assert_eq(&first(
        json!({ "$setElementOrder/containers": ["a"], "containers": [{ "name": "a" }] }),
    ));
    expect![[r#"500 unable to find api field in struct PodSpec for the json field "foo""#]]
        .assert_eq(&first(json!({ "$setElementOrder/foo": ["a"] })));
    // An item with a directive after the last one of the order is out of order.
    expect![[r#"
        500 The order in patch list:
        [map[name:a] map[$patch:replace]]
         doesn't match $setElementOrder list:
        [map[name:a]]
    "#]]
    .assert_eq(&first(
        json!({ "$setElementOrder/containers": [{ "name": "a" }],
            "containers": [{ "name": "a" }, { "$patch": "replace" }] }),
    ));
    expect!["400 invalid patch format of setElementOrder list"]
        .assert_eq(&first(json!({ "$setElementOrder": ["a"] })));
    expect!["400 invalid patch format of primitive list"]
        .assert_eq(&first(json!({ "$deleteFromPrimitiveList": ["a"] })));
}

/// Only an object with a `$patch` is left out of what is new; all else is taken as it is.
#[test]
fn what_is_new_is_taken_as_it_is() {
    strategic(
        POD,
        json!({}),
        json!({ "metadata": { "labels": { "$patch": "replace", "a": "b" },
                "annotations": { "x": null, "y": "z" } },
                "spec": { "$retainKeys": ["volumes"], "volumes": [{ "name": null }] } }),
        expect![[
            r#"{"metadata":{"annotations":{"y":"z"}},"spec":{"$retainKeys":["volumes"],"volumes":[{}]}}"#
        ]],
    );
    let current = json!({ "metadata": { "finalizers": ["a"] } });
    strategic(
        POD,
        current.clone(),
        json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": "x" } }),
        expect![[r#"{"metadata":{"finalizers":["a"]}}"#]],
    );
    strategic(
        POD,
        current,
        json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": null } }),
        expect![[r#"{"metadata":{}}"#]],
    );
}

#[test]
fn items_without_the_key() {
    strategic(
        POD,
        containers(json!([{ "name": "a" }])),
        containers(json!([{ "image": "x" }])),
        expect!["map: map[image:x] does not contain declared merge key: name"],
    );
}

#[test]
fn json_patches() {
    let current = json!({ "a": { "b": [1, 2] }, "labels": { "x/y": "z" } });
    let apply = |patch: Value| match json_patch(&current, patch.to_string().as_bytes()) {
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    };
    expect![[r#"{"a":{"b":[2,3]},"c":[1,2,3],"d":1}"#]].assert_eq(&apply(json!([
        { "op": "test", "path": "/a/b/0", "value": 1 },
        { "op": "add", "path": "/a/b/-", "value": 3 },
        { "op": "replace", "path": "/labels/x~1y", "value": "w" },
        { "op": "copy", "from": "/a/b", "path": "/c" },
        { "op": "move", "from": "/a/b/0", "path": "/d" },
        { "op": "remove", "path": "/labels" },
    ])));
    expect![[r#"{"a":null,"labels":{"x/y":"z"}}"#]]
        .assert_eq(&apply(json!([{ "op": "add", "path": "/a" }])));
    expect!["test /a/b/0: value did not match"].assert_eq(&apply(
        json!([{ "op": "test", "path": "/a/b/0", "value": 7 }]),
    ));
    expect!["missing value at /nothing"]
        .assert_eq(&apply(json!([{ "op": "remove", "path": "/nothing" }])));
    expect![[r#"doc is missing path: "/x/y""#]].assert_eq(&apply(
        json!([{ "op": "replace", "path": "/x/y", "value": 1 }]),
    ));
    expect!["error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"]
        .assert_eq(&apply(json!({ "op": "remove" })));
    expect!["Unexpected kind: explode"]
        .assert_eq(&apply(json!([{ "op": "explode", "path": "/a" }])));
}

/// What upstream's library takes and the RFC does not.
#[test]
fn json_patches_beyond_the_rfc() {
    let current = json!({ "l": ["a", "b", "c"], "m": { "k": 1 } });
    let apply = |operation: Value| {
        let patch = json!([operation]).to_string();
        match json_patch(&current, patch.as_bytes()) {
            Ok(value) => format!("{} {}", value["l"], value["m"]),
            Err(error) => error.to_string(),
        }
    };
    let list = |verb: &str, index: &str| {
        apply(json!({ "op": verb, "path": format!("/l/{index}"), "value": "x" }))
    };
    for (verb, index, expected) in [
        ("remove", "01", r#"["a","c"] {"k":1}"#),
        ("remove", "-1", r#"["a","b"] {"k":1}"#),
        ("remove", "-3", r#"["b","c"] {"k":1}"#),
        ("remove", "-4", "doc is missing path: \"/l/-4\""),
        ("remove", "3", "doc is missing path: \"/l/3\""),
        ("remove", "-", "doc is missing path: \"/l/-\""),
        ("add", "-1", r#"["a","b","c","x"] {"k":1}"#),
        ("add", "-2", r#"["a","b","x","c"] {"k":1}"#),
        ("add", "00", r#"["x","a","b","c"] {"k":1}"#),
        ("add", "+1", r#"["a","x","b","c"] {"k":1}"#),
        ("add", "3", r#"["a","b","c","x"] {"k":1}"#),
        ("add", "4", "doc is missing path: \"/l/4\""),
        ("replace", "-1", r#"["a","b","x"] {"k":1}"#),
        ("replace", "3", "doc is missing path: \"/l/3\""),
    ] {
        assert_eq!(list(verb, index), expected, "{verb} {index}");
    }
    for (operation, expected) in [
        (
            json!({ "op": "move", "from": "/l/-1", "path": "/l/0" }),
            r#"["c","a","b"] {"k":1}"#,
        ),
        (
            json!({ "op": "move", "from": "/l/0", "path": "/l/2" }),
            r#"["b","c","a"] {"k":1}"#,
        ),
        (
            json!({ "op": "copy", "from": "/l/02", "path": "/m/c" }),
            r#"["a","b","c"] {"c":"c","k":1}"#,
        ),
        (
            json!({ "op": "copy", "from": "/m/no", "path": "/m/c" }),
            r#"["a","b","c"] {"c":null,"k":1}"#,
        ),
        (
            json!({ "op": "replace", "path": "/m/j", "value": 2 }),
            r#"["a","b","c"] {"j":2,"k":1}"#,
        ),
        (
            json!({ "op": "test", "path": "/m/j", "value": null }),
            r#"["a","b","c"] {"k":1}"#,
        ),
        (
            json!({ "op": "test", "path": "/m/j", "value": 1 }),
            "missing value at /m/j",
        ),
        (
            json!({ "op": "add", "path": "x/m/~", "value": 2 }),
            r#"["a","b","c"] {"k":1,"~":2}"#,
        ),
        (
            json!({ "op": "add", "path": "", "value": 2 }),
            "doc is missing path: \"\"",
        ),
        (json!({}), "Unexpected kind: "),
    ] {
        assert_eq!(apply(operation.clone()), expected, "{operation}");
    }
}

#[test]
fn json_patches_of_the_whole_document() {
    let apply = |patch: Value| {
        let patch = patch.to_string();
        match json_patch(&json!({ "a": { "b": 1 } }), patch.as_bytes()) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    };
    for (operation, expected) in [
        (
            json!({ "op": "replace", "path": "", "value": { "c": 2 } }),
            r#"{"c":2}"#,
        ),
        (json!({ "op": "replace", "path": "", "value": [1] }), "[1]"),
        (
            json!({ "op": "replace", "path": "", "value": "x" }),
            "replace operation value must be object or array",
        ),
        (
            json!({ "op": "replace", "value": {} }),
            "doc is missing path: \"\"",
        ),
        (
            json!({ "op": "test", "path": "", "value": { "a": { "b": 1 } } }),
            r#"{"a":{"b":1}}"#,
        ),
        (
            json!({ "op": "test", "path": "", "value": {} }),
            "test : value did not match",
        ),
        (
            json!({ "op": "remove", "path": "" }),
            "doc is missing path: \"\"",
        ),
    ] {
        assert_eq!(apply(json!([operation])), expected, "{operation}");
    }
}

#[test]
fn what_is_no_operation() {
    let apply = |patch: &str| {
        json_patch(&json!({}), patch.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let start = "error decoding patch: json: cannot unmarshal";
    assert_eq!(
        apply("[1]"),
        format!("{start} number into Go value of type handlers.jsonPatchOp")
    );
    assert_eq!(
        apply(r#"[{"op":1,"path":"/a"}]"#),
        format!("{start} number into Go struct field jsonPatchOp.op of type string")
    );
    assert_eq!(apply("[null]"), "Unexpected kind: ");
}

#[test]
fn growth_is_bounded() {
    let apply = |current: Value, operations: Vec<Value>| {
        let patch = Value::Array(operations).to_string();
        json_patch(&current, patch.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let copies = (0..4).map(|n| json!({ "op": "copy", "from": "/x", "path": format!("/y{n}") }));
    let error = apply(json!({ "x": "z".repeat(1 << 20) }), copies.collect());
    assert!(error.starts_with("Unable to complete the copy"), "{error}");
    let deep = (0..100).fold(json!(1), |inside, _| json!([inside]));
    let path = format!("/x{}", "/0".repeat(60));
    let copy = json!({ "op": "copy", "from": "/x", "path": path });
    let error = apply(json!({ "x": deep }), vec![copy]);
    assert_eq!(error, "exceeded max depth or size");
}

#[test]
fn merge_patches() {
    let current = json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] });
    let patch = json!({ "a": { "b": null, "d": { "e": null } }, "l": [3] });
    let merged = merge_patch(&current, &patch).unwrap();
    assert_eq!(merged, json!({ "a": { "c": 2, "d": {} }, "l": [3] }));
    expect!["json: cannot unmarshal array into Go value of type map[string]interface {}"]
        .assert_eq(&merge_patch(&current, &json!([])).unwrap_err().to_string());
}

fn named() -> impl Strategy<Value = Vec<(String, u8)>> {
    proptest::collection::vec(("[a-e]", any::<u8>()), 0..6).prop_map(|mut items| {
        let mut seen = std::collections::HashSet::new();
        items.retain(|item| seen.insert(item.0.clone()));
        items
    })
}

proptest! {
    /// A patch that holds all of the wanted list, orders it and deletes the rest makes that list.
    #[test]
    fn a_full_patch_makes_the_list(from in named(), to in named()) {
        // Upstream does not know the type of no items.
        prop_assume!(!from.is_empty() || !to.is_empty());
        let item = |(name, image): &(String, u8)| json!({ "name": name, "image": image.to_string() });
        let current = containers(from.iter().map(item).collect());
        let wanted: Vec<Value> = to.iter().map(item).collect();
        let mut items = wanted.clone();
        for (name, _) in from.iter().filter(|one| !to.iter().any(|other| other.0 == one.0)) {
            items.push(json!({ "$patch": "delete", "name": name }));
        }
        let order: Vec<Value> = to.iter().map(|one| json!({ "name": one.0 })).collect();
        let patch = json!({ "spec": { "containers": items, "$setElementOrder/containers": order } });
        let merged = strategic_merge_patch(&current, &patch, POD).unwrap();
        prop_assert_eq!(&merged["spec"]["containers"], &Value::Array(wanted));
        // Twice is once.
        prop_assert_eq!(&strategic_merge_patch(&merged, &patch, POD).unwrap(), &merged);
    }

    /// Any document as a patch of itself changes nothing.
    #[test]
    fn a_document_patches_itself(from in named()) {
        let items = from.iter().map(|(name, image)| json!({ "name": name, "image": image.to_string() }));
        let current = containers(items.collect());
        prop_assert_eq!(&strategic_merge_patch(&current, &current, POD).unwrap(), &current);
    }
}
