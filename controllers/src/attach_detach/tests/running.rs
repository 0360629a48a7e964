//! The loop against a server in memory; the test is the driver's attacher.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

fn cluster() -> FakeCluster {
    let cluster = FakeCluster::new();
    for name in ["a", "b"] {
        cluster
            .api
            .put(&format!("/api/v1/nodes/{name}"), node(name, &[]));
    }
    cluster
        .api
        .put("/api/v1/persistentvolumes/v", volume("v", &[]));
    let claim = json!({"metadata": {"uid": "u-v"}, "spec": {"volumeName": "v"}});
    cluster
        .api
        .put("/api/v1/namespaces/default/persistentvolumeclaims/v", claim);
    cluster
}

fn put_pod(cluster: &FakeCluster, name: &str, on: &str) {
    let on = format!("on={on}");
    let path = format!("/api/v1/namespaces/default/pods/{name}");
    cluster.api.put(&path, pod(name, "v", &[&on]));
}

/// The node of each attachment.
fn attached_to(cluster: &FakeCluster) -> Vec<String> {
    let all = cluster.api.objects(ATTACHMENTS);
    let nodes = all
        .iter()
        .map(|one| one["spec"]["nodeName"].as_str().unwrap().to_owned());
    nodes.collect()
}

/// What the attacher says of the only attachment.
fn attach(cluster: &FakeCluster) {
    let mut only = cluster.api.objects(ATTACHMENTS).remove(0);
    only["status"] = json!({"attached": true});
    let name = only["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.api.put(&format!("{ATTACHMENTS}/{name}"), only);
}

fn noted(cluster: &FakeCluster, node: &str) -> usize {
    let node = cluster.api.get(&format!("/api/v1/nodes/{node}")).unwrap();
    node["status"]["volumesAttached"]
        .as_array()
        .map_or(0, Vec::len)
}

fn use_volume(cluster: &FakeCluster, name: &str, is_used: bool) {
    let path = format!("/api/v1/nodes/{name}");
    let mut node = cluster.api.get(&path).unwrap();
    let used = if is_used {
        json!(["kubernetes.io/csi/d^h-v"])
    } else {
        json!([])
    };
    node["status"]["volumesInUse"] = used;
    cluster.api.put(&path, node);
}

/// Type, reason and message of each event, in order of their names.
fn told(cluster: &FakeCluster) -> Vec<String> {
    let events = cluster.api.objects("/api/v1/events");
    let told = events.iter().map(|event| {
        let text = |field: &str| event[field].as_str().unwrap().to_owned();
        format!("{} {} {}", text("type"), text("reason"), text("message"))
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

#[tokio::test(start_paused = true)]
async fn a_volume_follows_its_pod_once_the_node_has_let_go() {
    let cluster = cluster();
    put_pod(&cluster, "p", "a");
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("attached", || attached_to(&cluster) == ["a"]).await;
    let name = cluster.api.objects(ATTACHMENTS)[0]["metadata"]["name"].clone();
    // Upstream's: the sum of handle, driver and node.
    let known = "csi-c9089c80e710230c12d1008df084317ad3bb6aa7b029b5da842d7b7047da5061";
    assert_eq!(name, known);
    assert_eq!(noted(&cluster, "a"), 0);
    attach(&cluster);
    eventually("noted", || noted(&cluster, "a") == 1).await;
    let attached = "Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume \"v\" ";
    eventually("told", || told(&cluster) == [attached]).await;
    use_volume(&cluster, "a", true);

    put_pod(&cluster, "q", "b");
    let refused = "Warning FailedAttachVolume Multi-Attach error for volume \"v\" Volume is \
                   already used by pod(s) p";
    eventually("told", || told(&cluster) == [attached, refused]).await;
    cluster.api.delete("/api/v1/namespaces/default/pods/p");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(attached_to(&cluster), ["a"]);
    use_volume(&cluster, "a", false);
    eventually("moved", || attached_to(&cluster) == ["b"]).await;
    assert_eq!(noted(&cluster, "a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_lost_gives_up_its_volumes_after_six_minutes() {
    let cluster = cluster();
    put_pod(&cluster, "p", "a");
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("attached", || attached_to(&cluster) == ["a"]).await;
    attach(&cluster);
    eventually("noted", || noted(&cluster, "a") == 1).await;
    cluster
        .api
        .put("/api/v1/nodes/a", node("a", &["away", "uses=v", "has=v"]));
    cluster.api.delete("/api/v1/namespaces/default/pods/p");
    tokio::time::sleep(Duration::from_secs(350)).await;
    assert_eq!(attached_to(&cluster), ["a"]);
    eventually("detached", || attached_to(&cluster).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn volumes_of_drivers_that_attach_nothing_are_left_alone() {
    let cluster = cluster();
    let driver = json!({"metadata": {}, "spec": {"attachRequired": false}});
    cluster
        .api
        .put("/apis/storage.k8s.io/v1/csidrivers/d", driver);
    put_pod(&cluster, "p", "a");
    let _running = spawn(cluster.client(), Config::default(), run);
    let second = json!({"metadata": {"uid": "u-w"}, "spec": {"volumeName": "w"}});
    cluster.api.put(
        "/api/v1/namespaces/default/persistentvolumeclaims/w",
        second,
    );
    let mut other = volume("w", &[]);
    other["spec"]["csi"]["driver"] = json!("other");
    cluster.api.put("/api/v1/persistentvolumes/w", other);
    cluster.api.put(
        "/api/v1/namespaces/default/pods/q",
        pod("q", "w", &["on=b"]),
    );
    eventually("the other is attached", || attached_to(&cluster) == ["b"]).await;
}

#[tokio::test(start_paused = true)]
async fn two_nodes_that_want_a_volume_at_once_do_not_both_get_it() {
    let cluster = cluster();
    put_pod(&cluster, "p", "a");
    put_pod(&cluster, "q", "b");
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || {
        let events = cluster.api.objects("/api/v1/events");
        let text = "Multi-Attach error for volume \"v\"";
        (events.iter()).any(|event| event["message"].as_str().unwrap().starts_with(text))
    })
    .await;
    assert_eq!(attached_to(&cluster).len(), 1);
}

/// Whichever comes first.
#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_be_detached_holds_up_no_other() {
    for refused in ["v", "w"] {
        let cluster = cluster();
        let claim = json!({"metadata": {"uid": "u-w"}, "spec": {"volumeName": "w"}});
        let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
        cluster.api.put(&format!("{claims}/w"), claim);
        cluster
            .api
            .put("/api/v1/persistentvolumes/w", volume("w", &[]));
        for name in ["v", "w"] {
            let path = format!("{ATTACHMENTS}/{name}-on-a");
            cluster.api.put(&path, attachment(name, &["attached"]));
        }
        cluster.on_request(move |method, path| {
            let is_it =
                *method == http::Method::DELETE && path == format!("{ATTACHMENTS}/{refused}-on-a");
            is_it.then(|| (403, crate::fake_cluster::failure(403, "Forbidden")))
        });
        let _running = spawn(cluster.client(), Config::default(), run);
        eventually("the other is detached", || attached_to(&cluster).len() == 1).await;
        let left = &cluster.api.objects(ATTACHMENTS)[0]["metadata"]["name"];
        assert_eq!(*left, format!("{refused}-on-a"));
    }
}

/// Attached to one node, and then to the other; what was asked for that.
async fn live(death: Option<Death>) -> Calls {
    let cluster = cluster();
    // Nobody detaches what the node may still think it has.
    let seen = cluster.clone();
    cluster.on_request(move |method, path| {
        let detaches = *method == http::Method::DELETE && path.starts_with(ATTACHMENTS);
        assert!(!detaches || noted(&seen, "a") == 0, "{death:?}");
        None
    });
    put_pod(&cluster, "p", "a");
    let living = spawn_mortal(&cluster, run, death);
    let at = |node: &'static str| {
        let cluster = cluster.clone();
        move || attached_to(&cluster) == [node]
    };
    eventually(&format!("attached, {death:?}"), at("a")).await;
    attach(&cluster);
    eventually(&format!("noted, {death:?}"), || noted(&cluster, "a") == 1).await;
    use_volume(&cluster, "a", true);
    put_pod(&cluster, "q", "b");
    cluster.api.break_watches();
    cluster.api.delete("/api/v1/namespaces/default/pods/p");
    cluster.api.compact();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(attached_to(&cluster), ["a"], "{death:?}");
    use_volume(&cluster, "a", false);
    eventually(&format!("moved, {death:?}"), at("b")).await;
    attach(&cluster);
    eventually(&format!("noted, {death:?}"), || noted(&cluster, "b") == 1).await;
    assert_eq!(noted(&cluster, "a"), 0, "{death:?}");
    let kinds = cluster.api.changes(ATTACHMENTS).into_iter();
    let kinds: Vec<&str> = kinds.map(|(kind, _)| kind).collect();
    let once = ["ADDED", "MODIFIED", "DELETED", "ADDED", "MODIFIED"];
    assert_eq!(kinds, once, "{death:?}");
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_a_volume_is_on_one_node_at_a_time() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(
        writes >= 5,
        "attached twice, detached once, noted: {writes}"
    );
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
