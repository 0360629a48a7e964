//! What policies say of requests, and in which words.

use super::*;
use crate::admission::tests::{Asked, as_user};
use crate::admission::webhook::Webhooks;
use crate::authenticate::User;
use crate::metrics::text::{Format, Text};
use crate::tunnel::Tunnels;
use crate::view::tests::Objects;
use coracle_api::object::Object;
use expect_test::{Expect, expect};
use futures::FutureExt;
use serde_json::{Value, json};

mod mutating; // What policies change.

/// A policy for all that is written, with what else is given of its spec.
fn policy(name: &str, spec: Value) -> Value {
    let rule = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"],
    });
    let mut all = json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [rule], "matchPolicy": "Equivalent" },
    });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({ "metadata": { "name": name }, "spec": all })
}

fn binding(name: &str, of: &str, spec: Value) -> Value {
    let mut all = json!({ "policyName": of, "validationActions": ["Deny"] });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({ "metadata": { "name": name }, "spec": all })
}

/// Says no to what the expression does not hold for.
fn rule(expression: &str) -> Value {
    json!({ "validations": [{ "expression": expression }] })
}

fn view() -> Arc<Objects> {
    let map = |name: &str, namespace: &str, most: &str, tier: &str| {
        json!({
            "metadata": { "name": name, "namespace": namespace, "labels": { "tier": tier } },
            "data": { "most": most },
        })
    };
    Objects::new([
        (
            "namespaces",
            json!({
                "metadata": { "name": "web", "labels": { "env": "prod" }, "managedFields": [] },
                "status": { "phase": "Active" },
            }),
        ),
        ("namespaces", json!({ "metadata": { "name": "lab" } })),
        ("configmaps", map("few", "web", "3", "a")),
        ("configmaps", map("many", "web", "30", "a")),
        ("configmaps", map("few", "lab", "5", "b")),
    ])
}

fn policies(all: &[Value], bindings: &[Value]) -> Policies {
    policies_that(Does::Judge, all, bindings)
}

fn policies_that(does: Does, all: &[Value], bindings: &[Value]) -> Policies {
    let view = view();
    let authorizer = Arc::new(Authorizer::new(view.clone()));
    let tunnels = Tunnels::new(Default::default());
    let webhooks = Webhooks::new(view.clone(), Arc::clone(&authorizer), tunnels);
    let policies = Policies::new(view, authorizer, webhooks.converter());
    let object = |value: &Value| Object::from_value(value.clone()).unwrap();
    let of = |name: &str| {
        let own = bindings
            .iter()
            .filter(|one| one["spec"]["policyName"] == name);
        own.map(|one| Arc::new(Binding::read(&object(one))))
            .collect()
    };
    let bound = all.iter().map(|one| Bound {
        policy: Arc::new(Policy::read(&object(one))),
        bindings: of(one["metadata"]["name"].as_str().unwrap()),
    });
    policies.lists.put(does, bound.collect());
    policies
}

fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "d", "namespace": "web", "labels": { "app": "d" } },
        "spec": { "replicas": replicas },
    })
}

/// Code, reason and message of a refusal, and warnings.
fn told(policies: &Policies, asked: &Asked<'_>, object: Option<&Value>) -> String {
    let object = object.map(|object| Object::from_value(object.clone()).unwrap());
    let attributes = asked.attributes();
    let judged = policies.judge(object.as_ref(), &attributes);
    let judged = judged.now_or_never().expect("nobody is asked");
    let mut lines = match judged {
        Ok(()) => vec!["ok".to_owned()],
        Err(status) => {
            assert_eq!(status.details["causes"].as_array().map_or(0, Vec::len), 1);
            vec![format!(
                "{} {}: {}",
                status.code, status.reason, status.message
            )]
        }
    };
    lines.extend(asked.warnings.texts());
    lines.join("\n")
}

/// What is said of a deployment of five by one policy with one binding.
fn check(of_policy: Value, of_binding: Value, expected: Expect) {
    let policies = policies(&[policy("p", of_policy)], &[binding("b", "p", of_binding)]);
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE deployments web d");
    expected.assert_eq(&told(&policies, &asked, Some(&deployment(5))));
}

