//! A job and its pods in, what is done and what the status says out, as text.
//!
//! `job [completions=N] [parallelism=N] [indexed] [suspend] [backoff=N] [per_index=N]
//! [max_failed=N] [deadline=SECONDS] [replace=Failed] [onfailure] [started=SECONDS|never] [succeeded=N]
//! [failed=N] [completed=INDEXES] [failed_indexes=INDEXES] [counting=SUCCEEDED/FAILED]
//! [condition=TYPE:REASON] [deleting] [unsatisfied] [failures=N/SECONDS]`, then
//! `rule ACTION exit In|NotIn CODES [CONTAINER]`, `rule ACTION condition TYPE`,
//! `success [indexes=INDEXES] [count=N]`, and a line for each pod:
//! `pod NAME [pending|succeeded|failed] [i=INDEX] [ready] [exit=CODE] [ended=SECONDS] [fails=N]
//! [ignored=N] [condition=TYPE] [restarts=N] [deleting] [counted]`.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::backoff::Record;
use super::manage::Action;
use super::plan::{Observed, Pass, plan};
use super::track::{self, Done};
use super::*;
use crate::fixture_text::*;

mod crashes;
mod ends;
mod indexed;
mod survival;
mod whole;

struct Fixture {
    job: Value,
    pods: Vec<Arc<Pod>>,
    satisfied: bool,
    backoff: Record,
}

fn job(words: &[&str]) -> Value {
    let restart = option(words, "onfailure").map_or("Never", |_| "OnFailure");
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "work", "namespace": "default", "uid": "job", "generation": 1},
        "spec": {
            "parallelism": number(words, "parallelism").unwrap_or(1),
            "backoffLimit": number(words, "backoff").unwrap_or(6),
            "suspend": option(words, "suspend").is_some(),
            "selector": {"matchLabels": {"app": "work"}},
            "template": {
                "metadata": {"labels": {"app": "work"}},
                "spec": {"restartPolicy": restart, "containers": [{"name": "c"}]},
            },
        },
        "status": {"startTime": at(number(words, "started").unwrap_or(100))},
    });
    give_numbers(&mut job, words);
    if option(words, "started") == Some("never") {
        job["status"]["startTime"] = Value::Null;
    }
    if option(words, "indexed").is_some() {
        job["spec"]["completionMode"] = json!("Indexed");
    }
    if let Some(policy) = option(words, "replace") {
        job["spec"]["podReplacementPolicy"] = json!(policy);
    }
    if option(words, "deleting").is_some() {
        job["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    if let Some((succeeded, failed)) = option(words, "counting").and_then(|c| c.split_once('/')) {
        let uids = |text: &str| -> Vec<String> {
            let names = text.split(',').filter(|name| !name.is_empty());
            names.map(|name| format!("uid-{name}")).collect()
        };
        job["status"]["uncountedTerminatedPods"] =
            json!({"succeeded": uids(succeeded), "failed": uids(failed)});
    }
    if let Some((kind, reason)) = option(words, "condition").and_then(|c| c.split_once(':')) {
        let (status, reason) = match reason.strip_prefix('!') {
            Some(reason) => ("False", reason),
            None => ("True", reason),
        };
        let (message, time) = ("told before", at(50));
        job["status"]["conditions"] = json!([{"type": kind, "status": status, "reason": reason,
            "message": message, "lastTransitionTime": time}]);
    }
    job
}

fn give_numbers(job: &mut Value, words: &[&str]) {
    let (spec, status) = (
        [
            ("completions", "completions"),
            ("per_index", "backoffLimitPerIndex"),
            ("max_failed", "maxFailedIndexes"),
            ("deadline", "activeDeadlineSeconds"),
        ],
        [("succeeded", "succeeded"), ("failed", "failed")],
    );
    for (word, field) in spec {
        if let Some(value) = number(words, word) {
            job["spec"][field] = json!(value);
        }
    }
    for (word, field) in status {
        if let Some(value) = number(words, word) {
            job["status"][field] = json!(value);
        }
    }
    for (word, field) in [
        ("completed", "completedIndexes"),
        ("failed_indexes", "failedIndexes"),
    ] {
        if let Some(text) = option(words, word) {
            job["status"][field] = json!(text);
        }
    }
}

