//! Label and field selectors, good and bad.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

const LABELS: &[(&str, &str)] = &[("app", "web"), ("tier", "front"), ("n", "5")];

fn check(selectors: &[&str], expect: Expect) {
    let mut text = String::new();
    for selector in selectors {
        let line = match LabelSelector::parse(selector) {
            Ok(parsed) => {
                format!(
                    "{selector} -> {parsed} {}\n",
                    parsed.matches(LABELS.iter().copied())
                )
            }
            Err(error) => format!("{selector} -> {error}\n"),
        };
        text.push_str(&line);
    }
    expect.assert_eq(&text);
}

#[test]
fn good_selectors() {
    check(
        &[
            "",
            "app",
            "!app",
            "app=web",
            "app==web , tier!=back",
            "x!=y",
            "x=y",
            "tier in (back, front)",
            "tier notin (back,front)",
            "x notin (a)",
            "app in ()",
            "app in (,web)",
            "app=",
            "n>4,n<6",
            "app>4",
            "in in (in)",
            "example.com/x",
        ],
        expect![[r#"
             ->  true
            app -> app true
            !app -> !app false
            app=web -> app=web true
            app==web , tier!=back -> app=web,tier!=back true
            x!=y -> x!=y true
            x=y -> x=y false
            tier in (back, front) -> tier in (back,front) true
            tier notin (back,front) -> tier notin (back,front) false
            x notin (a) -> x!=a true
            app in () -> app= false
            app in (,web) -> app in (,web) true
            app= -> app= false
            n>4,n<6 -> n>4,n<6 true
            app>4 -> app>4 false
            in in (in) -> in=in false
            example.com/x -> example.com/x false
        "#]],
    );
}

#[test]
fn bad_selectors() {
    check(
        &[
            ",",
            "app,",
            "app web",
            "app=web tier=x",
            "=web",
            "app in web",
            "app in (web",
            "app in (web x)",
            "app=-web-",
            "app=a=b",
            "n>x",
            "app notin (=)",
            "!",
        ],
        expect![[r#"
            , -> found ',', expected: !, identifier, or 'end of string'
            app, -> found '', expected: identifier after ','
            app web -> unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt
            app=web tier=x -> found 'tier', expected: ',' or 'end of string'
            =web -> found '=', expected: !, identifier, or 'end of string'
            app in web -> unable to parse requirement: found 'web' expected: '('
            app in (web -> unable to parse requirement: found '', expected: ',' or ')'
            app in (web x) -> unable to parse requirement: found 'x', expected: ',' or ')'
            app=-web- -> unable to parse requirement: values[0][app]: Invalid value: "-web-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            app=a=b -> found '=', expected: ',' or 'end of string'
            n>x -> unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer
            app notin (=) -> unable to parse requirement: found '=', expected: ',', ')' or identifier
            ! -> unable to parse requirement: found '', expected: identifier
        "#]],
    );
}

#[test]
fn selectors_from_json() {
    let parse = |value| LabelSelector::from_json(&value).map(|selector| selector.to_string());
    let both = json!({
        "matchLabels": { "app": "web" },
        "matchExpressions": [
            { "key": "tier", "operator": "In", "values": ["front", "back"] },
            { "key": "x", "operator": "DoesNotExist" },
        ],
    });
    assert!(
        LabelSelector::from_json(&both)
            .unwrap()
            .matches(LABELS.iter().copied())
    );
    expect!["app=web,tier in (back,front),!x"].assert_eq(&parse(both).unwrap());
    let bad = json!({ "matchExpressions": [{ "key": "tier", "operator": "in" }] });
    expect![[r#""in" is not a valid label selector operator"#]]
        .assert_eq(&parse(bad).unwrap_err().to_string());
    let empty = json!({ "matchExpressions": [{ "key": "tier", "operator": "In" }] });
    expect!["values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"]
        .assert_eq(&parse(empty).unwrap_err().to_string());
    let everything = LabelSelector::from_json(&json!({})).unwrap();
    assert!(everything.is_empty() && everything.matches(LABELS.iter().copied()));
    let nothing = LabelSelector::from_json(&Value::Null).unwrap();
    assert!(!nothing.is_empty() && !nothing.matches(LABELS.iter().copied()));
}

fn check_fields(selectors: &[&str], expect: Expect) {
    let mut text = String::new();
    for selector in selectors {
        let line = match FieldSelector::parse(selector) {
            Ok(parsed) => {
                let known = parsed.check_fields(&["spec.nodeName"]);
                let matches = parsed.matches(|field| match field {
                    "spec.nodeName" => "n1".into(),
                    _ => String::new(),
                });
                format!("{selector} -> {known:?} {matches}\n")
            }
            Err(error) => format!("{selector} -> {error}\n"),
        };
        text.push_str(&line);
    }
    expect.assert_eq(&text);
}

#[test]
fn field_selectors() {
    check_fields(
        &[
            "",
            "spec.nodeName=n1",
            "spec.nodeName==n1,metadata.name=",
            "spec.nodeName!=n1",
            "spec.foo=x",
            "spec.nodeName",
            r"metadata.name=a\,b\=c",
            r"metadata.name=a\x",
            "metadata.name=a=b",
        ],
        expect![[r#"
             -> Ok(()) true
            spec.nodeName=n1 -> Ok(()) true
            spec.nodeName==n1,metadata.name= -> Ok(()) true
            spec.nodeName!=n1 -> Ok(()) false
            spec.foo=x -> Err(SelectorError("field label not supported: spec.foo")) false
            spec.nodeName -> invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'
            metadata.name=a\,b\=c -> Ok(()) false
            metadata.name=a\x -> invalid field selector: invalid escape sequence: \x
            metadata.name=a=b -> invalid field selector: unescaped character in value: 61
        "#]],
    );
    let selector = FieldSelector::parse("metadata.name=web,status.phase!=Failed").unwrap();
    assert_eq!(selector.exact("metadata.name"), Some("web"));
    assert_eq!(selector.exact("status.phase"), None);
}
