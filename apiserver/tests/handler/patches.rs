//! The three kinds of patch; status, scale and binding.

use super::site::{CONFIG_MAPS, config_map, site};
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "a" }] },
            },
        },
    })
}

#[tokio::test]
async fn each_kind_of_patch_is_applied() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    let merge = json!({ "data": { "more": "x" } });
    let merged = site.patch(&path, "merge-patch", &merge).await.ok();
    assert_eq!(merged["data"], json!({ "key": "1", "more": "x" }));
    let steps = json!([{ "op": "remove", "path": "/data/key" }]);
    let patched = site.patch(&path, "json-patch", &steps).await.ok();
    assert_eq!(patched["data"], json!({ "more": "x" }));
    let again = site.patch(&path, "json-patch", &steps).await;
    assert_eq!(again.status, 422);
    assert_eq!(site.patch(&path, "made-up", &merge).await.status, 415);
    let absent = format!("{CONFIG_MAPS}/b");
    assert_eq!(site.patch(&absent, "merge-patch", &merge).await.status, 404);
    let unknown = json!({ "dta": {} });
    let strict = format!("{path}?fieldValidation=Strict");
    let refused = site.patch(&strict, "merge-patch", &unknown).await;
    assert!(refused.status.is_client_error());
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_key_and_counts_a_generation() {
    let site = site().await;
    let created = site.post(DEPLOYMENTS, &deployment()).await.ok();
    assert_eq!(created["metadata"]["generation"], 1);
    let containers = json!([{ "name": "web", "image": "b" }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let path = format!("{DEPLOYMENTS}/web");
    let patched = site
        .patch(&path, "strategic-merge-patch", &patch)
        .await
        .ok();
    let container = &patched["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "b");
    assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(patched["metadata"]["generation"], 2);
}

/// An empty selector takes all and no selector takes none, so it is a change like any other.
#[tokio::test]
async fn what_is_empty_is_written_where_it_says_something() {
    let site = site().await;
    let policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let web = json!({ "matchLabels": { "app": "web" } });
    let narrow = json!({ "podSelector": web });
    let wide = json!({ "podSelector": web, "namespaceSelector": {} });
    let of =
        |peer: &Value| json!({ "spec": { "podSelector": {}, "ingress": [{ "from": [peer] }] } });
    let mut policy = of(&wide);
    policy["metadata"] = json!({ "name": "p" });
    let path = format!("{policies}/p?fieldManager=m");
    site.post(&format!("{policies}?fieldManager=m"), &policy)
        .await
        .ok();
    site.patch(&path, "merge-patch", &of(&narrow)).await.ok();
    let kept = site.get(&path).await.ok();
    assert_eq!(
        kept["spec"]["ingress"][0]["from"][0], narrow,
        "pods of this namespace alone now"
    );
    assert_eq!(kept["metadata"]["generation"], 2);
}

#[tokio::test]
async fn the_status_and_the_rest_are_written_apart() {
    let site = site().await;
    site.post(DEPLOYMENTS, &deployment()).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let both = json!({ "spec": { "replicas": 9 }, "status": { "replicas": 3 } });
    let status = format!("{path}/status");
    let patched = site.patch(&status, "merge-patch", &both).await.ok();
    assert_eq!(patched["spec"]["replicas"], 2);
    assert_eq!(patched["status"]["replicas"], 3);
    let patched = site
        .patch(&path, "merge-patch", &json!({ "status": null }))
        .await
        .ok();
    assert_eq!(patched["status"]["replicas"], 3);
    let annotated = json!({ "metadata": { "annotations": { "a": "b" } } });
    let patched = site.patch(&status, "merge-patch", &annotated).await.ok();
    assert_eq!(patched["metadata"]["annotations"]["a"], "b");
    assert_eq!(patched["metadata"]["generation"], 1);
    let patched = site.patch(&path, "merge-patch", &annotated).await.ok();
    assert_eq!(patched["metadata"]["generation"], 1);
    let annotated = json!({ "metadata": { "annotations": { "a": "c" } } });
    let patched = site.patch(&path, "merge-patch", &annotated).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_patch_that_leaves_no_object_of_the_type_is_at_fault_itself() {
    let site = site().await;
    site.post(DEPLOYMENTS, &deployment()).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let patch = json!({ "spec": { "replicas": "x" } });
    let answer = site.patch(&path, "merge-patch", &patch).await;
    assert_eq!(answer.status, 422);
    let status = answer.json();
    assert_eq!(status["details"]["name"], serde_json::Value::Null);
    assert_eq!(status["details"]["causes"][0]["field"], "patch");
}

#[tokio::test]
async fn a_scale_is_read_and_written() {
    let site = site().await;
    site.post(DEPLOYMENTS, &deployment()).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let mut scale = site.get(&path).await.ok();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["spec"]["replicas"], 2);
    let as_table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = site.get_as(&path, as_table).await.ok();
    let names: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert_eq!(table["rows"][0]["cells"][1], 2);
    scale["spec"]["replicas"] = 5.into();
    assert_eq!(site.put(&path, &scale).await.ok()["spec"]["replicas"], 5);
    let patch = json!({ "spec": { "replicas": 1 } });
    site.patch(&path, "merge-patch", &patch).await.ok();
    let deployment = site.get(&format!("{DEPLOYMENTS}/web")).await.ok();
    assert_eq!(deployment["spec"]["replicas"], 1);
    scale["spec"]["replicas"] = (-1).into();
    scale["metadata"]["resourceVersion"] = "".into();
    assert_eq!(site.put(&path, &scale).await.status, 422);
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let site = site().await;
    let namespace = "/api/v1/namespaces/default";
    let account = json!({ "metadata": { "name": "default" } });
    site.post(&format!("{namespace}/serviceaccounts"), &account)
        .await
        .ok();
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    site.post(&format!("{namespace}/pods"), &pod).await.ok();
    let binding = json!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n" } });
    let path = format!("{namespace}/pods/a/binding");
    let bound = site.post(&path, &binding).await;
    assert_eq!(bound.status, 201);
    let pod = site.get(&format!("{namespace}/pods/a")).await.ok();
    assert_eq!(pod["spec"]["nodeName"], "n");
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|one| one["type"] == "PodScheduled" && one["status"] == "True")
    );
    assert_eq!(
        site.post(&path, &binding).await.failure(),
        "409 Conflict: Operation cannot be fulfilled on pods/binding \"a\": pod a is already \
         assigned to node \"n\""
    );
}
