//! What a namespace has no room for.

use super::site::{CONFIG_MAPS, Site, config_map, site};
use expect_test::expect;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A quota in force, as the controller would leave it.
pub async fn in_force(site: &Site, name: &str, spec: Value, used: Value) {
    let quota = json!({ "metadata": { "name": name }, "spec": spec });
    let mut quota = site.post(QUOTAS, &quota).await.ok();
    quota["status"] = json!({ "hard": quota["spec"]["hard"], "used": used });
    site.put(&format!("{QUOTAS}/{name}/status"), &quota)
        .await
        .ok();
}

async fn used(site: &Site, name: &str) -> Value {
    let quota = site.get(&format!("{QUOTAS}/{name}")).await.ok();
    quota["status"]["used"].clone()
}

fn pod(name: &str, cpu: &str) -> Value {
    let container = json!({
        "name": "c", "image": "a", "resources": { "requests": { "cpu": cpu } },
    });
    json!({ "metadata": { "name": name }, "spec": { "containers": [container] } })
}

async fn with_account() -> Site {
    let site = site().await;
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    site.post(accounts, &account).await.ok();
    site
}

#[tokio::test]
async fn writes_are_charged_until_there_is_no_room() {
    let site = with_account().await;
    let hard = json!({ "hard": { "requests.cpu": "1", "pods": "5" } });
    let nothing = json!({ "requests.cpu": "0", "pods": "0" });
    in_force(&site, "q", hard, nothing).await;
    site.post(PODS, &pod("a", "600m")).await.ok();
    let charged = json!({ "requests.cpu": "600m", "pods": "1" });
    assert_eq!(used(&site, "q").await, charged);
    // On trial.
    let trial = format!("{PODS}?dryRun=All");
    site.post(&trial, &pod("b", "400m")).await.ok();
    assert_eq!(used(&site, "q").await, charged);
    let refused = site.post(&trial, &pod("b", "500m")).await;
    let exceeded = expect![[
        r#"403 Forbidden: pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"#
    ]];
    exceeded.assert_eq(&refused.failure());
    let refused = site.post(PODS, &pod("b", "500m")).await;
    exceeded.assert_eq(&refused.failure());
    let silent = json!({
        "metadata": { "name": "b" }, "spec": { "containers": [{ "name": "c", "image": "a" }] },
    });
    expect![[
        r#"403 Forbidden: pods "b" is forbidden: failed quota: q: must specify requests.cpu for: c"#
    ]]
    .assert_eq(&site.post(PODS, &silent).await.failure());
    // What fails for another reason costs nothing.
    assert_eq!(site.post(PODS, &pod("a", "100m")).await.status, 409);
    assert_eq!(used(&site, "q").await, charged);
    // The charge has its manager, as upstream's has.
    let quota = site.get(&format!("{QUOTAS}/q")).await.ok();
    let managers = quota["metadata"]["managedFields"].as_array().unwrap();
    let of_status = |one: &&Value| one["subresource"] == "status";
    let names = managers.iter().filter(of_status);
    let names: Vec<&str> = names.filter_map(|one| one["manager"].as_str()).collect();
    assert!(names.contains(&"kube-apiserver"), "{names:?}");
}

#[tokio::test]
async fn a_quota_that_is_not_in_force_yet_stops_nothing() {
    let site = site().await;
    let quota = json!({
        "metadata": { "name": "q" }, "spec": { "hard": { "count/configmaps": "0" } },
    });
    site.post(QUOTAS, &quota).await.ok();
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
}

#[tokio::test]
async fn every_quota_that_counts_an_object_is_charged_or_none() {
    let site = site().await;
    let hard = |count: &str| json!({ "hard": { "count/configmaps": count } });
    let nothing = json!({ "count/configmaps": "0" });
    in_force(&site, "large", hard("5"), nothing.clone()).await;
    in_force(&site, "small", hard("1"), nothing.clone()).await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let refused = site.post(CONFIG_MAPS, &config_map("b", "1")).await;
    assert_eq!(refused.status, 403, "{}", refused.failure());
    let one = json!({ "count/configmaps": "1" });
    assert_eq!(used(&site, "large").await, one);
    assert_eq!(used(&site, "small").await, one);
    // An update adds nothing.
    let changed = config_map("a", "2");
    site.put(&format!("{CONFIG_MAPS}/a"), &changed).await.ok();
    assert_eq!(used(&site, "large").await, one);
}

#[tokio::test]
async fn a_service_that_takes_node_ports_is_charged_for_them() {
    let site = site().await;
    let hard = json!({ "hard": { "services": "2", "services.nodeports": "1" } });
    let nothing = json!({ "services": "0", "services.nodeports": "0" });
    in_force(&site, "q", hard, nothing).await;
    let service = |name: &str, kind: &str| {
        let ports = json!([{ "port": 80, "protocol": "TCP" }]);
        json!({ "metadata": { "name": name }, "spec": { "type": kind, "ports": ports } })
    };
    for name in ["a", "b"] {
        site.post(SERVICES, &service(name, "ClusterIP")).await.ok();
    }
    let to_node_port = json!({ "spec": { "type": "NodePort" } });
    let path = |name: &str| format!("{SERVICES}/{name}");
    let patch = async |name: &str| site.patch(&path(name), "merge-patch", &to_node_port).await;
    patch("a").await.ok();
    let full = json!({ "services": "2", "services.nodeports": "1" });
    assert_eq!(used(&site, "q").await, full);
    expect![[
        r#"403 Forbidden: services "b" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1"#
    ]]
    .assert_eq(&patch("b").await.failure());
    let third = site.post(SERVICES, &service("c", "ClusterIP")).await;
    assert_eq!(third.status, 403);
}

/// Fifty at once where there is room for twenty, while somebody else rewrites the quota's status
/// and so has every charge weighed anew that it gets ahead of.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_room_is_given_twice_to_creators_that_race() {
    const CREATORS: usize = 50;
    const ROOM: usize = 20;
    let site = std::sync::Arc::new(site().await);
    let hard = json!({ "hard": { "count/configmaps": ROOM.to_string() } });
    in_force(&site, "q", hard, json!({ "count/configmaps": "0" })).await;
    let mut creators = tokio::task::JoinSet::new();
    for number in 0..CREATORS {
        let site = site.clone();
        creators.spawn(async move {
            let name = format!("m{number}");
            let created = site.post(CONFIG_MAPS, &config_map(&name, "1")).await;
            created.status.as_u16()
        });
    }
    let meddler = {
        let site = site.clone();
        tokio::spawn(async move {
            let path = format!("{QUOTAS}/q");
            for round in 0_u32.. {
                let label = json!({ "metadata": { "labels": { "round": round.to_string() } } });
                site.patch(&path, "merge-patch", &label).await.ok();
            }
        })
    };
    let mut codes = BTreeMap::new();
    while let Some(code) = creators.join_next().await {
        *codes.entry(code.unwrap()).or_insert(0) += 1;
    }
    meddler.abort();
    assert_eq!(codes, BTreeMap::from([(201, ROOM), (403, CREATORS - ROOM)]));
    let room = ROOM.to_string();
    assert_eq!(used(&site, "q").await, json!({ "count/configmaps": room }));
    let maps = site.get(CONFIG_MAPS).await.ok();
    assert_eq!(maps["items"].as_array().unwrap().len(), ROOM);
}
