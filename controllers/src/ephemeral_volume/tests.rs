//! Claims come with their pods; against a server in memory.

use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};

const POD: &str = "/api/v1/namespaces/default/pods/web";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/web-scratch";

fn put_pod(cluster: &FakeCluster) {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}}});
    let meta = json!({"labels": {"app": "web"}, "annotations": {"note": "x"}});
    let template = json!({"metadata": meta, "spec": spec});
    let volumes = json!([
        {"name": "config", "emptyDir": {}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
    ]);
    let pod = json!({"metadata": {"uid": "pod-uid"}, "spec": {"containers": [],
        "volumes": volumes}});
    cluster.api.put(POD, pod);
}

fn events(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/api/v1/events")
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_the_claim_of_its_template_and_gets_it_again() {
    let cluster = FakeCluster::new();
    put_pod(&cluster);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("made", || cluster.api.get(CLAIM).is_some()).await;
    let claim = cluster.api.get(CLAIM).unwrap();
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(claim["metadata"]["annotations"], json!({"note": "x"}));
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "pod-uid",
        "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(claim["metadata"]["ownerReferences"], owner);
    cluster.api.delete(CLAIM);
    eventually("made again", || cluster.api.get(CLAIM).is_some()).await;
    assert!(events(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn anothers_claim_is_left_alone_until_it_is_gone() {
    let cluster = FakeCluster::new();
    cluster
        .api
        .put(CLAIM, json!({"metadata": {"uid": "other"}, "spec": {}}));
    put_pod(&cluster);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || !events(&cluster).is_empty()).await;
    let event = &events(&cluster)[0];
    assert_eq!(event["reason"], "FailedBinding");
    assert_eq!(event["type"], "Warning");
    assert_eq!(
        event["message"],
        "ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web \
         (pod is not owner)"
    );
    assert_eq!(cluster.api.get(CLAIM).unwrap()["metadata"]["uid"], "other");
    cluster.api.delete(CLAIM);
    eventually("made", || {
        let claim = cluster.api.get(CLAIM).unwrap_or_default();
        claim["metadata"]["ownerReferences"][0]["uid"] == "pod-uid"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_in_the_servers_words() {
    let cluster = FakeCluster::new();
    cluster.on_request(|method, path| {
        let is_creation = *method == http::Method::POST && path.ends_with("claims");
        is_creation.then(|| (403, crate::fake_cluster::failure(403, "exceeded quota")))
    });
    put_pod(&cluster);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || !events(&cluster).is_empty()).await;
    assert_eq!(
        events(&cluster)[0]["message"],
        "ephemeral volume scratch: create PVC web-scratch: exceeded quota"
    );
}

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

/// A pod of two volumes; one claim is deleted, and the pod replaced by one of its name.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    let pod = |uid: &str| {
        let volume = |name: &str| {
            let template = json!({"spec": {"accessModes": ["ReadWriteOnce"]}});
            json!({"name": name, "ephemeral": {"volumeClaimTemplate": template}})
        };
        json!({"metadata": {"uid": uid},
            "spec": {"containers": [], "volumes": [volume("one"), volume("two")]}})
    };
    let is_of = |name: &str, uid: &str| {
        let claim = cluster.api.get(&format!("{CLAIMS}/web-{name}"));
        claim.unwrap_or_default()["metadata"]["ownerReferences"][0]["uid"] == uid
    };
    cluster.api.put(POD, pod("first"));
    let living = spawn_mortal(&cluster, run, death);
    eventually(&format!("both, {death:?}"), || {
        is_of("one", "first") && is_of("two", "first")
    })
    .await;
    cluster.api.break_watches();
    cluster.api.delete(&format!("{CLAIMS}/web-one"));
    eventually(&format!("again, {death:?}"), || is_of("one", "first")).await;
    assert!(is_of("two", "first"), "{death:?}");
    // The watches do not show that it was gone.
    cluster.api.break_watches();
    cluster.api.delete(POD);
    for name in ["one", "two"] {
        cluster.api.delete(&format!("{CLAIMS}/web-{name}"));
    }
    cluster.api.put(POD, pod("second"));
    cluster.api.compact();
    // As the garbage collector does: what was made before it was seen that the first is gone.
    let collect = || {
        for name in ["one", "two"] {
            if is_of(name, "first") {
                cluster.api.delete(&format!("{CLAIMS}/web-{name}"));
            }
        }
    };
    eventually(&format!("the second's, {death:?}"), || {
        collect();
        is_of("one", "second") && is_of("two", "second")
    })
    .await;
    // What is there already is not told to be in the way because the copy does not show it yet.
    let told = events(&cluster);
    let is_own = |event: &Value| event["message"].as_str().unwrap().contains("create PVC");
    assert!(!told.iter().any(is_own), "{death:?} {told:?}");
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_each_volume_has_the_claim_of_its_own_pod() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes >= 5, "{writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
