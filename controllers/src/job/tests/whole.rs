//! The loop against a server in memory: what it writes, and in which order.

use super::*;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

pub(super) const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/work";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(super) fn put_job(cluster: &FakeCluster, words: &[&str]) {
    let mut job = job(words);
    job.as_object_mut().unwrap().remove("status");
    cluster.api.put(JOB, job);
}

pub(super) fn pods(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/api/v1/pods")
}

pub(super) fn end(cluster: &FakeCluster, mut pod: Value, phase: &str) {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    pod["status"]["phase"] = json!(phase);
    pod["status"]["containerStatuses"] = json!([{"name": "c", "image": "", "imageID": "",
        "ready": false, "restartCount": 0, "state": {"terminated":
            {"exitCode": i32::from(phase == "Failed"), "finishedAt": "2029-01-01T00:00:00Z"}}}]);
    cluster.api.put(&format!("{PODS}/{name}"), pod);
}

pub(super) fn status(cluster: &FakeCluster) -> Value {
    cluster.api.get(JOB).unwrap()["status"].clone()
}

pub(super) fn holds(cluster: &FakeCluster, condition: &str) -> bool {
    let status = status(cluster);
    let conditions = status["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == condition && one["status"] == "True")
    })
}

fn events(cluster: &FakeCluster) -> Vec<String> {
    let events = cluster.api.objects("/api/v1/events");
    let said = events.iter().map(|event| {
        let text = |field: &str| event[field].as_str().unwrap_or("").to_owned();
        format!("{} {}", text("reason"), text("message"))
    });
    said.collect()
}

