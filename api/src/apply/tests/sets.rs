//! Sets of fields and their algebra.

use crate::apply::set::Set;
use expect_test::{Expect, expect};
use serde_json::Value;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn check(a: &str, b: &str, expected: Expect) {
    let (a, b) = (parsed(a), parsed(b));
    let [a, b] = [&a, &b].map(|fields| Set::from_fields(fields).expect("fields"));
    let shown = [
        ("union", a.clone().union(b.clone())),
        ("intersection", a.intersection(&b)),
        ("difference", a.difference(&b)),
        ("recursive", a.recursive_difference(&b)),
    ]
    .map(|(name, set)| format!("{name} {}\n", set.to_fields()));
    expected.assert_eq(&shown.concat());
}

#[test]
fn a_parent_goes_without_its_children_and_recursively_with_them() {
    check(
        r#"{"f:a":{".":{},"f:b":{},"f:c":{"f:d":{}}},"f:e":{}}"#,
        r#"{"f:a":{".":{},"f:c":{}},"f:g":{}}"#,
        expect![[r#"
            union {"f:a":{".":{},"f:b":{},"f:c":{".":{},"f:d":{}}},"f:e":{},"f:g":{}}
            intersection {"f:a":{}}
            difference {"f:a":{"f:b":{},"f:c":{"f:d":{}}},"f:e":{}}
            recursive {"f:e":{}}
        "#]],
    );
}

#[test]
fn keys_and_values_are_told_apart_by_what_they_are() {
    check(
        r#"{"k:{\"name\":\"a\"}":{".":{},"f:x":{}},"v:\"s\"":{},"v:1":{},"i:2":{}}"#,
        r#"{"k:{ \"name\" : \"a\" }":{".":{}},"v:1.0":{},"z:later":{}}"#,
        expect![[r#"
            union {"i:2":{},"k:{\"name\":\"a\"}":{".":{},"f:x":{}},"v:\"s\"":{},"v:1":{}}
            intersection {"k:{\"name\":\"a\"}":{},"v:1":{}}
            difference {"i:2":{},"k:{\"name\":\"a\"}":{"f:x":{}},"v:\"s\"":{}}
            recursive {"i:2":{},"v:\"s\"":{}}
        "#]],
    );
}

#[test]
fn what_is_no_path_is_refused() {
    for text in [
        r#"{"f":{}}"#,
        r#"{"fx:a":{}}"#,
        r#"{"i:x":{}}"#,
        r#"{"v:{":{}}"#,
        r#"{"f:a":1}"#,
    ] {
        assert!(Set::from_fields(&parsed(text)).is_err(), "{text}");
    }
}

#[test]
fn documents_are_written_in_the_order_of_their_steps() {
    let fields = parsed(
        r#"{"f:ports":{".":{},"f:x":{},"i:1":{},
            "k:{\"port\":10,\"protocol\":\"TCP\"}":{".":{}},
            "k:{\"port\":9,\"protocol\":\"TCP\"}":{".":{}},
            "v:10":{},"v:9":{},"v:\"a\"":{}}}"#,
    );
    let list = serde_json::json!([{ "manager": "m", "fieldsV1": fields }, 1]);
    let mut out = Vec::new();
    crate::apply::order::write_managed_fields(&mut out, &list);
    expect![[r#"[{"fieldsV1":{"f:ports":{".":{},"f:x":{},"k:{\"port\":9,\"protocol\":\"TCP\"}":{".":{}},"k:{\"port\":10,\"protocol\":\"TCP\"}":{".":{}},"v:9":{},"v:10":{},"v:\"a\"":{},"i:1":{}}},"manager":"m"},1]"#]]
        .assert_eq(&String::from_utf8(out).expect("UTF-8"));
}
