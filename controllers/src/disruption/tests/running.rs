//! The whole loop against a server in memory.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, failure, spawn, spawn_mortal};

const BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn put_budget(cluster: &FakeCluster, bound: Value) {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    let field = bound.as_object().unwrap().iter().next().unwrap();
    spec[field.0] = field.1.clone();
    cluster
        .api
        .put(BUDGET, json!({"metadata": {"generation": 1}, "spec": spec}));
}

fn put_pod(cluster: &FakeCluster, name: &str, owner: Option<(&str, &str, &str)>) {
    let mut value = json!(*super::pod(name, &["ready"]));
    if let Some((version, kind, owner)) = owner {
        value["metadata"]["ownerReferences"] = json!([{"apiVersion": version, "kind": kind,
            "name": owner, "uid": format!("uid-of-{owner}"), "controller": true}]);
    }
    cluster.api.put(&format!("{PODS}/{name}"), value);
}

fn put_controller(cluster: &FakeCluster, path: &str, replicas: i64, above: Option<&str>) {
    let name = path.rsplit('/').next().unwrap();
    let mut value = json!({
        "metadata": {"uid": format!("uid-of-{name}")},
        "spec": {"replicas": replicas, "selector": {}, "template": {}},
    });
    if let Some(above) = above {
        value["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1",
            "kind": "Deployment", "name": above, "uid": format!("uid-of-{above}"),
            "controller": true}]);
    }
    cluster.api.put(path, value);
}

/// Expected, desired, healthy, allowed.
fn counts(cluster: &FakeCluster) -> [i64; 4] {
    let budget = cluster.api.get(BUDGET).unwrap();
    [
        "expectedPods",
        "desiredHealthy",
        "currentHealthy",
        "disruptionsAllowed",
    ]
    .map(|name| budget["status"][name].as_i64().unwrap_or(-1))
}