fn pod(name: &str, words: &[&str]) -> Arc<Pod> {
    let phases = ["pending", "succeeded", "failed"];
    let phase = phases.iter().find(|phase| words.contains(phase));
    let phase = phase.unwrap_or(&"running");
    let ended = number(words, "ended").unwrap_or(1000);
    let exit = number(words, "exit").unwrap_or(i64::from(*phase == "failed"));
    let state = match *phase {
        "succeeded" | "failed" => {
            json!({"terminated": {"exitCode": exit, "finishedAt": at(ended)}})
        }
        _ => json!({"running": {}}),
    };
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "creationTimestamp": at(2000), "labels": {"app": "work"},
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work",
                "uid": "job", "controller": true}],
            "annotations": {},
        },
        "spec": {"containers": [], "nodeName": "n"},
        "status": {
            "phase": format!("{}{}", phase[..1].to_uppercase(), &phase[1..]),
            "conditions": [],
            "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false,
                "restartCount": number(words, "restarts").unwrap_or(0), "state": state}],
        },
    });
    for (word, annotation) in [
        ("i", "batch.kubernetes.io/job-completion-index"),
        ("fails", "batch.kubernetes.io/job-index-failure-count"),
        (
            "ignored",
            "batch.kubernetes.io/job-index-ignored-failure-count",
        ),
    ] {
        if let Some(value) = option(words, word) {
            pod["metadata"]["annotations"][annotation] = json!(value);
        }
    }
    let mut conditions = Vec::new();
    if option(words, "ready").is_some() {
        conditions.push(json!({"type": "Ready", "status": "True", "lastTransitionTime": at(9)}));
    }
    if let Some(kind) = option(words, "condition") {
        conditions.push(json!({"type": kind, "status": "True"}));
    }
    pod["status"]["conditions"] = json!(conditions);
    if option(words, "deleting").is_some() {
        pod["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    if option(words, "counted").is_some() {
        pod["metadata"]["finalizers"] = json!([]);
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn rule(words: &[&str]) -> Value {
    match words {
        [action, "exit", operator, codes, container @ ..] => {
            let codes: Vec<i32> = codes.split(',').map(|code| code.parse().unwrap()).collect();
            json!({"action": action, "onExitCodes": {
                "operator": operator, "values": codes, "containerName": container.first()}})
        }
        [action, "condition", kind] => {
            json!({"action": action, "onPodConditions": [{"type": kind, "status": "True"}]})
        }
        other => panic!("cannot read {other:?}"),
    }
}

fn parse(text: &str) -> Fixture {
    let mut fixture = Fixture {
        job: Value::Null,
        pods: Vec::new(),
        satisfied: true,
        backoff: Record::default(),
    };
    let (mut rules, mut successes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["job", options @ ..] => {
                fixture.job = job(options);
                fixture.satisfied = option(options, "unsatisfied").is_none();
                if let Some((count, ago)) =
                    option(options, "failures").and_then(|text| text.split_once('/'))
                {
                    fixture.backoff.failures = count.parse().unwrap();
                    fixture.backoff.last_failure = at(ago.parse().unwrap()).parse().ok();
                }
            }
            ["rule", words @ ..] => rules.push(rule(words)),
            ["success", words @ ..] => successes.push(json!({
                "succeededIndexes": option(words, "indexes"),
                "succeededCount": number(words, "count"),
            })),
            ["pod", name, options @ ..] => fixture.pods.push(pod(name, options)),
            other => panic!("cannot read {other:?}"),
        }
    }
    if !rules.is_empty() {
        fixture.job["spec"]["podFailurePolicy"] = json!({"rules": rules});
    }
    if !successes.is_empty() {
        fixture.job["spec"]["successPolicy"] = json!({"rules": successes});
    }
    fixture
}

fn names(pods: &[Arc<Pod>]) -> String {
    let names = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
    names.collect::<Vec<_>>().join(" ")
}

fn say_action(action: &Action) -> String {
    match action {
        Action::End(pods) if pods.is_empty() => "end".to_owned(),
        Action::End(pods) => format!("end {}", names(pods)),
        Action::Remove(pods) if pods.is_empty() => "remove none".to_owned(),
        Action::Remove(pods) => format!("remove {}", names(pods)),
        Action::Create(indexes) if indexes.iter().all(Option::is_none) => {
            format!("create {}", indexes.len())
        }
        Action::Create(indexes) => {
            let indexes: Vec<String> = indexes.iter().flatten().map(i32::to_string).collect();
            format!("create {}", indexes.join(" "))
        }
        Action::Wait(time) => format!("wait {} s", time.as_secs()),
        Action::Nothing => "nothing".to_owned(),
        Action::NotNow => "not now".to_owned(),
    }
}

/// What comes of an action when the server grants everything.
fn granted(action: &Action) -> Done {
    let count = |pods: &[Arc<Pod>]| i32::try_from(pods.len()).unwrap();
    let ready = |pods: &[Arc<Pod>]| {
        i32::try_from(pods.iter().filter(|pod| crate::pods::is_ready(pod)).count()).unwrap()
    };
    match action {
        Action::End(pods) | Action::Remove(pods) => Done {
            removed: count(pods),
            removed_ready: ready(pods),
            created: 0,
        },
        Action::Create(indexes) => Done {
            created: i32::try_from(indexes.len()).unwrap(),
            ..Done::default()
        },
        _ => Done::default(),
    }
}

fn observe<'a>(fixture: &Fixture, job: &'a Job, spec: &'a Spec<'a>) -> Observed<'a> {
    Observed {
        job,
        spec,
        pods: fixture.pods.clone(),
        adopted: std::collections::HashSet::new(),
        releasing: std::collections::HashSet::new(),
        satisfied: fixture.satisfied,
        backoff: fixture.backoff,
    }
}

