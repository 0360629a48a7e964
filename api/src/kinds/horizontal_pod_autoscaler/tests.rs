//! Defaults, validation, printed cells and the two views of an autoscaler.

use super::{Autoscaler, FirstAutoscaler, convert};
use crate::kinds::testing::{check_errors, check_row, check_spec, defaulted, object};
use crate::resource::Rules;
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "horizontalpodautoscalers";

fn web() -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "maxReplicas": 5,
        },
    })
}

#[test]
fn defaults() {
    let mut web = web();
    web["spec"]["behavior"] = json!({ "scaleUp": { "selectPolicy": "Min" } });
    check_spec(
        PLURAL,
        web,
        expect![[r#"
        behavior: {"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Min","stabilizationWindowSeconds":0}}
        maxReplicas: 5
        metrics: [{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}]
        minReplicas: 1
        scaleTargetRef: {"apiVersion":"apps/v1","kind":"Deployment","name":"web"}"#]],
    );
}

#[test]
fn printed() {
    let mut web = web();
    web["spec"]["metrics"] = json!([
        { "type": "Resource", "resource": {
            "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 },
        } },
        { "type": "Pods", "pods": {
            "metric": { "name": "m" }, "target": { "type": "AverageValue", "averageValue": "5" },
        } },
        { "type": "External", "external": {
            "metric": { "name": "e" }, "target": { "type": "Value", "value": "3" },
        } },
    ]);
    web["status"] = json!({ "currentReplicas": 2, "currentMetrics": [
        { "type": "Resource", "resource": {
            "name": "cpu", "current": { "averageUtilization": 20 },
        } },
    ] });
    check_row(
        PLURAL,
        web,
        200,
        expect![[r#"
        Name: web
        Reference: Deployment/web
        Targets: cpu: 20%/50%, <unknown>/5 + 1 more...
        MinPods: 1
        MaxPods: 5 (number)
        Replicas: 2 (number)
        Age: 3m20s"#]],
    );
}

#[test]
fn bounds_target_and_metrics() {
    let mut bad = web();
    bad["spec"]["minReplicas"] = 0.into();
    bad["spec"]["maxReplicas"] = (-1).into();
    bad["spec"]["scaleTargetRef"] = json!({ "apiVersion": "v1", "kind": "a/b" });
    bad["spec"]["metrics"] = json!([
        { "type": "Resource", "resource": { "target": { "averageUtilization": 0 } } },
        { "type": "Pods", "external": { "metric": {}, "target": { "type": "Value", "value": "0" } } },
        { "type": "Some" },
    ]);
    bad["spec"]["behavior"] = json!({ "scaleUp": { "policies": [] }, "scaleDown": {
        "stabilizationWindowSeconds": 9999, "policies": [{ "type": "All", "value": 0 }],
        "tolerance": "-1",
    } });
    check_errors(
        PLURAL,
        bad,
        expect![[r#"
        spec.minReplicas: Invalid value: 0: must be greater than or equal to 1
        spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1
        spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`
        spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain '/'
        spec.scaleTargetRef.name: Required value
        spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group
        spec.metrics[0].resource.name: Required value: must specify a resource name
        spec.metrics[0].resource.target.type: Required value: must specify a metric target type
        spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue
        spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0
        spec.metrics[1].external.metric.name: Required value: must specify a metric name
        spec.metrics[1].external.target.value: Invalid value: "0": must be positive
        spec.metrics[1].pods: Required value: must populate information for the given metric source
        spec.metrics[2].type: Unsupported value: "Some": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
        spec.metrics[2].type: Unsupported value: "Some": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
        spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas
        spec.behavior.scaleUp.policies: Required value: must specify at least one Policy
        spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 9999: must be less than or equal to 3600
        spec.behavior.scaleDown.policies[0].type: Unsupported value: "All": supported values: "Percent", "Pods"
        spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero
        spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 0: must be greater than zero
        spec.behavior.scaleDown.tolerance: Invalid value: "-1": must be greater than or equal to 0"#]],
    );
}

/// What the first version has no field for is in annotations, and comes back from there.
#[test]
fn the_first_version_keeps_everything() {
    let mut web = web();
    web["spec"]["metrics"] = json!([
        { "type": "Resource", "resource": {
            "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 },
        } },
        { "type": "Object", "object": {
            "describedObject": { "kind": "Service", "name": "s" },
            "metric": { "name": "q", "selector": { "matchLabels": { "a": "b" } } },
            "target": { "type": "Value", "value": "10k" },
        } },
    ]);
    web["spec"]["behavior"] = json!({ "scaleUp": { "selectPolicy": "Min" } });
    web["status"] = json!({
        "desiredReplicas": 3, "currentMetrics": [{ "type": "Resource", "resource": {
            "name": "cpu", "current": { "averageUtilization": 20, "averageValue": "10m" },
        } }],
        "conditions": [{ "type": "AbleToScale", "status": "True", "message": "a<b" }],
    });
    let stored = defaulted(PLURAL, web);
    let mut first = stored.clone();
    FirstAutoscaler.from_stored(&mut first);
    expect![[r#"
        {
          "apiVersion": "autoscaling/v1",
          "kind": "HorizontalPodAutoscaler",
          "metadata": {
            "annotations": {
              "autoscaling.alpha.kubernetes.io/behavior": "{\"ScaleUp\":{\"StabilizationWindowSeconds\":0,\"SelectPolicy\":\"Min\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,\"PeriodSeconds\":15},{\"Type\":\"Percent\",\"Value\":100,\"PeriodSeconds\":15}],\"Tolerance\":null},\"ScaleDown\":{\"StabilizationWindowSeconds\":null,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Percent\",\"Value\":100,\"PeriodSeconds\":15}],\"Tolerance\":null}}",
              "autoscaling.alpha.kubernetes.io/conditions": "[{\"type\":\"AbleToScale\",\"status\":\"True\",\"message\":\"a\\u003cb\"}]",
              "autoscaling.alpha.kubernetes.io/current-metrics": "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"currentAverageUtilization\":20,\"currentAverageValue\":\"10m\"}}]",
              "autoscaling.alpha.kubernetes.io/metrics": "[{\"type\":\"Object\",\"object\":{\"target\":{\"kind\":\"Service\",\"name\":\"s\"},\"metricName\":\"q\",\"targetValue\":\"10k\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}}]"
            },
            "creationTimestamp": "1970-01-01T00:00:00Z",
            "name": "web"
          },
          "spec": {
            "maxReplicas": 5,
            "minReplicas": 1,
            "scaleTargetRef": {
              "apiVersion": "apps/v1",
              "kind": "Deployment",
              "name": "web"
            },
            "targetCPUUtilizationPercentage": 50
          },
          "status": {
            "currentCPUUtilizationPercentage": 20,
            "currentReplicas": 0,
            "desiredReplicas": 3
          }
        }"#]].assert_eq(&serde_json::to_string_pretty(first.root()).unwrap());
    FirstAutoscaler.to_stored(&mut first);
    // Of the metrics, CPU comes last now.
    let metrics = first.list(&["spec", "metrics"]).to_vec();
    assert_eq!(metrics[1], stored.list(&["spec", "metrics"])[0]);
    assert_eq!(metrics[0], stored.list(&["spec", "metrics"])[1]);
    for path in [&["spec", "behavior"][..], &["status"], &["metadata"]] {
        assert_eq!(first.get(path), stored.get(path));
    }
}

#[test]
fn a_first_version_without_measure_gets_one() {
    let mut first = object(json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web", "annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": "not JSON", "own": "kept",
        } },
        "spec": { "maxReplicas": 2 },
    }));
    FirstAutoscaler.default(&mut first);
    assert_eq!(
        first.i64(&["spec", "targetCPUUtilizationPercentage"]),
        Some(80)
    );
    assert_eq!(
        first.get(&["metadata", "annotations"]),
        Some(&json!({ "own": "kept" }))
    );
    let stored = convert::stored(&first);
    assert_eq!(stored.api_version(), "autoscaling/v2");
    assert!(!Autoscaler.validate_create(&stored).is_empty());
}
