//! Generation, warnings and cells of a PodTemplate.

use crate::kinds::testing::{check_errors, check_row, defaulted, resource};
use expect_test::expect;
use serde_json::{Value, json};

fn template() -> Value {
    json!({
        "metadata": { "name": "t", "namespace": "n" },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": "web:1" }] },
        },
    })
}

#[test]
fn printed() {
    check_row(
        "podtemplates",
        template(),
        60,
        expect![[r#"
        Name: t
        Containers: c
        Images: web:1
        Pod Labels: app=web"#]],
    );
}

#[test]
fn the_template_is_looked_at_and_counted() {
    let mut bad = template();
    bad["template"]["spec"]["containers"][0]["name"] = "A".into();
    check_errors(
        "podtemplates",
        bad.clone(),
        expect![[
            r#"template.spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#
        ]],
    );
    let rules = resource("podtemplates").rules;
    let [old, new] = [template(), bad].map(|value| defaulted("podtemplates", value));
    assert!(rules.raises_generation(&new, &old) && !rules.raises_generation(&old, &old));
}