fn say_status(pass: &Pass<'_>, said: &mut String) {
    let status = track::normalized(pass.status.clone());
    let counts = [
        ("active", status.active),
        ("ready", status.ready.filter(|count| *count > 0)),
        ("terminating", status.terminating.filter(|count| *count > 0)),
        ("succeeded", status.succeeded),
        ("failed", status.failed),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            write!(said, ", {name}={count}").unwrap();
        }
    }
    let texts = [
        ("completed", status.completed_indexes),
        ("failed_indexes", status.failed_indexes),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            write!(said, ", {name}={text}").unwrap();
        }
    }
    let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
    for (name, uids) in [
        ("succeeded", uncounted.succeeded),
        ("failed", uncounted.failed),
    ] {
        if let Some(uids) = uids {
            write!(
                said,
                ", counting {name} {}",
                uids.join(" ").replace("uid-", "")
            )
            .unwrap();
        }
    }
    for one in status.conditions.iter().flatten() {
        let (reason, message) = (one.reason.as_deref(), one.message.as_deref());
        let (reason, message) = (reason.unwrap_or(""), message.unwrap_or(""));
        write!(said, "\n{}={} {reason}: {message}", one.type_, one.status).unwrap();
    }
}

/// One pass up to the first write of the status, and what follows it.
fn check(text: &str, expected: Expect) {
    let fixture = parse(text);
    let job: Job = serde_json::from_value(fixture.job.clone()).unwrap();
    let spec = Spec::of(&job).unwrap();
    let (mut pass, action) = plan(observe(&fixture, &job, &spec), now());
    let mut said = say_action(&action);
    let turn = pass.acted(&action, granted(&action), now());
    let counting = pass.count_finished(now());
    say_status(&pass, &mut said);
    if let Some(turn) = turn {
        write!(said, "\nevent {turn:?}").unwrap();
    }
    if !counting.release.is_empty() {
        write!(said, "\nrelease {}", names(&counting.release)).unwrap();
    }
    if let Some(end) = &pass.end {
        write!(
            said,
            "\nthen {} {}",
            end.type_,
            end.reason.as_deref().unwrap_or("")
        )
        .unwrap();
    }
    if let (Some(time), None) = (pass.deadline_in, &pass.end) {
        write!(said, "\nagain in {} s", time.as_secs()).unwrap();
    }
    expected.assert_eq(&said);
}

#[test]
fn as_many_pods_run_as_may_and_need_to() {
    check(
        "job completions=5 parallelism=2",
        expect!["create 2, active=2"],
    );
    check(
        "job completions=5 parallelism=3 succeeded=3\npod a ready",
        expect!["create 1, active=2, ready=1, succeeded=3"],
    );
    check(
        "job completions=5 parallelism=3 succeeded=4\npod a ready\npod b pending\npod c",
        expect!["remove b c, active=1, ready=1, terminating=2, succeeded=4"],
    );
    check(
        "job completions=9999 parallelism=9999",
        expect!["create 500, active=500"],
    );
    check("job completions=5 parallelism=0", expect!["nothing"]);
}

