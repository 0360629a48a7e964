//! `metrics.k8s.io` where no node is connected, and where it is left out.

use super::site::{Site, site, site_without_metrics};
use coracle_apiserver::authenticate::User;
use serde_json::{Value, json};

const GROUP: &str = "/apis/metrics.k8s.io/v1beta1";

async fn with_pod(site: &Site) {
    site.post("/api/v1/nodes", &json!({ "metadata": { "name": "n" } }))
        .await
        .ok();
    let account = json!({ "metadata": { "name": "default" } });
    site.post("/api/v1/namespaces/default/serviceaccounts", &account)
        .await
        .ok();
    let pod = json!({ "metadata": { "name": "p" }, "spec": {
        "nodeName": "n", "containers": [{ "name": "a", "image": "a" }],
    } });
    site.post("/api/v1/namespaces/default/pods", &pod)
        .await
        .ok();
}

#[tokio::test]
async fn what_is_not_measured_is_not_listed_and_not_found_in_metrics_servers_words() {
    let site = site().await;
    with_pod(&site).await;
    for (path, kind) in [("nodes", "Node"), ("pods", "Pod")] {
        let list = site.get(&format!("{GROUP}/{path}")).await.ok();
        assert_eq!(list["kind"], format!("{kind}MetricsList"));
        assert_eq!(list["items"], json!([]));
    }
    for (path, failure) in [
        (
            "namespaces/default/pods/p",
            "podmetrics.metrics.k8s.io \"default/p\" not found",
        ),
        ("namespaces/default/pods/q", "pods \"q\" not found"),
        ("nodes/n", "nodemetrics.metrics.k8s.io \"n\" not found"),
        ("nodes/m", "nodes \"m\" not found"),
    ] {
        let answer = site.get(&format!("{GROUP}/{path}")).await;
        assert_eq!(answer.failure(), format!("404 NotFound: {failure}"));
    }
}

#[tokio::test]
async fn selectors_are_looked_at_as_for_any_list() {
    let site = site().await;
    let wrong = [
        ("labelSelector=%3D%3D", 400),
        ("fieldSelector=spec.nodeName%3Dn", 400),
        ("fieldSelector=metadata.name%3Dn&labelSelector=a", 200),
    ];
    for (query, code) in wrong {
        let answer = site.get(&format!("{GROUP}/pods?{query}")).await;
        assert_eq!(answer.status, code, "{query}");
    }
    let posted = site.post(&format!("{GROUP}/nodes"), &json!({})).await;
    assert_eq!(posted.status, 405);
}

#[tokio::test]
async fn a_table_has_metrics_servers_columns() {
    let site = site().await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let answer = site.get_as(&format!("{GROUP}/pods"), table).await.ok();
    let columns = answer["columnDefinitions"].as_array().unwrap().iter();
    let names: Vec<&str> = columns.filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["Name", "cpu", "memory", "Window"]);
}

#[tokio::test]
async fn who_may_view_may_read_what_pods_use() {
    let site = site().await;
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregated-metrics-reader";
    let labels = &site.get(role).await.ok()["metadata"]["labels"];
    for to in ["admin", "edit", "view"] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
        assert_eq!(labels[&label], "true");
    }
    let path = format!("{GROUP}/nodes");
    let user = User::named("jane");
    let refused = site.ask_as(&user, "GET", &path, "json", &Value::Null).await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn left_out_it_is_nowhere() {
    let site = site_without_metrics().await;
    for path in [
        "/apis/metrics.k8s.io",
        GROUP,
        &format!("{GROUP}/pods"),
        &format!("{GROUP}/namespaces/default/pods/p"),
        "/openapi/v3/apis/metrics.k8s.io/v1beta1",
    ] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for (path, accept) in [
        ("/apis", "application/json"),
        ("/apis", aggregated),
        ("/openapi/v3", "application/json"),
        ("/", "application/json"),
    ] {
        let answer = site.get_as(path, accept).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200);
        assert!(text.contains("resource.k8s.io"), "{path} {accept}");
        assert!(!text.contains("metrics.k8s.io"), "{path} {accept}");
    }
}
