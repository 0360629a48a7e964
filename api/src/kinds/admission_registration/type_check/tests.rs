use super::*;
use expect_test::{Expect, expect};

/// The warnings about validations of deployments, each with its field.
fn check(spec: Value, expected: Expect) {
    let mut all = json!({ "matchConstraints": { "resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments", "*/scale"],
    }] } });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    let told = warnings(&all).into_iter().map(|one| {
        let (field, warning) = (json::text(&one, "fieldRef"), json::text(&one, "warning"));
        format!("{field}: {warning}")
    });
    expected.assert_eq(&told.collect::<String>());
}

fn rule(expression: &str) -> Value {
    json!({ "validations": [{ "expression": expression }] })
}

#[test]
fn what_fits_is_not_told_of() {
    for text in [
        "object.spec.replicas > 1",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('a'))",
        "object.metadata.labels['a'] == 'b' && has(object.metadata.creationTimestamp)",
        "object.spec.template.spec.containers[0].resources.limits['cpu'] == '1'",
        "object.spec.template.spec.containers[0].ports[0].containerPort in [80]",
        "oldObject == null || oldObject.spec.paused",
        "namespaceObject.metadata.name == 'a' && request.operation == 'CREATE'",
        "authorizer.group('').resource('pods').check('get').allowed()",
    ] {
        check(rule(text), expect![""]);
    }
}

#[test]
fn what_is_of_another_type_is_told_of() {
    check(
        json!({ "validations": [{
            "expression": "object.spec.replicas > '1'",
            "messageExpression": "'wants more than ' + object.spec.replicas",
        }] }),
        expect![[r#"
            spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'
             | object.spec.replicas > '1'
             | .....................^
            spec.validations[0].messageExpression: apps/v1, Kind=Deployment: ERROR: <input>:1:20: found no matching overload for '_+_' applied to '(string, int)'
             | 'wants more than ' + object.spec.replicas
             | ...................^
        "#]],
    );
    check(
        rule("object.spec.replics > 1"),
        expect![[r#"
            spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replics'
             | object.spec.replics > 1
             | ...........^
        "#]],
    );
}

#[test]
fn variables_and_parameters_have_types() {
    let mut spec = rule("variables.many == 'yes'");
    spec["variables"] = json!([{ "name": "many", "expression": "object.spec.replicas > 3" }]);
    check(
        spec,
        expect![[r#"
            spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:16: found no matching overload for '_==_' applied to '(bool, string)'
             | variables.many == 'yes'
             | ...............^
        "#]],
    );
    let mut spec = rule("params.data['a'] == 1");
    spec["paramKind"] = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    check(
        spec.clone(),
        expect![[r#"
            spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:18: found no matching overload for '_==_' applied to '(string, int)'
             | params.data['a'] == 1
             | .................^
        "#]],
    );
    spec["paramKind"] = json!({ "apiVersion": "example.com/v1", "kind": "Unknown" });
    check(spec, expect![""]);
}

#[test]
fn wildcards_mean_no_kind_in_particular() {
    let mut spec = rule("object.spec.replics > 1");
    spec["matchConstraints"] = json!({ "resourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["deployments"],
    }] });
    check(spec, expect![""]);
}
