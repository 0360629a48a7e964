//! Each kind of metric, and targets of any kind.

use super::*;

const CUSTOM: &str = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default";
const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default";
const NOW: &str = "2030-01-01T00:00:00Z";

/// As of a server with custom metrics, and a kind of its own that has a scale.
fn serve_groups(site: &Site) {
    let metrics = site.metrics.clone();
    let group = |name: &str, version: &str| {
        let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let groups = json!({"groups": [
        group("custom.metrics.k8s.io", "v1beta2"), group("example.org", "v2"),
    ]});
    let resource = |name: &str, kind: &str| {
        json!({"name": name, "singularName": "", "kind": kind, "namespaced": true,
               "verbs": ["get"]})
    };
    let example = json!({"groupVersion": "example.org/v2", "resources": [
        resource("databases", "Database"), resource("databases/scale", "Scale"),
    ]});
    site.cluster.on_request(move |method, path| match path {
        _ if *method != Method::GET => None,
        "/apis" | "/apis/" => Some((200, groups.clone())),
        "/apis/example.org/v2" => Some((200, example.clone())),
        "/apis/example.org/v1" => Some((404, json!("404 page not found"))),
        path => metrics.lock().get(path).map(|answer| (200, answer.clone())),
    });
}

fn identified(name: &str) -> Value {
    json!({"name": name, "selector": {"matchLabels": {"verb": "GET"}}})
}

fn of_object(name: &str, value: &str) -> Value {
    json!({"items": [{"describedObject": {"kind": "Any", "name": name}, "timestamp": NOW,
                      "metric": {"name": "load"}, "value": value}]})
}

/// What the autoscaler shows of its metrics once it has asked for `replicas`.
async fn scaled(site: &Site, replicas: i64) -> Value {
    eventually(&format!("{replicas}"), || site.replicas(WEB) == replicas).await;
    eventually("written", || {
        site.status("web")["desiredReplicas"] == replicas
    })
    .await;
    site.status("web")["currentMetrics"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_metric_of_each_pod() {
    let site = two_pods();
    serve_groups(&site);
    let value = |name: &str, value: &str| {
        json!({"describedObject": {"kind": "Pod", "name": name}, "timestamp": NOW,
               "windowSeconds": 60, "metric": {"name": "load"}, "value": value})
    };
    let values = json!({"items": [value("a", "20"), value("b", "10")]});
    site.serve(&format!("{CUSTOM}/pods/*/load"), values);
    site.autoscaler(
        "web",
        json!({"metrics": [{"type": "Pods", "pods": {
        "metric": identified("load"), "target": {"type": "AverageValue", "averageValue": "5"}}}]}),
    );
    let _running = site.run();
    let shown = scaled(&site, 4).await; // Six are wanted, and twice as many let through.
    assert_eq!(
        shown,
        json!({"type": "Pods", "pods": {
            "metric": identified("load"), "current": {"averageValue": "15"}}})
    );
    assert_eq!(
        site.condition("web", "ScalingLimited"),
        "True ScaleUpLimit: the desired replica count is increasing faster than the maximum scale \
         rate"
    );
}

#[tokio::test(start_paused = true)]
async fn a_metric_of_another_object() {
    let described = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "front"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default"});
    for (described, path, target, current, name) in [
        (
            &described,
            "deployments.apps/front/load",
            json!({"type": "Value", "value": "10"}),
            json!({"value": "15"}),
            "Deployment metric load",
        ),
        (
            &namespace,
            "metrics/load",
            json!({"type": "AverageValue", "averageValue": "5"}),
            json!({"averageValue": "7500m"}),
            "external metric load(&LabelSelector{MatchLabels:map[string]string{verb: \
             GET,},MatchExpressions:[]LabelSelectorRequirement{},})",
        ),
    ] {
        let site = two_pods();
        serve_groups(&site);
        site.serve(&format!("{CUSTOM}/{path}"), of_object("front", "15"));
        site.autoscaler(
            "web",
            json!({"metrics": [{"type": "Object", "object": {
            "metric": identified("load"), "describedObject": described, "target": target}}]}),
        );
        let _running = site.run();
        let shown = scaled(&site, 3).await;
        assert_eq!(
            shown,
            json!({"type": "Object", "object": {"metric": identified("load"),
                "describedObject": described, "current": current}})
        );
        let text = format!("Normal New size: 3; reason: {name} above target");
        site.is_told("SuccessfulRescale", &text).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_metric_of_no_object() {
    let site = two_pods();
    let value = |value: &str| json!({"metricName": "jobs", "timestamp": NOW, "value": value});
    let path = format!("{EXTERNAL}/jobs");
    site.serve(&path, json!({"items": [value("20"), value("10")]}));
    site.autoscaler(
        "web",
        json!({"metrics": [{"type": "External", "external": {
        "metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]}),
    );
    let _running = site.run();
    let shown = scaled(&site, 3).await;
    assert_eq!(
        shown,
        json!({"type": "External", "external": {
            "metric": {"name": "jobs"}, "current": {"averageValue": "15"}}})
    );
    let text = "Normal New size: 3; reason: external metric jobs(nil) above target";
    site.is_told("SuccessfulRescale", text).await;
    site.metrics.lock().remove(&path);
    let why = "failed to get jobs external metric: unable to get external metric \
               default/jobs/nil: unable to fetch metrics from external metrics API: the server \
               could not find the requested resource (get jobs.external.metrics.k8s.io)";
    site.is_told("FailedGetExternalMetric", &format!("Warning {why}"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn one_container_of_pods() {
    let site = two_pods();
    let usage = |name: &str| {
        json!({"metadata": {"name": name}, "timestamp": NOW, "window": "30s", "containers": [
            {"name": "main", "usage": {"memory": "2Ki"}},
            {"name": "side", "usage": {"memory": "90Mi"}},
        ]})
    };
    let path = format!("/apis/metrics.k8s.io/v1beta1{DEFAULT}/pods");
    site.serve(&path, json!({"items": [usage("a"), usage("b")]}));
    site.autoscaler(
        "web",
        json!({"metrics": [{"type": "ContainerResource", "containerResource": {
        "name": "memory", "container": "main",
        "target": {"type": "AverageValue", "averageValue": "1Ki"}}}]}),
    );
    let _running = site.run();
    let shown = scaled(&site, 4).await;
    assert_eq!(
        shown,
        json!({"type": "ContainerResource", "containerResource": {
            "name": "memory", "container": "main", "current": {"averageValue": "2Ki"}}})
    );
}

#[tokio::test(start_paused = true)]
async fn where_one_of_several_metrics_fails_the_others_only_add() {
    let site = two_pods();
    site.use_cpu(&[("a", 10), ("b", 10)]);
    let failing = json!({"type": "External", "external": {"metric": {"name": "jobs"},
        "target": {"type": "Value", "value": "10"}}});
    site.autoscaler("web", json!({"metrics": [failing, cpu(50)]}));
    let _running = site.run();
    eventually("cannot say", || {
        site.condition("web", "ScalingActive").starts_with(
            "False FailedGetExternalMetric: the HPA was unable to compute the replica count: \
             failed to get external metric jobs: ",
        )
    })
    .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(site.replicas(WEB), 2);
    assert_eq!(site.status("web")["currentMetrics"][0], json!({"type": ""}));
    assert_eq!(site.status("web")["currentMetrics"][1]["type"], "Resource");
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    eventually("four", || site.replicas(WEB) == 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_of_any_kind_in_any_version_of_its_group() {
    let site = two_pods();
    serve_groups(&site);
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let database = "/apis/example.org/v2/namespaces/default/databases/main";
    site.target(database, 2, "app=web");
    let target = json!({"apiVersion": "example.org/v1", "kind": "Database", "name": "main"});
    site.autoscaler("web", json!({"scaleTargetRef": target}));
    let _running = site.run();
    eventually("four", || site.replicas(database) == 4).await;
}

#[tokio::test(start_paused = true)]
async fn tolerances_of_its_own() {
    let site = two_pods();
    site.use_cpu(&[("a", 520), ("b", 520)]);
    let rules = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]});
    let mut strict = rules.clone();
    strict["tolerance"] = json!("10m");
    site.autoscaler(
        "web",
        json!({"behavior": {"scaleUp": rules, "scaleDown": rules}}),
    );
    let _running = site.run();
    eventually("content", || {
        site.condition("web", "AbleToScale")
            .starts_with("True ReadyForNewScale")
    })
    .await;
    assert_eq!(site.replicas(WEB), 2);
    site.autoscaler(
        "web",
        json!({"behavior": {"scaleUp": strict, "scaleDown": rules}}),
    );
    eventually("three", || site.replicas(WEB) == 3).await;
}