fn reason(cluster: &FakeCluster) -> (String, String) {
    let budget = cluster.api.get(BUDGET).unwrap();
    let condition = &budget["status"]["conditions"][0];
    let text = |name: &str| condition[name].as_str().unwrap_or("").to_owned();
    (text("reason"), text("message"))
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
async fn pods_that_come_and_go_are_counted() {
    let cluster = FakeCluster::new();
    put_budget(&cluster, json!({"minAvailable": 1}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("none", || counts(&cluster) == [0, 1, 0, 0]).await;
    eventually("told", || {
        told(&cluster, "NoPods") == [r#""Normal" "No matching pods found""#]
    })
    .await;
    put_pod(&cluster, "a", None);
    put_pod(&cluster, "b", None);
    eventually("two", || counts(&cluster) == [2, 1, 2, 1]).await;
    assert_eq!(reason(&cluster).0, "SufficientPods");
    // A pod that is another's from now on.
    let mut pod = cluster.api.get(&format!("{PODS}/b")).unwrap();
    pod["metadata"]["labels"]["app"] = json!("db");
    cluster.api.put(&format!("{PODS}/b"), pod);
    eventually("one", || counts(&cluster) == [1, 1, 1, 0]).await;
    assert_eq!(reason(&cluster).0, "InsufficientPods");
    put_budget(&cluster, json!({"minAvailable": 0}));
    eventually("as the new one says", || counts(&cluster) == [1, 0, 1, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn every_controller_counts_once_with_what_it_asks_for() {
    let cluster = FakeCluster::new();
    let apps = "/apis/apps/v1/namespaces/default";
    put_controller(&cluster, &format!("{apps}/deployments/front"), 4, None);
    put_controller(
        &cluster,
        &format!("{apps}/replicasets/front-1"),
        3,
        Some("front"),
    );
    put_controller(
        &cluster,
        &format!("{apps}/replicasets/front-2"),
        2,
        Some("front"),
    );
    put_controller(&cluster, &format!("{apps}/replicasets/alone"), 10, None);
    put_controller(&cluster, &format!("{apps}/statefulsets/db"), 100, None);
    let core = "/api/v1/namespaces/default/replicationcontrollers/old";
    put_controller(&cluster, core, 1000, None);
    for (pod, version, kind, owner) in [
        ("a", "apps/v1", "ReplicaSet", "front-1"),
        ("b", "apps/v1", "ReplicaSet", "front-2"),
        ("c", "apps/v1", "ReplicaSet", "alone"),
        ("d", "apps/v1", "ReplicaSet", "alone"),
        ("e", "apps/v1", "StatefulSet", "db"),
        ("f", "v1", "ReplicationController", "old"),
    ] {
        put_pod(&cluster, pod, Some((version, kind, owner)));
    }
    put_pod(&cluster, "g", None);
    put_budget(&cluster, json!({"maxUnavailable": "50%"}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("all", || counts(&cluster) == [1114, 557, 7, 0]).await;
    eventually("the one without is told", || {
        told(&cluster, "UnmanagedPods").len() == 1
    })
    .await;
    // No pod tells of it.
    put_controller(&cluster, &format!("{apps}/deployments/front"), 6, None);
    eventually("scaled", || counts(&cluster) == [1116, 558, 7, 0]).await;
}

/// As the API server answers for custom resources; the database is there once it is let be.
fn serve_databases(cluster: &FakeCluster) -> Arc<AtomicBool> {
    let is_there = Arc::new(AtomicBool::new(false));
    let let_be = is_there.clone();
    cluster.on_request(move |method, path| {
        if *method != Method::GET {
            return None;
        }
        let one = |name: &str, kind: &str| {
            json!({"name": name, "singularName": "", "kind": kind, "namespaced": true,
                   "verbs": ["get"]})
        };
        match path {
            "/apis/example.org/v1" => Some((
                200,
                json!({"groupVersion": "example.org/v1", "resources": [
                    one("databases", "Database"), one("databases/scale", "Scale"),
                    one("queues", "Queue"), one("queues/status", "Queue"),
                ]}),
            )),
            "/apis/example.org/v1/namespaces/default/databases/main/scale" => {
                Some(match let_be.load(Ordering::Relaxed) {
                    false => (404, failure(404, "NotFound")),
                    true => (
                        200,
                        json!({"metadata": {"name": "main", "uid": "uid-of-main"},
                               "spec": {"replicas": 4}}),
                    ),
                })
            }
            "/apis/none.org/v1" => Some((404, failure(404, "NotFound"))),
            _ => None,
        }
    });
    is_there
}

#[tokio::test(start_paused = true)]
async fn of_any_other_controller_the_server_knows_the_scale() {
    let cluster = FakeCluster::new();
    let is_there = serve_databases(&cluster);
    for name in ["a", "b", "c"] {
        put_pod(&cluster, name, Some(("example.org/v1", "Database", "main")));
    }
    put_budget(&cluster, json!({"maxUnavailable": 2}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("not there yet", || {
        let text = r#"found no controllers for pod "a""#;
        reason(&cluster) == ("SyncFailed".to_owned(), text.to_owned())
    })
    .await;
    eventually("told", || {
        let text = r#""Warning" "Failed to calculate the number of expected pods: found no controllers for pod \"a\"""#;
        told(&cluster, "CalculateExpectedPodCountFailed") == [text]
    })
    .await;
    // Nothing tells of it: the budget is looked at again.
    is_there.store(true, Ordering::Relaxed);
    eventually("counted", || counts(&cluster) == [4, 2, 3, 1]).await;
    assert_eq!(reason(&cluster).0, "SufficientPods");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_counted_lets_nobody_go_and_says_why() {
    for (version, kind, text) in [
        (
            "example.org/v1",
            "Queue",
            "queues.example.org does not implement the scale subresource",
        ),
        (
            "example.org/v1",
            "Stack",
            r#"no matches for kind "Stack" in version "example.org/v1""#,
        ),
        (
            "none.org/v1",
            "Any",
            r#"no matches for kind "Any" in version "none.org/v1""#,
        ),
    ] {
        let cluster = FakeCluster::new();
        serve_databases(&cluster);
        put_budget(&cluster, json!({"minAvailable": 0}));
        put_pod(&cluster, "a", Some((version, kind, "main")));
        let _running = spawn(cluster.client(), Config::default(), run);
        eventually("allowed", || counts(&cluster)[3] == 1).await;
        put_budget(&cluster, json!({"minAvailable": "0%"}));
        eventually(text, || {
            reason(&cluster) == ("SyncFailed".to_owned(), text.to_owned())
                && cluster.api.get(BUDGET).unwrap()["status"]["disruptionsAllowed"] == 0
        })
        .await;
    }
}

/// As the eviction API leaves it.
fn let_go(cluster: &FakeCluster, pod: &str, at: &str) {
    let mut budget = cluster.api.get(BUDGET).unwrap();
    budget["status"]["disruptedPods"][pod] = json!(at);
    let left = budget["status"]["disruptionsAllowed"].as_i64().unwrap() - 1;
    budget["status"]["disruptionsAllowed"] = json!(left);
    cluster.api.put(BUDGET, budget);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_let_go_and_stays_is_counted_again_and_told_of() {
    let cluster = FakeCluster::new();
    put_budget(&cluster, json!({"minAvailable": 1}));
    for name in ["a", "b", "c"] {
        put_pod(&cluster, name, None);
    }
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("three", || counts(&cluster) == [3, 1, 3, 2]).await;
    let_go(&cluster, "a", "2030-01-01T00:00:00Z");
    eventually("as good as gone", || counts(&cluster) == [3, 1, 2, 1]).await;
    eventually("it stayed", || {
        let budget = cluster.api.get(BUDGET).unwrap();
        counts(&cluster) == [3, 1, 3, 2] && budget["status"]["disruptedPods"].is_null()
    })
    .await;
    eventually("told", || {
        told(&cluster, "NotDeleted")
            == [r#""Warning" "Pod was expected by PDB default/web to be deleted but it wasn't""#]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_two_budgets_is_counted_by_both_and_told_of() {
    let cluster = FakeCluster::new();
    put_budget(&cluster, json!({"minAvailable": 0}));
    let other = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/all";
    let spec = json!({"minAvailable": 0, "selector": {}});
    cluster
        .api
        .put(other, json!({"metadata": {"generation": 1}, "spec": spec}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("none", || counts(&cluster) == [0, 0, 0, 0]).await;
    put_pod(&cluster, "a", None);
    eventually("both", || {
        let all = cluster.api.get(other).unwrap();
        counts(&cluster) == [1, 0, 1, 1] && all["status"]["currentHealthy"] == 1
    })
    .await;
    eventually("told", || {
        told(&cluster, "MultiplePodDisruptionBudgets")
            == [r#""Warning" "Pod \"default\"/\"a\" matches multiple PodDisruptionBudgets.  Chose \"all\" arbitrarily.""#]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_disruption_that_did_not_come_is_taken_back() {
    let cluster = FakeCluster::new();
    put_pod(&cluster, "a", None);
    let _running = spawn(cluster.client(), Config::default(), run);
    let path = format!("{PODS}/a");
    let mut pod = cluster.api.get(&path).unwrap();
    pod["metadata"]["generation"] = json!(1);
    let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "DisruptionTarget", "status": "True",
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        "lastTransitionTime": "2030-01-01T00:00:00Z"}));
    cluster.api.put(&path, pod);
    let condition = || cluster.api.get(&path).unwrap()["status"]["conditions"][1].clone();
    eventually("taken back", || condition()["status"] == "False").await;
    let told = condition();
    assert_eq!(told["observedGeneration"], 1);
    assert!(
        told["reason"].is_null() && told["message"].is_null(),
        "{told}"
    );
    assert!(told["lastTransitionTime"].as_str().unwrap() >= "2030-01-01T00:02:00Z");
    let ready = &cluster.api.get(&path).unwrap()["status"]["conditions"][0];
    assert_eq!(
        (&ready["type"], &ready["status"]),
        (&json!("Ready"), &json!("True"))
    );
}

/// Comes up, lets one go that is then gone, and is left with two.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    put_budget(&cluster, json!({"minAvailable": 1}));
    for name in ["a", "b", "c"] {
        put_pod(&cluster, name, None);
    }
    let living = spawn_mortal(&cluster, run, death);
    let is = async |wanted: [i64; 4]| {
        eventually(&format!("{wanted:?}, {death:?}"), || {
            counts(&cluster) == wanted
        })
        .await;
    };
    is([3, 1, 3, 2]).await;
    let_go(&cluster, "a", "2030-01-01T00:00:00Z");
    is([3, 1, 2, 1]).await;
    cluster.api.delete(&format!("{PODS}/a"));
    is([2, 1, 2, 1]).await;
    eventually(&format!("forgotten, {death:?}"), || {
        let budget = cluster.api.get(BUDGET).unwrap();
        budget["status"]["disruptedPods"].is_null()
    })
    .await;
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_the_count_is_right_in_the_end() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes >= 3, "{writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
