//! Get, create, update, and what is refused.

use super::site::{CONFIG_MAPS, config_map, site};
use serde_json::json;

#[tokio::test]
async fn a_created_object_has_an_identity_and_reads_back_as_it_was_answered() {
    let site = site().await;
    let mut asked = config_map("a", "1");
    asked["metadata"]["uid"] = "mine".into();
    asked["metadata"]["generation"] = 7.into();
    let created = site.post(CONFIG_MAPS, &asked).await;
    assert_eq!(created.status, 201);
    let created = created.json();
    let metadata = &created["metadata"];
    assert_eq!(metadata["creationTimestamp"], "2026-06-01T00:00:00Z");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_eq!(metadata["generation"], 7);
    let read = site.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(read, created);
    assert_eq!(
        site.post(CONFIG_MAPS, &config_map("a", "1"))
            .await
            .failure(),
        "409 AlreadyExists: configmaps \"a\" already exists"
    );
    assert_eq!(
        site.get(&format!("{CONFIG_MAPS}/b")).await.failure(),
        "404 NotFound: configmaps \"b\" not found"
    );
}

#[tokio::test]
async fn a_name_is_generated_and_dry_runs_write_nothing() {
    let site = site().await;
    let asked = json!({ "metadata": { "generateName": "web-" }, "data": {} });
    let dry = site
        .post(&format!("{CONFIG_MAPS}?dryRun=All"), &asked)
        .await
        .ok();
    let name = dry["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert!(dry["metadata"]["resourceVersion"].is_null());
    assert_eq!(site.get(&format!("{CONFIG_MAPS}/{name}")).await.status, 404);
    let path = format!("{CONFIG_MAPS}?dryRun=Some");
    assert_eq!(
        site.post(&path, &asked).await.failure(),
        "422 Invalid: CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \
         [\"Some\"]: supported values: \"All\""
    );
}

#[tokio::test]
async fn an_update_checks_the_version_and_writes_only_changes() {
    let site = site().await;
    let created = site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    let same = site.put(&path, &config_map("a", "1")).await.ok();
    assert_eq!(same, created);
    let changed = site.put(&path, &config_map("a", "2")).await.ok();
    assert_ne!(
        changed["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
    assert_eq!(changed["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(
        site.put(&path, &created).await.failure(),
        "409 Conflict: Operation cannot be fulfilled on configmaps \"a\": the object has been \
         modified; please apply your changes to the latest version and try again"
    );
    let mut foreign = config_map("a", "3");
    foreign["metadata"]["uid"] = "other".into();
    assert_eq!(site.put(&path, &foreign).await.status, 409);
    let other = site.put(&path, &config_map("b", "3")).await;
    assert_eq!(
        other.failure(),
        "400 BadRequest: the name of the object (b) does not match the name on the URL (a)"
    );
    let absent = format!("{CONFIG_MAPS}/c");
    assert_eq!(site.put(&absent, &config_map("c", "1")).await.status, 404);
}

#[tokio::test]
async fn bad_requests_get_the_right_4xx() {
    let site = site().await;
    let raw = |kind: &'static str, body: Vec<u8>| site.ask("POST", CONFIG_MAPS, kind, body);
    assert_eq!(
        raw("application/json", b"{\"a\"".to_vec()).await.status,
        400
    );
    assert_eq!(raw("text/html", b"{}".to_vec()).await.status, 415);
    let large = vec![b' '; 3 * 1024 * 1024 + 1];
    let large = raw("application/json", large).await;
    assert_eq!(large.status, 413);
    assert_eq!(large.json()["reason"], "RequestEntityTooLarge");
    let mut bad_name = config_map("A_b", "1");
    assert_eq!(site.post(CONFIG_MAPS, &bad_name).await.status, 422);
    bad_name["kind"] = "Secret".into();
    assert_eq!(site.post(CONFIG_MAPS, &bad_name).await.status, 400);
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    assert_eq!(
        site.post(nowhere, &config_map("a", "1")).await.failure(),
        "404 NotFound: namespaces \"nowhere\" not found"
    );
    assert_eq!(
        site.get("/api/v1/namespaces/default/things").await.status,
        404
    );
    assert_eq!(site.get("/nothing/here").await.status, 404);
    let put = site.put(CONFIG_MAPS, &config_map("a", "1")).await;
    assert_eq!(put.status, 405);
    assert_eq!(site.get_as(CONFIG_MAPS, "image/png").await.status, 406);
}

#[tokio::test]
async fn unknown_fields_are_refused_warned_of_or_dropped() {
    let site = site().await;
    let mut asked = config_map("a", "1");
    asked["dta"] = json!({});
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let refused = site.post(&strict, &asked).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .failure()
            .contains("strict decoding error: unknown field \"dta\"")
    );
    let warned = site.post(CONFIG_MAPS, &asked).await;
    assert_eq!(
        warned.headers["warning"],
        "299 - \"unknown field \\\"dta\\\"\""
    );
    assert!(warned.ok()["dta"].is_null());
    asked["metadata"]["name"] = "b".into();
    let ignored = site
        .post(&format!("{CONFIG_MAPS}?fieldValidation=Ignore"), &asked)
        .await;
    assert!(!ignored.headers.contains_key("warning"));
}

#[tokio::test]
async fn what_every_cluster_has_is_there() {
    let site = site().await;
    let service = site
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await
        .ok();
    assert_eq!(service["spec"]["clusterIP"], "10.43.0.1");
    let endpoints = site
        .get("/api/v1/namespaces/default/endpoints/kubernetes")
        .await
        .ok();
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "192.0.2.7");
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    assert_eq!(site.get(slices).await.ok()["addressType"], "IPv4");
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let namespace = site.get(&format!("/api/v1/namespaces/{name}")).await.ok();
        assert_eq!(namespace["status"]["phase"], "Active");
    }
    let class = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical";
    assert_eq!(site.get(class).await.ok()["value"], 2_000_001_000);
}