#[test]
fn a_rule_that_does_not_hold_refuses() {
    check(rule("object.spec.replicas < 10"), json!({}), expect!["ok"]);
    check(
        rule(" object.spec.replicas < 5"),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.spec.replicas < 5"#
        ]],
    );
    check(
        json!({ "validations": [{
            "expression": "false", "message": " too many ", "reason": "Forbidden",
        }] }),
        json!({}),
        expect![[
            r#"403 Forbidden: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too many"#
        ]],
    );
}

#[test]
fn messages_are_evaluated_where_they_can_be() {
    let with = |expression: &str| {
        json!({ "validations": [{
            "expression": "false", "message": "plain", "messageExpression": expression,
        }] })
    };
    check(
        with("'has ' + string(object.spec.replicas)"),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: has 5"#
        ]],
    );
    for useless in ["object.spec.none", "'a\\nb'", "' '"] {
        check(
            with(useless),
            json!({}),
            expect![[
                r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: plain"#
            ]],
        );
    }
}

#[test]
fn what_cannot_be_evaluated_refuses_unless_failures_are_ignored() {
    let ignoring = |mut spec: Value| {
        spec["failurePolicy"] = "Ignore".into();
        spec
    };
    let broken = rule("object.spec.none > 1");
    check(
        broken.clone(),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.spec.none > 1' resulted in error: no such key: none"#
        ]],
    );
    check(ignoring(broken), json!({}), expect!["ok"]);
    let costly = rule("lists.range(100000000).size() > 0");
    check(
        costly.clone(),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: validation failed due to running out of cost budget, no further validation rules will be run"#
        ]],
    );
    check(ignoring(costly), json!({}), expect!["ok"]);
    check(
        ignoring(rule("false")),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false"#
        ]],
    );
    // As long as thousands of terms: on a stack of its own.
    let deep = format!("object.spec.replicas == {}", vec!["1"; 900].join("+"));
    check(rule(&deep.replace("==", "<")), json!({}), expect!["ok"]);
}

#[test]
fn variables_are_looked_at_when_they_are_named() {
    let variables = json!([
        { "name": "replicas", "expression": "object.spec.replicas" },
        { "name": "double", "expression": "variables.replicas * 2" },
        { "name": "broken", "expression": "object.spec.none" },
    ]);
    let with = |expression: &str| {
        let mut spec = rule(expression);
        spec["variables"] = variables.clone();
        spec
    };
    check(with("variables.double == 10"), json!({}), expect!["ok"]);
    check(
        with("variables.broken == 1"),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'variables.broken == 1' resulted in error: composited variable "broken" fails to evaluate: no such key: none"#
        ]],
    );
}

#[test]
fn conditions_decide_whether_a_policy_is_asked() {
    let with = |conditions: &[&str]| {
        let all: Vec<Value> = conditions
            .iter()
            .map(|text| json!({ "name": "c", "expression": text }))
            .collect();
        let mut spec = rule("false");
        spec["matchConditions"] = all.into();
        spec
    };
    check(
        with(&["true", "request.operation == 'DELETE'"]),
        json!({}),
        expect!["ok"],
    );
    check(
        with(&["object.spec.none", "false"]),
        json!({}),
        expect!["ok"],
    );
    check(
        with(&["true", "object.spec.none == 1"]),
        json!({}),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.spec.none == 1' resulted in error: no such key: none"#
        ]],
    );
}

#[test]
fn expressions_see_the_request_its_namespace_and_what_its_user_may_do() {
    let all = [
        "request.userInfo.username == 'jane'",
        "request.kind.kind == 'Deployment' && request.resource.resource == 'deployments'",
        "request.name == 'd' && request.namespace == 'web' && !request.dryRun",
        "oldObject == null",
        "namespaceObject.metadata.labels.env == 'prod'",
        "!has(dyn(namespaceObject).metadata.managedFields)",
        "!authorizer.group('apps').resource('deployments').check('create').allowed()",
        "!authorizer.requestResource.check('breakglass').allowed()",
    ];
    for expression in all {
        check(rule(expression), json!({}), expect!["ok"]);
    }
}

#[test]
fn bindings_say_what_comes_of_it() {
    check(
        rule("false"),
        json!({ "validationActions": ["Warn", "Audit"] }),
        expect![[r#"
            ok
            Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false"#]],
    );
    let labelled = |env: &str| {
        let selector = json!({ "matchLabels": { "env": env } });
        json!({ "matchResources": { "namespaceSelector": selector } })
    };
    check(rule("false"), labelled("test"), expect!["ok"]);
    check(
        rule("false"),
        labelled("prod"),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false"#
        ]],
    );
    let named = json!({ "matchResources": { "resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
        "operations": ["CREATE"], "resourceNames": ["other"],
    }] } });
    check(rule("false"), named, expect!["ok"]);
}

