//! The style of documents, and that a reader reads what was written.

use super::*;
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn the_style_is_that_of_upstream() {
    let value = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "annotations": {}, "creationTimestamp": "2026-11-29T17:27:36Z",
            "labels": { "odd": "true", "n": "1", "v": "1.2.3", "hex": "0x1F", "t": "1:30" },
        },
        "spec": {
            "containers": [{ "name": "c", "args": ["-c", "a: b", "- x", "", "a\nb\n"] }],
            "list": [[1, 2], []], "on": null, "ratio": 0.5,
        },
        "text": "first\n  second\nlast", "tab": "a\tb", "hash": "a #b", "it": "it's", "q": "'q",
    });
    expect![[r#"
        apiVersion: v1
        hash: 'a #b'
        it: it's
        kind: Pod
        metadata:
          annotations: {}
          creationTimestamp: "2026-11-29T17:27:36Z"
          labels:
            hex: "0x1F"
            "n": "1"
            odd: "true"
            t: "1:30"
            v: 1.2.3
        q: '''q'
        spec:
          containers:
          - args:
            - -c
            - 'a: b'
            - '- x'
            - ""
            - |
              a
              b
            name: c
          list:
          - - 1
            - 2
          - []
          "on": null
          ratio: 0.5
        tab: "a\tb"
        text: |-
          first
            second
          last
    "#]]
    .assert_eq(&document(&value));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\n\t]{0,12}".prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        "[0-9xob_.:+eE-]{0,6}".prop_map(Value::from),
        "(yes|No|off|~|<<|=|null|TRUE|[.]inf|-[.]INF|2026-01-02)".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z0-9 :#.'-]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(value in values()) {
        let text = document(&value);
        let read: Value = serde_yaml_ng::from_str(&text).unwrap_or_else(|error| {
            panic!("{error} in\n{text}")
        });
        prop_assert_eq!(read, value, "{}", text);
    }
}