fn has_event(cluster: &FakeCluster, start: &str) -> bool {
    events(cluster).iter().any(|event| event.starts_with(start))
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end() {
    let cluster = FakeCluster::new();
    put_job(&cluster, &["completions=3", "parallelism=2"]);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("two pods", || pods(&cluster).len() == 2).await;
    for pod in pods(&cluster) {
        assert_eq!(pod["metadata"]["finalizers"][0], seen::FINALIZER);
        assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "work");
    }
    end(&cluster, pods(&cluster)[0].clone(), "Succeeded");
    eventually("a third", || pods(&cluster).len() == 3).await;
    eventually("one is counted", || status(&cluster)["succeeded"] == 1).await;
    for pod in pods(&cluster) {
        if pod["status"]["phase"] != "Succeeded" {
            end(&cluster, pod, "Succeeded");
        }
    }
    eventually("complete", || holds(&cluster, "Complete")).await;
    let status = status(&cluster);
    assert_eq!(status["succeeded"], 3);
    assert_eq!(status["ready"], 0);
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    assert!(status["completionTime"].is_string() && status["startTime"].is_string());
    assert!(holds(&cluster, "SuccessCriteriaMet"));
    assert_eq!(pods(&cluster).len(), 3, "no pod too many");
    assert!(pods(&cluster).iter().all(|pod| {
        pod["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    }));
    eventually("its end is told", || {
        has_event(&cluster, "Completed Job completed")
    })
    .await;
    assert!(has_event(&cluster, "SuccessfulCreate Created pod: work-"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_takes_its_pods_along() {
    let cluster = FakeCluster::new();
    put_job(&cluster, &["completions=3", "parallelism=2", "backoff=0"]);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("two pods", || pods(&cluster).len() == 2).await;
    end(&cluster, pods(&cluster)[0].clone(), "Failed");
    eventually("failed", || holds(&cluster, "Failed")).await;
    assert!(holds(&cluster, "FailureTarget"));
    assert_eq!(status(&cluster)["failed"], 2);
    assert_eq!(pods(&cluster).len(), 1, "the one at work is deleted");
    eventually("its end is told", || {
        has_event(
            &cluster,
            "BackoffLimitExceeded Job has reached the specified backoff limit",
        )
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn suspended_pods_are_not_counted_and_come_back() {
    let cluster = FakeCluster::new();
    put_job(&cluster, &["completions=3", "parallelism=2"]);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("two pods", || pods(&cluster).len() == 2).await;
    let mut job = cluster.api.get(JOB).unwrap();
    job["spec"]["suspend"] = json!(true);
    job["metadata"]["generation"] = json!(2);
    cluster.api.put(JOB, job);
    eventually("none", || pods(&cluster).is_empty()).await;
    eventually("suspended", || holds(&cluster, "Suspended")).await;
    eventually("settled", || status(&cluster)["terminating"] == 0).await;
    assert!(status(&cluster)["failed"].is_null() && status(&cluster)["startTime"].is_null());
    let mut job = cluster.api.get(JOB).unwrap();
    job["spec"]["suspend"] = json!(false);
    job["metadata"]["generation"] = json!(3);
    cluster.api.put(JOB, job);
    eventually("two pods again", || pods(&cluster).len() == 2).await;
    eventually("resumed", || !holds(&cluster, "Suspended")).await;
}

#[tokio::test(start_paused = true)]
async fn adopts_with_finalizer_and_frees_orphans() {
    let cluster = FakeCluster::new();
    put_job(&cluster, &["completions=2", "parallelism=1"]);
    let orphan = |labels: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels,
            "finalizers": [seen::FINALIZER]}, "spec": {"containers": []},
            "status": {"phase": "Running"}})
    };
    let mut ours = orphan(json!({"app": "work"}));
    ours["metadata"]["finalizers"] = json!([]);
    cluster.api.put(&format!("{PODS}/ours"), ours);
    cluster.api.put(&format!("{PODS}/stray"), orphan(json!({})));
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    let finalizers = |name: &str| {
        let pod = cluster.api.get(&format!("{PODS}/{name}")).unwrap();
        pod["metadata"]["finalizers"].clone()
    };
    eventually("adopted", || finalizers("ours") == json!([seen::FINALIZER])).await;
    eventually("freed", || finalizers("stray") == json!([])).await;
    eventually("counted", || status(&cluster)["active"] == 1).await;
    assert_eq!(pods(&cluster).len(), 2, "the adopted one is enough");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_passes_with_nothing_else_happening() {
    let cluster = FakeCluster::new();
    put_job(&cluster, &["completions=1", "deadline=30"]);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("a pod", || pods(&cluster).len() == 1).await;
    eventually("failed", || holds(&cluster, "Failed")).await;
    eventually("why is told", || {
        has_event(
            &cluster,
            "DeadlineExceeded Job was active longer than specified deadline",
        )
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_manager_is_left_alone() {
    let cluster = FakeCluster::new();
    let mut other = job(&["completions=1"]);
    other["spec"]["managedBy"] = json!("example.com/queue");
    cluster.api.put(JOB, other.clone());
    let mut mine = job(&["completions=1"]);
    mine["metadata"]["uid"] = json!("mine");
    mine["spec"]["managedBy"] = json!("kubernetes.io/job-controller");
    cluster
        .api
        .put("/apis/batch/v1/namespaces/default/jobs/mine", mine);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("the pod of the other", || pods(&cluster).len() == 1).await;
    assert!(
        pods(&cluster)[0]["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("mine-")
    );
}

/// With no pods, so that each event has an instant of its own.
#[tokio::test(start_paused = true)]
async fn suspension_and_its_end_are_told() {
    let cluster = FakeCluster::new();
    put_job(&cluster, &["completions=3", "parallelism=0", "suspend"]);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("suspended", || {
        has_event(&cluster, "Suspended Job suspended")
    })
    .await;
    let mut job = cluster.api.get(JOB).unwrap();
    job["spec"]["suspend"] = json!(false);
    job["metadata"]["generation"] = json!(2);
    cluster.api.put(JOB, job);
    eventually("resumed", || has_event(&cluster, "Resumed Job resumed")).await;
    assert!(status(&cluster)["startTime"].is_string());
}