#[test]
fn rules_that_exclude_win() {
    let mut spec = rule("false");
    let rule = |resources: &str| {
        json!([{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": [resources],
            "operations": ["*"],
        }])
    };
    spec["matchConstraints"] = json!({
        "resourceRules": rule("*"), "excludeResourceRules": rule("deployments"),
    });
    check(spec, json!({}), expect!["ok"]);
}

#[test]
fn parameters_are_found_by_name_and_by_labels() {
    let mut spec = rule("object.spec.replicas <= int(params.data.most)");
    spec["paramKind"] = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    spec["validations"][0]["messageExpression"] = "'at most ' + params.data.most".into();
    let named = |name: &str, namespace: Value, action: &str| {
        json!({ "paramRef": {
            "name": name, "namespace": namespace, "parameterNotFoundAction": action,
        } })
    };
    check(
        spec.clone(),
        named("few", Value::Null, "Deny"),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: at most 3"#
        ]],
    );
    check(
        spec.clone(),
        named("few", json!("lab"), "Deny"),
        expect!["ok"],
    );
    check(
        spec.clone(),
        named("none", Value::Null, "Allow"),
        expect!["ok"],
    );
    check(
        spec.clone(),
        named("none", Value::Null, "Deny"),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"#
        ]],
    );
    let selector = json!({ "matchLabels": { "tier": "a" } });
    let selected = json!({ "paramRef": {
        "selector": selector, "parameterNotFoundAction": "Deny",
    } });
    check(
        spec.clone(),
        selected,
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: at most 3"#
        ]],
    );
    spec["paramKind"] = json!({ "apiVersion": "example.com/v1", "kind": "Limit" });
    check(
        spec,
        named("few", Value::Null, "Deny"),
        expect![[
            r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'"#
        ]],
    );
}

#[test]
fn the_old_object_is_there_on_update_and_delete() {
    let policies = policies(
        &[policy("p", rule("oldObject.spec.replicas == 5"))],
        &[binding("b", "p", json!({}))],
    );
    let (user, old) = (
        User::named("jane"),
        Object::from_value(deployment(4)).unwrap(),
    );
    let asked = Asked {
        old: Some(&old),
        ..as_user(&user, "DELETE deployments web d")
    };
    expect![[
        r#"422 Invalid: deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: oldObject.spec.replicas == 5"#
    ]]
    .assert_eq(&told(&policies, &asked, None));
}

#[test]
fn policies_are_not_asked_about_policies() {
    let policies = policies(
        &[policy("p", rule("false"))],
        &[binding("b", "p", json!({}))],
    );
    let user = User::named("jane");
    for (text, wanted) in [
        ("CREATE validatingadmissionpolicies - p", false),
        ("DELETE mutatingadmissionpolicybindings - b", false),
        ("CREATE validatingwebhookconfigurations - w", true),
        ("CREATE pods web p", true),
    ] {
        let asked = as_user(&user, text);
        assert_eq!(
            policies.concerns(Does::Judge, &asked.attributes()),
            wanted,
            "{text}"
        );
    }
    let none = super::tests::policies(&[], &[]);
    let asked = as_user(&user, "CREATE pods web p");
    assert!(!none.concerns(Does::Judge, &asked.attributes()));
}

#[test]
fn what_is_said_is_counted() {
    let policies = policies(
        &[policy("p", rule("false"))],
        &[
            binding("b", "p", json!({ "validationActions": ["Warn"] })),
            binding("c", "p", json!({})),
        ],
    );
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE deployments web d");
    told(&policies, &asked, Some(&deployment(1)));
    let mut text = Text::new(Format::Prometheus);
    policies.counts().text(&mut text);
    let shown = text.into_string();
    let counted: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("check_total{"))
        .collect();
    expect![[r#"
        apiserver_validating_admission_policy_check_total{enforcement_action="warn",error_type="invalid_error",policy="p",policy_binding="b"} 1
        apiserver_validating_admission_policy_check_total{enforcement_action="deny",error_type="invalid_error",policy="p",policy_binding="c"} 1"#]]
    .assert_eq(&counted.join("\n"));
}
