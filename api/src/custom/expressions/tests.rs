use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

#[track_caller]
fn check(schema: &Value, old: Option<Value>, new: Value, expected: Expect) {
    let tree = Tree::of(schema).expect("the schema has rules");
    let errors = super::check(&tree, schema, &new, old.as_ref(), &[]);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&texts.join("\n"));
}

fn with_rules(properties: Value, rules: Value) -> Value {
    json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object", "properties": properties, "x-kubernetes-validations": rules,
        } },
    })
}

#[test]
fn rules_say_what_is_wrong() {
    let properties = json!({
        "min": { "type": "integer" }, "max": { "type": "integer" },
        "name": { "type": "string", "x-kubernetes-validations": [
            { "rule": "self.startsWith('a')", "message": "must begin with a" },
        ] },
    });
    let rules = json!([
        { "rule": "self.min <= self.max" },
        { "rule": "self.min > 0", "messageExpression": "'min is ' + string(self.min)",
          "fieldPath": ".min", "reason": "FieldValueForbidden" },
    ]);
    let schema = with_rules(properties, rules);
    check(
        &schema,
        None,
        json!({ "spec": { "min": 0, "max": -1, "name": "b" } }),
        expect![[r#"
            spec: Invalid value: failed rule: self.min <= self.max
            spec.min: Forbidden: min is 0
            spec.name: Invalid value: "b": must begin with a"#]],
    );
    check(
        &schema,
        None,
        json!({ "spec": { "min": 1, "max": 1, "name": "a" } }),
        expect![""],
    );
    check(
        &schema,
        None,
        json!({ "spec": { "max": 1, "name": "a" } }),
        expect![[r#"
            spec: Invalid value: "object": no such key: min evaluating rule: self.min <= self.max
            spec: Invalid value: "object": no such key: min evaluating rule: self.min > 0"#]],
    );
}

#[test]
fn transitions_need_an_old_value() {
    let properties = json!({
        "id": { "type": "string", "x-kubernetes-validations": [
            { "rule": "self == oldSelf", "message": "is immutable" },
        ] },
        "n": { "type": "integer", "x-kubernetes-validations": [
            { "rule": "!oldSelf.hasValue() || self > oldSelf.value()", "optionalOldSelf": true,
              "message": "must grow" },
        ] },
    });
    let schema = with_rules(properties, json!([]));
    let spec = |id: &str, n: i64| json!({ "spec": { "id": id, "n": n } });
    check(&schema, None, spec("a", 1), expect![""]);
    check(&schema, Some(spec("a", 1)), spec("a", 2), expect![""]);
    check(
        &schema,
        Some(spec("a", 1)),
        spec("b", 1),
        expect![[r#"
            spec.id: Invalid value: "b": is immutable
            spec.n: Invalid value: 1: must grow"#]],
    );
}

#[test]
fn what_did_not_change_is_not_told() {
    let properties = json!({
        "list": {
            "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "properties": { "name": { "type": "string" }, "n": { "type": "integer" } },
                "x-kubernetes-validations": [{ "rule": "self.n > 0", "message": "no" }],
            },
        },
        "other": { "type": "integer" },
    });
    let schema = with_rules(properties, json!([]));
    let spec = |n: i64, other: i64| json!({ "spec": { "list": [{ "name": "a", "n": n }], "other": other } });
    check(&schema, Some(spec(0, 1)), spec(0, 2), expect![""]);
    check(
        &schema,
        Some(spec(0, 1)),
        spec(-1, 1),
        expect!["spec.list[0]: Invalid value: no"],
    );
}

#[test]
fn values_are_of_their_schemas_types() {
    let properties = json!({
        "at": { "type": "string", "format": "date-time" },
        "wait": { "type": "string", "format": "duration" },
        "share": { "type": "number" },
        "port": { "x-kubernetes-int-or-string": true },
        "namespace": { "type": "string" },
        "labels": { "type": "object", "additionalProperties": { "type": "string" } },
    });
    let rules = json!([
        { "rule": "self.at < timestamp('2026-01-01T00:00:00Z')" },
        { "rule": "self.wait > duration('1m')" },
        { "rule": "self.share + 0.5 > 1.0" },
        { "rule": "type(self.port) == int ? self.port > 10 : self.port == 'http'" },
        { "rule": "self.__namespace__ == 'a'" },
        { "rule": "self.labels.all(k, self.labels[k] != '')" },
        { "rule": "!has(self.none)" },
    ]);
    let mut properties = properties;
    properties["none"] = json!({ "type": "string" });
    let schema = with_rules(properties, rules);
    let good = json!({ "spec": {
        "at": "2025-01-01T00:00:00Z", "wait": "2m", "share": 1, "port": "http",
        "namespace": "a", "labels": { "x": "y" },
    } });
    check(&schema, None, good, expect![""]);
    let bad = json!({ "spec": {
        "at": "2027-01-01T00:00:00Z", "wait": "2s", "share": 0.25, "port": 7,
        "namespace": "b", "labels": { "x": "" }, "none": "",
    } });
    check(
        &schema,
        None,
        bad,
        expect![[r#"
            spec: Invalid value: failed rule: self.at < timestamp('2026-01-01T00:00:00Z')
            spec: Invalid value: failed rule: self.wait > duration('1m')
            spec: Invalid value: failed rule: self.share + 0.5 > 1.0
            spec: Invalid value: failed rule: type(self.port) == int ? self.port > 10 : self.port == 'http'
            spec: Invalid value: failed rule: self.__namespace__ == 'a'
            spec: Invalid value: failed rule: self.labels.all(k, self.labels[k] != '')
            spec: Invalid value: failed rule: !has(self.none)"#]],
    );
}

#[test]
fn the_budget_is_of_all_rules() {
    let properties = json!({
        "list": { "type": "array", "items": { "type": "integer" } },
    });
    let rules = json!([
        { "rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))" },
        { "rule": "true" },
    ]);
    let schema = with_rules(properties, rules);
    let list: Vec<i64> = (0..400).collect();
    check(
        &schema,
        None,
        json!({ "spec": { "list": list } }),
        expect![[
            r#"spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))"#
        ]],
    );
}

/// Else what was null once could never be set.
#[test]
fn null_is_no_old_value() {
    let schema = json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object", "nullable": true, "properties": { "x": { "type": "string" } },
            "x-kubernetes-validations": [{ "rule": "self.x == oldSelf.x", "message": "fixed" }],
        } },
    });
    let set = json!({ "spec": { "x": "a" } });
    check(
        &schema,
        Some(json!({ "spec": null })),
        set.clone(),
        expect![""],
    );
    let other = Some(json!({ "spec": { "x": "b" } }));
    check(
        &schema,
        other,
        set,
        expect![[r#"spec: Invalid value: fixed"#]],
    );
}

#[test]
fn items_are_known_by_all_their_keys() {
    let schema = json!({
        "type": "object",
        "properties": { "spec": { "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "port"],
            "items": { "type": "object",
                "properties": { "name": { "type": "string" }, "port": { "type": "integer" },
                    "v": { "type": "integer" } },
                "x-kubernetes-validations": [
                    { "rule": "self.v >= oldSelf.v", "message": "must not fall" },
                ],
            },
        } },
    });
    let item = |name: &str, port: i64, v: i64| json!({ "name": name, "port": port, "v": v });
    let old = json!({ "spec": [item("a", 1, 5), item("a", 2, 1)] });
    check(
        &schema,
        Some(old),
        json!({ "spec": [item("a", 2, 2), item("a", 1, 4), item("b", 1, 0)] }),
        expect![[r#"spec[1]: Invalid value: must not fall"#]],
    );
}
