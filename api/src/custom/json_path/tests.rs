use super::*;
use expect_test::expect;
use serde_json::json;

#[test]
fn paths_are_followed() {
    let value = json!({
        "spec": { "size": 3, "ports": [{ "p": 80 }, { "p": 443 }], "a.b/c": "dotted" },
        "status": { "conditions": [
            { "type": "Ready", "status": "False", "n": 1 },
            { "type": "Synced", "status": "True", "n": 2 },
        ] },
    });
    let paths = [
        ".spec.size",
        ".spec.ports[0].p",
        ".spec.ports[-1].p",
        ".spec.ports[*].p",
        ".spec.a\\.b/c",
        ".spec['a.b/c']",
        ".status.conditions[?(@.type==\"Synced\")].status",
        ".status.conditions[?(@.type == 'Ready')].status",
        ".status.conditions[?(@.n>1)].type",
        ".status.conditions[?(@.n)].type",
        ".status.conditions[?(@.type==\"None\")].status",
        ".spec.none.none",
        ".spec.ports[7]",
        "spec",
        ".spec..size",
        ".spec[",
        ".spec.ports[0:1]",
    ];
    let shown = paths.map(|text| {
        let path = JsonPath::parse(text);
        let found = path.as_ref().map(|path| path.first(&value));
        match found {
            None => format!("{text}: no path"),
            Some(None) => format!("{text}: nothing"),
            Some(Some(found)) => format!("{text}: {found}"),
        }
    });
    expect![[r#"
        .spec.size: 3
        .spec.ports[0].p: 80
        .spec.ports[-1].p: 443
        .spec.ports[*].p: 80
        .spec.a\.b/c: "dotted"
        .spec['a.b/c']: "dotted"
        .status.conditions[?(@.type=="Synced")].status: "True"
        .status.conditions[?(@.type == 'Ready')].status: "False"
        .status.conditions[?(@.n>1)].type: "Synced"
        .status.conditions[?(@.n)].type: "Ready"
        .status.conditions[?(@.type=="None")].status: nothing
        .spec.none.none: nothing
        .spec.ports[7]: nothing
        spec: no path
        .spec..size: no path
        .spec[: no path
        .spec.ports[0:1]: no path"#]]
    .assert_eq(&shown.join("\n"));
}

/// The nesting is what a definition says: it must not end the process that reads it.
#[test]
fn filters_within_filters_are_bounded() {
    let nested = |depth: usize| format!(".a{}{}", "[?(@.a".repeat(depth), ")]".repeat(depth));
    assert!(JsonPath::parse(&nested(3)).is_some());
    assert!(JsonPath::parse(&nested(100)).is_none());
    assert!(JsonPath::parse(&format!(".a{}", "[?(@".repeat(200_000))).is_none());
}
