//! The whole loop against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};
use std::time::Duration;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

fn put_claim(cluster: &FakeCluster, name: &str, words: &[&str]) {
    let mut value = json!(claim(name, words));
    value["metadata"]["resourceVersion"] = Value::Null;
    cluster.api.put(&format!("{CLAIMS}/{name}"), value);
}

fn put_volume(cluster: &FakeCluster, name: &str, words: &[&str]) {
    let mut value = json!(volume(name, words));
    value["metadata"]["resourceVersion"] = Value::Null;
    cluster.api.put(&format!("{VOLUMES}/{name}"), value);
}

fn phase_of(cluster: &FakeCluster, path: &str) -> String {
    let object = cluster.api.get(path).unwrap_or_default();
    object["status"]["phase"].as_str().unwrap_or("").to_owned()
}

/// Claim and volume are one another's, and both say so.
fn are_bound(cluster: &FakeCluster, claim: &str, volume: &str) -> bool {
    let at = format!("{VOLUMES}/{volume}");
    let held = cluster.api.get(&at).unwrap_or_default()["spec"]["claimRef"].clone();
    let named = cluster
        .api
        .get(&format!("{CLAIMS}/{claim}"))
        .unwrap_or_default();
    held["uid"] == json!(format!("u-{claim}"))
        && named["spec"]["volumeName"] == volume
        && named["status"]["phase"] == "Bound"
        && phase_of(cluster, &at) == "Bound"
}

fn told(cluster: &FakeCluster, reason: &str) -> Vec<String> {
    let events = cluster.api.objects("/api/v1/events");
    let those = events.iter().filter(|event| event["reason"] == reason);
    let told = those.map(|event| format!("{} {}", event["type"], event["message"]));
    told.collect()
}

fn run(context: Context) -> BoxFuture<'static, ()> {
    super::super::run(context)
}

#[tokio::test(start_paused = true)]
async fn a_volume_comes_and_goes_with_its_claim() {
    let cluster = FakeCluster::new();
    put_claim(&cluster, "c", &["Pending"]);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || {
        let text = r#""Normal" "no persistent volumes available for this claim and no storage class is set""#;
        told(&cluster, "FailedBinding") == [text]
    })
    .await;
    put_volume(&cluster, "v", &["Pending"]);
    eventually("bound", || are_bound(&cluster, "c", "v")).await;
    cluster.api.delete(&format!("{CLAIMS}/c"));
    let volume = format!("{VOLUMES}/v");
    eventually("released", || phase_of(&cluster, &volume) == "Released").await;
    // The next claim of the name is not the one whose data are on it.
    put_claim(&cluster, "c", &["Pending", "uid=second"]);
    eventually("told again", || {
        let events = cluster.api.objects("/api/v1/events");
        events
            .iter()
            .any(|one| one["involvedObject"]["uid"] == "second")
    })
    .await;
    assert_eq!(phase_of(&cluster, &volume), "Released");
    // Its administrator gives it away again.
    put_volume(&cluster, "v", &["Released"]);
    eventually("available or bound", || {
        cluster.api.get(&format!("{CLAIMS}/c")).unwrap()["spec"]["volumeName"] == "v"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_claims_and_volumes_are_bound_one_to_one() {
    let cluster = FakeCluster::new();
    for number in 0..20 {
        put_claim(&cluster, &format!("c{number}"), &["Pending"]);
        put_volume(&cluster, &format!("v{number}"), &["Pending"]);
    }
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("all bound", || {
        (0..20).all(|number| phase_of(&cluster, &format!("{CLAIMS}/c{number}")) == "Bound")
    })
    .await;
    let volumes = cluster.api.objects(VOLUMES);
    let mut holders: Vec<&str> = volumes
        .iter()
        .map(|one| one["spec"]["claimRef"]["name"].as_str().unwrap())
        .collect();
    holders.sort_unstable();
    holders.dedup();
    assert_eq!(holders.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_default_class_that_comes_later_is_given_to_claims_without_one() {
    let cluster = FakeCluster::new();
    put_claim(&cluster, "c", &["Pending"]);
    put_claim(&cluster, "none", &["Pending", "class="]);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || !told(&cluster, "FailedBinding").is_empty()).await;
    let class = json!(super::class("gold", "example.com/p", &["default"]));
    cluster.api.put(&format!("{CLASSES}/gold"), class);
    eventually("asked", || {
        let claim = cluster.api.get(&format!("{CLAIMS}/c")).unwrap();
        claim["metadata"]["annotations"][volumes::PROVISIONER] == "example.com/p"
            && claim["spec"]["storageClassName"] == "gold"
    })
    .await;
    let none = cluster.api.get(&format!("{CLAIMS}/none")).unwrap();
    assert_eq!(none["spec"]["storageClassName"], "");
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_lost_when_its_volume_is_deleted() {
    let cluster = FakeCluster::new();
    put_claim(&cluster, "c", &["Pending"]);
    put_volume(&cluster, "v", &["Available"]);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("bound", || are_bound(&cluster, "c", "v")).await;
    cluster.api.delete(&format!("{VOLUMES}/v"));
    eventually("lost", || {
        phase_of(&cluster, &format!("{CLAIMS}/c")) == "Lost"
    })
    .await;
    eventually("told", || told(&cluster, "ClaimLost").len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_waits_is_named() {
    let cluster = FakeCluster::new();
    let class = json!(super::class("wait", "example.com/p", &["late"]));
    cluster.api.put(&format!("{CLASSES}/wait"), class);
    put_claim(&cluster, "c", &["Pending", "class=wait"]);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || {
        !told(&cluster, "WaitForFirstConsumer").is_empty()
    })
    .await;
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    let pod = json!({"metadata": {}, "spec": {"containers": [], "volumes": [volume]}});
    cluster.api.put("/api/v1/namespaces/default/pods/web", pod);
    eventually("told", || {
        told(&cluster, "WaitForPodScheduled")
            == [r#""Normal" "waiting for pod web to be scheduled""#]
    })
    .await;
}

/// Two claims, two volumes; one claim goes, and its volume is released.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    put_claim(&cluster, "a", &["Pending"]);
    put_claim(&cluster, "b", &["Pending", "size=2Gi"]);
    put_volume(&cluster, "v", &["Pending"]);
    put_volume(&cluster, "w", &["Pending", "size=2Gi"]);
    let living = spawn_mortal(&cluster, run, death);
    eventually(&format!("bound, {death:?}"), || {
        are_bound(&cluster, "b", "w") && are_bound(&cluster, "a", "v")
    })
    .await;
    cluster.api.break_watches();
    cluster.api.delete(&format!("{CLAIMS}/a"));
    put_claim(&cluster, "c", &["Pending"]);
    cluster.api.compact();
    let first = format!("{VOLUMES}/v");
    eventually(&format!("released, {death:?}"), || {
        phase_of(&cluster, &first) == "Released"
    })
    .await;
    // Whoever comes next does not get what the one before has left.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(are_bound(&cluster, "b", "w"), "{death:?}");
    let held = cluster.api.get(&first).unwrap()["spec"]["claimRef"]["uid"].clone();
    assert_eq!(held, "u-a", "{death:?}");
    let phase = phase_of(&cluster, &format!("{CLAIMS}/c"));
    assert_eq!(phase, "Pending", "{death:?}");
    living.calls.clone()
}

/// Wherever a process dies, the next ends what it began, and no volume is taken twice.
#[tokio::test(start_paused = true)]
async fn bindings_survive_the_binder() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes >= 9, "{writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