#[test]
fn without_completions_one_success_is_enough_and_the_others_may_finish() {
    check("job parallelism=3\npod a", expect!["create 2, active=3"]);
    check(
        "job parallelism=3\npod a succeeded\npod b",
        expect![[r#"
            nothing, active=1, counting succeeded a
            release a"#]],
    );
    check(
        "job parallelism=3 succeeded=1\npod b succeeded",
        expect![[r#"
            nothing, succeeded=1, counting succeeded b
            SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods
            release b
            then Complete CompletionsReached"#]],
    );
}

#[test]
fn waits_for_the_cache_but_counts_meanwhile() {
    check(
        "job completions=3 parallelism=3 unsatisfied\npod a succeeded",
        expect![[r#"
            not now, counting succeeded a
            release a"#]],
    );
    check(
        "job completions=3 parallelism=3 deleting\npod a\npod b failed",
        expect![[r#"
            not now, active=1, counting failed b
            release a b"#]],
    );
}

#[test]
fn a_failed_pod_is_replaced_after_a_while() {
    check(
        "job completions=1\npod a failed ended=4",
        expect![[r#"
        wait 6 s, counting failed a
        release a"#]],
    );
    check(
        "job completions=1 failures=3/10 failed=3",
        expect!["wait 30 s, failed=3"],
    );
    check(
        "job completions=1 failures=3/40 failed=3",
        expect!["create 1, active=1, failed=3"],
    );
    check(
        "job completions=9 backoff=99 failures=30/100 failed=30",
        expect!["wait 500 s, failed=30"],
    );
    // A success in between begins anew.
    check(
        "job completions=9 backoff=99 failures=5/100 failed=5
         pod a succeeded ended=20
         pod b failed ended=3
         pod c failed ended=30",
        expect![[r#"
            wait 7 s, failed=5, counting succeeded a, counting failed b c
            release a b c"#]],
    );
}

#[test]
fn a_pod_asked_to_stop_has_failed_unless_the_job_says_else() {
    check(
        "job completions=1\npod a ready deleting",
        expect![[r#"
        wait 10 s, terminating=1, counting failed a
        release a"#]],
    );
    check(
        "job completions=1 replace=Failed\npod a ready deleting",
        expect!["nothing, terminating=1"],
    );
    check(
        "job completions=1 replace=Failed\npod a failed deleting",
        expect![[r#"
            create 1, active=1, counting failed a
            release a"#]],
    );
}

#[test]
fn suspended_jobs_have_no_pods_and_resumed_ones_start_anew() {
    check(
        "job completions=3 parallelism=3 suspend\npod a ready\npod b succeeded",
        expect![[r#"
            remove a, terminating=1, counting succeeded b
            Suspended=True JobSuspended: Job suspended
            event Suspended
            release b"#]],
    );
    check(
        "job completions=3 parallelism=3 suspend condition=Suspended:JobSuspended",
        expect![[r#"
            remove none
            Suspended=True JobSuspended: Job suspended
            event Suspended"#]],
    );
    check(
        "job completions=3 parallelism=3 condition=Suspended:JobSuspended deadline=60 started=never",
        expect![[r#"
            create 3, active=3
            Suspended=False JobResumed: Job resumed
            event Resumed
            again in 60 s"#]],
    );
    check(
        "job completions=1 condition=Suspended:JobSuspended started=3\npod a",
        expect![[r#"
            nothing, active=1
            Suspended=False JobResumed: Job resumed
            event Resumed"#]],
    );
}

#[test]
fn who_is_counted_already_is_not_counted_again() {
    // The crash came after the first write: the uid is there, and so is the finalizer.
    check(
        "job completions=2 counting=a/\npod a succeeded",
        expect![[r#"
            create 1, active=1, counting succeeded a
            release a"#]],
    );
    // After the finalizer was removed.
    check(
        "job completions=2 counting=a/b\npod a succeeded counted",
        expect!["create 1, active=1, succeeded=1, failed=1"],
    );
    // After everything.
    check(
        "job completions=2 succeeded=1\npod a succeeded counted",
        expect!["create 1, active=1, succeeded=1"],
    );
}
