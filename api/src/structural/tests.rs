//! Values against schemas.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

fn check(schema: Value, value: Value, expected: Expect) {
    let patterns = Patterns::default();
    let errors = Validator::new(&schema, &patterns).validate(&value, &Path::root("d"));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&texts.join("\n"));
}

#[test]
fn types_and_bounds() {
    let schema = json!({
        "type": "object", "required": ["r"], "maxProperties": 5,
        "properties": {
            "s": { "type": "string", "maxLength": 2, "pattern": "^a" },
            "t": { "type": "string", "pattern": "^a" },
            "i": { "type": "integer", "minimum": 3, "multipleOf": 2 },
            "n": { "type": "number", "maximum": 1.5, "exclusiveMaximum": true },
            "l": { "type": "array", "maxItems": 1, "items": { "type": "boolean" } },
            "e": { "type": "string", "enum": ["x", "y"] },
            "o": { "type": "object", "properties": { "a": { "type": "string" } } },
        },
    });
    check(
        schema.clone(),
        json!({ "r": null, "i": 4.0, "n": 1, "e": "x", "l": [true] }),
        expect![""],
    );
    check(
        schema.clone(),
        json!({
            "s": "abc", "t": "b", "i": 1, "n": 1.5, "l": [1, true], "e": "z", "o": { "a": null },
        }),
        expect![[r#"
            d: Too many: 7: must have at most 5 items
            d.e: Unsupported value: "z": supported values: "x", "y"
            d.i: Invalid value: 1: i in body should be a multiple of 2
            d.i: Invalid value: 1: i in body should be greater than or equal to 3
            d.l[0]: Invalid value: "integer": l[0] in body must be of type boolean: "integer"
            d.l: Too many: 2: must have at most 1 item
            d.n: Invalid value: 1.5: n in body should be less than 1.5
            d.o.a: Invalid value: "null": o.a in body must be of type string: "null"
            d.s: Too long: may not be more than 2 bytes
            d.t: Invalid value: "b": t in body should match '^a'
            d.r: Required value"#]],
    );
    check(
        schema,
        json!("x"),
        expect![[r#"d: Invalid value: "string":  in body must be of type object: "string""#]],
    );
}

#[test]
fn bad_patterns_and_formats() {
    check(
        json!({ "type": "string", "pattern": "[" }),
        json!("a"),
        expect![[
            r#"d: Invalid value: "a":  in body should match '[, but pattern is invalid: error parsing regexp: missing closing ]: `[`'"#
        ]],
    );
    let formats = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    check(
        formats,
        json!({ "a": 1, "b": "c" }),
        expect![[r#"d.a: Invalid value: "integer": .a in body must be of type string: "integer""#]],
    );
    for (format, good, bad) in [
        (
            "date-time",
            "2020-01-02T03:04:05.6Z",
            "2020-01-02 03:04:05Z",
        ),
        ("date", "2020-01-02", "2020-13-02"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("uuid", "00000000-0000-0000-0000-000000000000", "0"),
        (
            "uuid4",
            "00000000-0000-4000-8000-000000000000",
            "00000000-0000-4000-7000-000000000000",
        ),
        ("duration", "1h30m", "1x"),
        ("byte", "YQ==", "a"),
        ("mac", "00:00:5e:00:53:01", "00:00"),
        ("uri", "http://a/b", "a b"),
        ("email", "a@b.c", "a"),
        ("hostname", "a.example", "-a"),
        ("k8s-short-name", "a-1", "A"),
        ("isbn13", "978-3-16-148410-0", "978-3-16-148410-1"),
    ] {
        let schema = json!({ "type": "string", "format": format });
        let patterns = Patterns::default();
        let validator = Validator::new(&schema, &patterns);
        let path = Path::root("d");
        assert!(
            validator.validate(&json!(good), &path).is_empty(),
            "{format} {good}"
        );
        let errors = validator.validate(&json!(bad), &path);
        let expected =
            format!("d: Invalid value: {bad:?}:  in body must be of type {format}: {bad:?}");
        assert_eq!(errors.first().map(ToString::to_string), Some(expected));
    }
}

#[test]
fn alternatives() {
    let schema = json!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "oneOf": [{ "minimum": 5 }, { "maximum": 9 }],
        "not": { "enum": [7] },
        "allOf": [{ "minimum": 1 }],
    });
    check(schema.clone(), json!(3), expect![[""]]);
    check(
        schema.clone(),
        json!(7),
        expect![[r#"
        d: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives
        d: Invalid value: "": "" must not validate the schema (not)"#]],
    );
    check(
        schema.clone(),
        json!(true),
        expect![[r#"
        d: Invalid value: "boolean":  in body must be of type integer,string: "boolean"
        d: Invalid value: "": "" must validate at least one schema (anyOf)
        d: Invalid value: "boolean":  in body must be of type integer: "boolean"
        d: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives"#]],
    );
    check(
        schema,
        json!(0),
        expect![[r#"
        d: Invalid value: 0:  in body should be greater than or equal to 1
        d: Invalid value: "": "" must validate all the schemas (allOf). None validated"#]],
    );
}

#[test]
fn what_is_not_known_is_pruned() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                   "properties": { "b": { "type": "object" } } },
            "l": { "type": "array", "items": { "type": "object" } },
            "r": { "type": "object", "x-kubernetes-embedded-resource": true },
            "m": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    });
    let value = json!({
        "x": 1, "apiVersion": "v1",
        "a": { "c": { "d": 1 }, "b": { "e": 1 } },
        "l": [{ "f": 1 }],
        "r": { "kind": "K", "metadata": { "g": 1 }, "spec": {} },
        "m": { "h": "i" },
    });
    expect![[r#"{"a":{"b":{},"c":{"d":1}},"apiVersion":"v1","l":[{}],"m":{"h":"i"},"r":{"kind":"K","metadata":{"g":1}}}"#]].assert_eq(&pruned(&value, &schema, true).to_string());
}

#[test]
fn resources_within() {
    let schema = json!({ "x-kubernetes-embedded-resource": true });
    let value = json!({
        "apiVersion": "a/b/c", "kind": "9", "metadata": { "name": "a/b", "labels": { "-": "" } },
    });
    let errors = check_resources(&value, &schema, false, &Path::root("d"));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expect![[r#"
        d.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
        d.kind: Invalid value: "9": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        d.metadata.name: Invalid value: "a/b": may not contain '/'
        d.metadata.labels: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]].assert_eq(&texts.join("\n"));
}
