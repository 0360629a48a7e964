//! Defaults, printed cells, validation and generations of a Deployment.

use crate::kinds::testing::{check_errors, check_row, check_spec, object, update_errors};
use crate::resource::{Part, Rules};
use expect_test::expect;
use serde_json::{Value, json};

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "creationTimestamp": "1970-01-01T00:00:00Z",
        },
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
fn defaults_of_a_minimal_deployment() {
    check_spec(
        "deployments",
        web(),
        expect![[r#"
        progressDeadlineSeconds: 600
        replicas: 1
        revisionHistoryLimit: 10
        selector: {"matchLabels":{"app":"web"}}
        strategy: {"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}
        template: {"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}"#]],
    );
}

#[test]
fn printed() {
    let mut deployment = web();
    deployment["status"] = json!({ "readyReplicas": 1, "updatedReplicas": 1 });
    check_row(
        "deployments",
        deployment,
        200,
        expect![[r#"
        Name: web
        Ready: 1/1
        Up-to-date: 1 (number)
        Available: 0 (number)
        Age: 3m20s
        Containers: web
        Images: web:1
        Selector: app=web"#]],
    );
}

#[test]
fn selector_strategy_and_deadlines() {
    let mut bad = web();
    bad["spec"]["replicas"] = (-1).into();
    bad["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    bad["spec"]["strategy"] = json!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "0%" } });
    bad["spec"]["minReadySeconds"] = 600.into();
    bad["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    check_errors(
        "deployments",
        bad,
        expect![[r#"
        spec.replicas: Invalid value: -1: must be greater than or equal to 0
        spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
        spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"
        spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0
        spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"#]],
    );

    let mut bad = web();
    bad["spec"]["selector"] = json!({});
    bad["spec"]["strategy"] = json!({ "type": "Recreate", "rollingUpdate": {} });
    check_errors(
        "deployments",
        bad,
        expect![[r#"
        spec.selector: Invalid value: {}: empty selector is invalid for deployment
        spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"#]],
    );

    let mut bad = web();
    bad["spec"]["selector"] = Value::Null;
    bad["spec"]["strategy"] =
        json!({ "rollingUpdate": { "maxUnavailable": "120%", "maxSurge": "x" } });
    check_errors(
        "deployments",
        bad,
        expect![[r#"
            spec.selector: Required value
            spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
            spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')
            spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "120%": must not be greater than 100%"#]],
    );
}

#[test]
fn the_selector_stays() {
    let mut new = web();
    new["spec"]["selector"]["matchLabels"] = json!({ "app": "web", "tier": "front" });
    new["spec"]["template"]["metadata"]["labels"]["tier"] = "front".into();
    update_errors(
        "deployments",
        new,
        web(),
        Part::Main,
        expect![[
            r#"spec.selector: Invalid value: {"matchLabels":{"app":"web","tier":"front"}}: field is immutable"#
        ]],
    );
}

#[test]
fn a_status_counts_pods() {
    let mut new = web();
    new["status"] = json!({ "replicas": 1, "readyReplicas": 2, "availableReplicas": 3 });
    update_errors(
        "deployments",
        new,
        web(),
        Part::Status,
        expect![[r#"
        status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas
        status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas
        status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas"#]],
    );
}

#[test]
fn spec_and_annotations_raise_the_generation() {
    let old = object(web());
    let mut new = old.clone();
    new.set(&["status", "replicas"], 3.into());
    assert!(!super::Deployment.raises_generation(&new, &old));
    new.set(&["metadata", "annotations", "a"], "b".into());
    assert!(super::Deployment.raises_generation(&new, &old));
}
