use serde_json::{Value, json};

use super::*;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

fn job(ttl: Value, conditions: &Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "uid": "a"},
        "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
        "status": {"conditions": conditions}})
}

fn ended(kind: &str, status: &str) -> Value {
    json!([{"type": kind, "status": status, "lastTransitionTime": "2030-01-01T00:00:10Z"}])
}

#[test]
fn only_finished_jobs_with_a_ttl_expire() {
    let now: Timestamp = "2030-01-01T00:00:15Z".parse().unwrap();
    let seconds = |count| Some(Requeue::After(Duration::from_secs(count)));
    for (ttl, conditions, expected) in [
        (json!(30), ended("Complete", "True"), seconds(25)),
        (json!(5), ended("Complete", "True"), None),
        (json!(0), ended("Failed", "True"), None),
        (Value::Null, ended("Complete", "True"), Some(Requeue::Never)),
        (json!(0), ended("Complete", "False"), Some(Requeue::Never)),
        (
            json!(0),
            ended("FailureTarget", "True"),
            Some(Requeue::Never),
        ),
        (json!(0), json!([]), Some(Requeue::Never)),
    ] {
        let text = format!("{ttl} {conditions}");
        let mut job: Job = serde_json::from_value(job(ttl, &conditions)).unwrap();
        assert_eq!(wait(&job, now), expected, "{text}");
        job.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        assert_eq!(wait(&job, now), Some(Requeue::Never), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_when_its_time_is_over_and_not_before() {
    let path = "/apis/batch/v1/namespaces/default/jobs/a";
    let cluster = FakeCluster::new();
    cluster
        .api
        .put(path, job(json!(60), &ended("Complete", "True")));
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    tokio::time::advance(Duration::from_secs(60)).await;
    // Prolonged at the last moment.
    cluster
        .api
        .put(path, job(json!(100), &ended("Complete", "True")));
    tokio::time::advance(Duration::from_secs(30)).await;
    let deleting = || !cluster.api.get(path).unwrap()["metadata"]["deletionTimestamp"].is_null();
    assert!(!deleting());
    eventually("deleted in the foreground", deleting).await;
    let finalizers = cluster.api.get(path).unwrap()["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!(["foregroundDeletion"]));
}
