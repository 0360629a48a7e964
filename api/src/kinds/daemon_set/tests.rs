//! Defaults, printed cells, validation and the count of template changes of a DaemonSet.

use super::{DaemonSet, template_generation};
use crate::kinds::testing::{check_errors, check_row, check_spec, defaulted, update_errors};
use crate::resource::{Part, Rules};
use expect_test::expect;
use serde_json::{Value, json};

fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "agent", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

#[test]
fn defaults() {
    check_spec(
        "daemonsets",
        agent(),
        expect![[r#"
        revisionHistoryLimit: 10
        selector: {"matchLabels":{"app":"web"}}
        template: {"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}
        updateStrategy: {"rollingUpdate":{"maxSurge":0,"maxUnavailable":1},"type":"RollingUpdate"}"#]],
    );
}

#[test]
fn printed() {
    let mut agent = agent();
    agent["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    agent["status"] = json!({ "desiredNumberScheduled": 3, "numberReady": 2 });
    check_row(
        "daemonsets",
        agent,
        200,
        expect![[r#"
        Name: agent
        Desired: 3 (number)
        Current: 0 (number)
        Ready: 2 (number)
        Up-to-date: 0 (number)
        Available: 0 (number)
        Node Selector: disk=ssd
        Age: 3m20s
        Containers: web
        Images: web:1
        Selector: app=web"#]],
    );
}

#[test]
fn one_of_surge_and_unavailable_is_zero() {
    for rolling in [
        json!({ "maxUnavailable": 1, "maxSurge": "1%" }),
        json!({ "maxUnavailable": 0 }),
        json!({ "maxUnavailable": "x", "maxSurge": "-3" }),
    ] {
        let mut bad = agent();
        bad["spec"]["updateStrategy"] = json!({ "rollingUpdate": rolling });
        let expected = match &rolling["maxUnavailable"] {
            Value::Number(one) if one.as_i64() == Some(1) => expect![[
                r#"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "1%": may not be set when maxUnavailable is non-zero"#
            ]],
            Value::Number(_) => expect![
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"
            ],
            _ => expect![[r#"
                spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')
                spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "-3": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"#]],
        };
        check_errors("daemonsets", bad, expected);
    }
}

#[test]
fn template_and_strategy() {
    let mut bad = agent();
    bad["spec"]["selector"] = Value::Null;
    bad["spec"]["updateStrategy"] = json!({ "type": "Never" });
    bad["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    bad["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 5.into();
    bad["spec"]["minReadySeconds"] = (-1).into();
    check_errors(
        "daemonsets",
        bad,
        expect![[r#"
        spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
        spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"
        spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported
        spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0
        spec.updateStrategy: Unsupported value: {"Type":"Never","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete""#]],
    );
}

#[test]
fn the_selector_stays_and_collisions_grow() {
    let mut new = agent();
    new["spec"]["selector"]["matchLabels"] = json!({});
    update_errors(
        "daemonsets",
        new,
        agent(),
        Part::Main,
        expect![[r#"
        spec.selector: Invalid value: {}: field is immutable
        spec.selector: Invalid value: {}: empty selector is invalid for daemonset"#]],
    );
    let (mut new, mut old) = (agent(), agent());
    new["status"] = json!({ "numberReady": -1, "collisionCount": 1 });
    old["status"] = json!({ "collisionCount": 2 });
    update_errors(
        "daemonsets",
        new,
        old,
        Part::Status,
        expect![[r#"
        status.numberReady: Invalid value: -1: must be greater than or equal to 0
        status.collisionCount: Invalid value: 1: cannot be decremented"#]],
    );
}

#[test]
fn changes_of_the_template_are_counted() {
    let mut old = defaulted("daemonsets", agent());
    DaemonSet.prepare_create(&mut old);
    assert_eq!(template_generation(&old), Some(1));
    let mut new = old.clone();
    new.set(&["spec", "minReadySeconds"], 3.into());
    DaemonSet.prepare_update(&mut new, &old, Part::Main);
    assert_eq!(template_generation(&new), Some(1));
    assert!(DaemonSet.raises_generation(&new, &old));
    new.set(&["spec", "template", "spec", "nodeName"], "a".into());
    DaemonSet.prepare_update(&mut new, &old, Part::Main);
    assert_eq!(template_generation(&new), Some(2));
}
