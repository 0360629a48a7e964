//! What is due by tables, and whole passes against a server in memory.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::plan::{Decision, plan};
use super::*;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};

const CRON: &str = "/apis/batch/v1/namespaces/default/cronjobs/tick";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn cron(schedule: &str, spec: Value, status: Value) -> Value {
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default", "uid": "tick",
            "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"schedule": schedule, "jobTemplate": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"template": {"spec": {"containers": []}}}}},
        "status": status,
    });
    let target = cron["spec"].as_object_mut().unwrap();
    target.extend(spec.as_object().unwrap().clone());
    cron
}

fn typed(cron: Value) -> CronJob {
    serde_json::from_value(cron).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Schedule, spec, status, now; the decision and when to look again.
fn check(schedule: &str, spec: Value, status: Value, now: &str, decision: &str, again_s: f64) {
    let said = format!("{schedule} {spec} {status} {now}");
    let cron = typed(cron(schedule, spec, status));
    let table = table_of(&cron).unwrap();
    let status = cron.status.clone().unwrap_or_default();
    let plan = plan(&cron, &status, &table, time(now)).unwrap();
    let many = if plan.missed_many { " many" } else { "" };
    let text = match plan.decision {
        Decision::Start(due) => format!("start {due}{many}"),
        Decision::TooLate(due) => format!("late {due}{many}"),
        other => format!("{other:?}{many}"),
    };
    assert_eq!(text, decision, "{said}");
    let again = plan.again_in.unwrap().as_secs_f64();
    assert!((again - again_s).abs() < 0.001, "{said}: {again}");
}

#[test]
fn a_time_is_served_once_it_comes() {
    let none = || json!({});
    check(
        "0 * * * *",
        none(),
        none(),
        "2030-01-01T00:30:00Z",
        "Wait",
        1800.1,
    );
    check(
        "0 * * * *",
        none(),
        none(),
        "2030-01-01T01:00:02Z",
        "start 2030-01-01T01:00:00Z",
        3598.1,
    );
    check(
        "0 * * * *",
        none(),
        json!({"lastScheduleTime": "2030-01-01T01:00:00Z"}),
        "2030-01-01T01:00:02Z",
        "Wait",
        3598.1,
    );
    // The job is on the list, whatever the last time is said to be.
    check(
        "0 * * * *",
        none(),
        json!({"active": [{"name": "tick-31557660", "namespace": "default"}]}),
        "2030-01-01T01:00:02Z",
        "Done",
        3598.1,
    );
}

#[test]
fn the_last_of_missed_times_is_served() {
    let none = || json!({});
    check(
        "0 * * * *",
        none(),
        none(),
        "2030-01-02T03:30:00Z",
        "start 2030-01-02T03:00:00Z",
        1800.1,
    );
    check(
        "0 * * * *",
        none(),
        none(),
        "2030-01-09T03:30:00Z",
        "start 2030-01-09T03:00:00Z many",
        1800.1,
    );
    check(
        "@every 30m",
        none(),
        json!({"lastScheduleTime": "2030-01-01T00:10:00Z"}),
        "2030-01-01T03:00:00Z",
        "start 2030-01-01T02:40:00Z",
        600.1,
    );
}

#[test]
fn a_deadline_bounds_how_late_a_job_may_start() {
    let within = |seconds: i64| json!({"startingDeadlineSeconds": seconds});
    check(
        "0 * * * *",
        within(200),
        json!({}),
        "2030-01-09T03:03:00Z",
        "start 2030-01-09T03:00:00Z",
        3420.1,
    );
    check(
        "0 * * * *",
        within(100),
        json!({}),
        "2030-01-09T03:03:00Z",
        "Wait",
        3420.1,
    );
}

#[test]
fn jobs_side_by_side_are_for_the_policy_to_allow() {
    let active = || json!({"active": [{"name": "tick-1", "namespace": "default", "uid": "j"}]});
    for (policy, decision) in [
        ("Allow", "start 2030-01-01T01:00:00Z"),
        ("Replace", "start 2030-01-01T01:00:00Z"),
        ("Forbid", "Forbidden"),
    ] {
        let spec = json!({"concurrencyPolicy": policy});
        check(
            "0 * * * *",
            spec,
            active(),
            "2030-01-01T01:00:02Z",
            decision,
            3598.1,
        );
    }
}

#[test]
fn a_day_that_never_comes_is_an_error() {
    let cron = typed(cron("59 23 31 2 *", json!({}), json!({})));
    let table = table_of(&cron).unwrap();
    let now = time("2030-01-01T01:00:00Z");
    assert!(plan(&cron, &cron.status.clone().unwrap_or_default(), &table, now).is_err());
}

#[test]
fn a_job_knows_when_it_was_due() {
    let spec = json!({"timeZone": "Asia/Kolkata"});
    let cron = typed(cron("0 * * * *", spec, json!({})));
    let job = execute::made_for(&cron, time("2030-01-01T01:30:00Z"));
    let meta = serde_json::to_value(&job.metadata).unwrap();
    assert_eq!(meta["name"], "tick-31557690");
    assert_eq!(meta["labels"], json!({"a": "b"}));
    assert_eq!(
        meta["annotations"],
        json!({"c": "d",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2030-01-01T07:00:00+05:30"})
    );
    assert_eq!(meta["ownerReferences"][0]["kind"], "CronJob");
}

fn jobs(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/apis/batch/v1/jobs")
}

fn finish(cluster: &FakeCluster, mut job: Value, end: &str) {
    job["status"] = json!({
        "startTime": "2030-01-01T00:01:00Z", "completionTime": "2030-01-01T00:01:09Z",
        "conditions": [{"type": end, "status": "True"}],
    });
    let name = job["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.api.put(&format!("{JOBS}/{name}"), job);
}

fn events(cluster: &FakeCluster) -> Vec<String> {
    let events = cluster.api.objects("/api/v1/events");
    let said = events.iter().map(|event| {
        let text = |field: &str| event[field].as_str().unwrap_or("").to_owned();
        format!("{} {}", text("reason"), text("message"))
    });
    said.collect()
}

#[tokio::test(start_paused = true)]
async fn jobs_are_started_followed_and_cleaned_up() {
    let cluster = FakeCluster::new();
    let spec = json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1});
    cluster.api.put(CRON, cron("* * * * *", spec, json!({})));
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("a job of the first minute", || jobs(&cluster).len() == 1).await;
    let first = jobs(&cluster)[0].clone();
    assert_eq!(first["metadata"]["name"], "tick-31557601");
    let status = || cluster.api.get(CRON).unwrap()["status"].clone();
    eventually("it is listed", || {
        status()["active"][0]["name"] == "tick-31557601"
    })
    .await;
    assert_eq!(status()["lastScheduleTime"], "2030-01-01T00:01:00Z");
    finish(&cluster, first, "Complete");
    eventually("it is struck", || {
        status()["active"].as_array().is_none_or(Vec::is_empty)
    })
    .await;
    assert_eq!(status()["lastSuccessfulTime"], "2030-01-01T00:01:09Z");
    eventually("a second", || jobs(&cluster).len() == 2).await;
    let second = jobs(&cluster)
        .into_iter()
        .find(|job| job["status"].is_null());
    finish(&cluster, second.unwrap(), "Complete");
    let gone = || cluster.api.get(&format!("{JOBS}/tick-31557601")).is_none();
    eventually("the first is history", gone).await;
    let said = || events(&cluster);
    eventually("all is told", || {
        [
            "SuccessfulCreate Created job tick-31557601",
            "SawCompletedJob Saw completed job: tick-31557601, condition: Complete",
            "SuccessfulDelete Deleted job tick-31557601",
        ]
        .iter()
        .all(|event| said().iter().any(|one| one == event))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_in_the_way_is_replaced() {
    let cluster = FakeCluster::new();
    let spec = json!({"concurrencyPolicy": "Replace"});
    cluster.api.put(CRON, cron("* * * * *", spec, json!({})));
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("the first", || jobs(&cluster).len() == 1).await;
    let name = jobs(&cluster)[0]["metadata"]["name"].clone();
    eventually("the next, alone", || {
        let jobs = jobs(&cluster);
        jobs.len() == 1 && jobs[0]["metadata"]["name"] != name
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_went_missing_makes_room() {
    let cluster = FakeCluster::new();
    let spec = json!({"concurrencyPolicy": "Forbid"});
    cluster.api.put(CRON, cron("* * * * *", spec, json!({})));
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    eventually("the first", || jobs(&cluster).len() == 1).await;
    eventually("the next may not run beside it", || {
        events(&cluster)
            .iter()
            .any(|event| event.starts_with("JobAlreadyActive"))
    })
    .await;
    assert_eq!(jobs(&cluster).len(), 1);
    let name = jobs(&cluster)[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    cluster.api.delete(&format!("{JOBS}/{name}"));
    eventually("another", || {
        jobs(&cluster)
            .iter()
            .any(|job| job["metadata"]["name"] != *name)
    })
    .await;
    eventually("that it is told", || {
        events(&cluster).contains(&format!("MissingJob Active job went missing: {name}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_or_unreadable_schedule_starts_nothing() {
    let cluster = FakeCluster::new();
    cluster
        .api
        .put(CRON, cron("* * * * *", json!({"suspend": true}), json!({})));
    let zone = json!({"timeZone": "Mars/Olympus"});
    let mut lost = cron("* * * * *", zone, json!({}));
    lost["metadata"]["uid"] = json!("lost");
    cluster
        .api
        .put("/apis/batch/v1/namespaces/default/cronjobs/lost", lost);
    let _running = spawn(cluster.client(), crate::Config::default(), run);
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert_eq!(jobs(&cluster), Vec::<Value>::new());
    let told = "UnknownTimeZone invalid timeZone: \"Mars/Olympus\": unknown time zone Mars/Olympus";
    assert!(
        events(&cluster).contains(&told.to_owned()),
        "{:?}",
        events(&cluster)
    );
}

/// Starts two jobs; what was asked for that.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    cluster
        .api
        .put(CRON, cron("* * * * *", json!({}), json!({})));
    let living = spawn_mortal(&cluster, run, death);
    let status = || cluster.api.get(CRON).unwrap()["status"].clone();
    let listed = || status()["active"].as_array().cloned().unwrap_or_default();
    eventually(&format!("two jobs, {death:?}"), || listed().len() == 2).await;
    let uid = |job: &Value| job.pointer("/metadata/uid").or(job.get("uid")).cloned();
    let made: Vec<_> = jobs(&cluster).iter().map(uid).collect();
    let listed: Vec<_> = listed().iter().map(uid).collect();
    assert_eq!(made, listed, "{death:?}");
    let last = &status()["lastScheduleTime"];
    assert_eq!(*last, "2030-01-01T00:02:00Z", "{death:?}");
    living.calls.clone()
}

/// Cut off from the server at its calls in turn, and started anew.
#[tokio::test(start_paused = true)]
async fn a_loop_that_dies_anywhere_starts_each_job_once() {
    let calls = live(None).await;
    assert!(calls.writes() >= 4, "{}", calls.writes());
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
