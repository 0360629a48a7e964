//! Defaults, selectors, policies, printed cells, updates and status rules of a Job.

use super::{Job, generate_selector, indexes};
use crate::kinds::testing::{check_errors, check_row, check_spec, defaulted, object, resource};
use crate::object::Object;
use crate::resource::{Part, Requester, Rules};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn report() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "report", "uid": "u-1", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "report:1" }],
        } } },
    })
}

fn with_spec(extra: Value) -> Value {
    let mut job = report();
    for (name, value) in extra.as_object().unwrap() {
        job["spec"][name] = value.clone();
    }
    job
}

/// A job as it is stored.
fn stored(value: Value) -> Object {
    let mut job = defaulted("jobs", value);
    Job.stamp(&mut job, None, Part::Main, &Requester::default(), "");
    job
}

fn check_create(value: Value, expected: Expect) {
    let job = stored(value);
    let errors: Vec<String> = Job
        .validate_create(&job)
        .iter()
        .map(ToString::to_string)
        .collect();
    expected.assert_eq(&errors.join("\n"));
}

fn check_update(new: &Object, old: &Object, part: Part<'_>, expected: Expect) {
    let rules = resource("jobs").rules;
    let errors = rules.validate_update(new, old, part);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&errors.join("\n"));
}

#[test]
fn defaults() {
    check_spec(
        "jobs",
        report(),
        expect![[r#"
        backoffLimit: 6
        completionMode: "NonIndexed"
        completions: 1
        manualSelector: false
        parallelism: 1
        podReplacementPolicy: "TerminatingOrFailed"
        suspend: false
        template: {"spec":{"containers":[{"image":"report:1","imagePullPolicy":"IfNotPresent","name":"main","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Never","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}"#]],
    );
    let limited = json!({ "completionMode": "Indexed", "backoffLimitPerIndex": 1 });
    let job = defaulted("jobs", with_spec(limited));
    assert_eq!(job.i64(&["spec", "backoffLimit"]), Some(2_147_483_647));
}

#[test]
fn the_selector_is_made_and_labels_follow() {
    let mut job = defaulted("jobs", report());
    generate_selector(&mut job);
    assert_eq!(
        job.get(&["spec", "selector"]),
        Some(&json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": "u-1" } }))
    );
    let labels = job.get(&["spec", "template", "metadata", "labels"]);
    assert_eq!(
        labels,
        Some(&json!({
            "batch.kubernetes.io/controller-uid": "u-1",
            "batch.kubernetes.io/job-name": "report",
            "controller-uid": "u-1", "job-name": "report",
        }))
    );
    assert_eq!(job.get(&["metadata", "labels"]), labels);
    let mut own = report();
    own["metadata"]["labels"] = json!({ "mine": "1" });
    assert_eq!(stored(own).labels().count(), 1, "a job's own stay alone");
    let mut labelled = report();
    labelled["spec"]["template"]["metadata"] = json!({ "labels": { "app": "r" } });
    let job = stored(labelled);
    assert_eq!(job.labels().count(), 5, "they were the template's");
    check_create(report(), expect![[""]]);
    let foreign = json!({ "selector": { "matchLabels": { "a": "b" } } });
    check_create(
        with_spec(foreign),
        expect![[r#"
        spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"u-1"}}: `selector` not auto-generated
        spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"u-1","batch.kubernetes.io/job-name":"report","controller-uid":"u-1","job-name":"report"}: `selector` does not match template `labels`"#]],
    );
    check_errors(
        "jobs",
        with_spec(json!({ "manualSelector": true })),
        expect![[r#"
            spec.selector: Required value
            spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"#]],
    );
}

#[test]
fn modes_and_limits() {
    let indexed = json!({
        "completionMode": "Indexed", "completions": 200_000, "parallelism": 20_000,
        "backoffLimitPerIndex": 1,
    });
    check_create(
        with_spec(indexed),
        expect![[r#"
        spec.parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index
        spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"#]],
    );
    let plain = json!({ "backoffLimitPerIndex": 1, "maxFailedIndexes": 2, "managedBy": "me" });
    check_create(
        with_spec(plain),
        expect![[r#"
        spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")
        spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode
        spec.maxFailedIndexes: Invalid value: 2: requires indexed completion mode"#]],
    );
    let mut wrong = with_spec(json!({ "completionMode": "Some" }));
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Always".into();
    check_create(
        wrong,
        expect![[r#"
        spec.completionMode: Unsupported value: "Some": supported values: "NonIndexed", "Indexed"
        spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#]],
    );
}

#[test]
fn policies() {
    let failure = json!({ "podFailurePolicy": { "rules": [
        {},
        { "action": "Count", "onExitCodes": {
            "operator": "In", "values": [0, 3, 2, 2], "containerName": "other",
        } },
        { "action": "FailIndex", "onPodConditions": [{ "type": "a b", "status": "Maybe" }] },
    ] }, "podReplacementPolicy": "TerminatingOrFailed" });
    check_create(
        with_spec(failure),
        expect![[r#"
        spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]
        spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required
        spec.podFailurePolicy.rules[1].onExitCodes.containerName: Invalid value: "other": must be one of the container or initContainer names in the pod template
        spec.podFailurePolicy.rules[1].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator
        spec.podFailurePolicy.rules[1].onExitCodes.values[3]: Duplicate value: 2
        spec.podFailurePolicy.rules[1].onExitCodes.values: Invalid value: [0,3,2,2]: must be ordered
        spec.podFailurePolicy.rules[2].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set
        spec.podFailurePolicy.rules[2].onPodConditions[0].type: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        spec.podFailurePolicy.rules[2].onPodConditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"
        spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed""#]],
    );
    let success = json!({ "completionMode": "Indexed", "completions": 3, "successPolicy": {
        "rules": [
            {}, { "succeededIndexes": "0-9" }, { "succeededIndexes": "0", "succeededCount": 2 },
        ],
    } });
    check_create(
        with_spec(success),
        expect![[r#"
        spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified
        spec.successPolicy.rules[1].succeededIndexes: Invalid value: "0-9": error parsing succeededIndexes: too large index: "9"
        spec.successPolicy.rules[2].succeededCount: Invalid value: 2: must be less than or equal to 1 (the number of indexes in the specified succeededIndexes field)"#]],
    );
}

#[test]
fn indexes_as_text() {
    assert_eq!(indexes::count("", 3), Ok(0));
    assert_eq!(indexes::count("0,2-4", 5), Ok(4));
    assert_eq!(
        indexes::count("1,0", 5).unwrap_err(),
        "non-increasing order, previous: 1, current: 0"
    );
    assert_eq!(
        indexes::count("9", 5).unwrap_err(),
        "too large index: \"9\""
    );
    assert_eq!(indexes::overlap("0-2,5", "3,5-6", 9), Some(5));
    assert_eq!(indexes::overlap("0-2", "3,5", 9), None);
}

#[test]
fn a_suspended_job_may_be_sent_elsewhere() {
    let old = stored(with_spec(json!({ "suspend": true })));
    let mut new = old.clone();
    let pod = ["spec", "template", "spec", "nodeSelector"];
    new.set(&pod, json!({ "disk": "ssd" }));
    new.set(
        &["spec", "template", "spec", "containers"],
        json!([{
            "name": "main", "image": "report:1", "imagePullPolicy": "IfNotPresent",
            "resources": { "requests": { "cpu": "1" } },
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        }]),
    );
    check_update(&new, &old, Part::Main, expect![[""]]);
    let mut started = old.clone();
    started.set(&["status", "active"], 1.into());
    let errors = Job.validate_update(&new, &started, Part::Main);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path.as_str(), "spec.template");
}

#[test]
fn completions_move_with_parallelism_when_indexed() {
    let old = stored(with_spec(
        json!({ "completionMode": "Indexed", "completions": 3 }),
    ));
    let mut new = old.clone();
    new.set(&["spec", "completions"], 4.into());
    check_update(
        &new,
        &old,
        Part::Main,
        expect![
            "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"
        ],
    );
    new.set(&["spec", "parallelism"], 4.into());
    check_update(&new, &old, Part::Main, expect![[""]]);
}

#[test]
fn a_status_is_consistent() {
    let old = stored(report());
    let with = |status: Value| {
        let mut new = old.clone();
        new.set(&["status"], status);
        new
    };
    let is = |kinds: &[&str]| -> Value {
        let all = kinds
            .iter()
            .map(|kind| json!({ "type": kind, "status": "True" }));
        all.collect()
    };
    let bare = with(json!({ "conditions": is(&["Complete"]) }));
    check_update(
        &bare,
        &old,
        Part::Status,
        expect![[r#"
        status.completionTime: Required value: completionTime is required for Complete jobs
        status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition
        status.startTime: Required value: startTime is required for finished job"#]],
    );
    let good = with(json!({
        "conditions": is(&["SuccessCriteriaMet", "Complete"]),
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:05Z",
        "succeeded": 1,
    }));
    check_update(&good, &old, Part::Status, expect![[""]]);
    check_update(
        &old,
        &good,
        Part::Status,
        expect![[r#"
        status.conditions: Invalid value: cannot disable the terminal Complete=True condition
        status.succeeded: Invalid value: 0: cannot decrease the succeeded counter
        status.startTime: Invalid value: null: field is immutable for unsuspended job once set
        status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition"#]],
    );
    let failed = with(json!({
        "conditions": is(&["Failed"]), "active": 1, "ready": 2, "completedIndexes": "0",
        "uncountedTerminatedPods": { "failed": ["a", "a", ""] },
    }));
    check_update(
        &failed,
        &old,
        Part::Status,
        expect![[r#"
        status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"
        status.uncountedTerminatedPods.failed[2]: Invalid value: "": must not be empty
        status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition
        status.active: Invalid value: 1: active>0 is invalid for finished job
        status.startTime: Required value: startTime is required for finished job
        status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a","a",""]}: must be empty for finished job
        status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode
        status.ready: Invalid value: 2: cannot set more ready pods than active"#]],
    );
}

#[test]
fn printed() {
    let mut job = report();
    job["status"] = json!({
        "succeeded": 1, "startTime": "1970-01-01T00:00:10Z",
        "completionTime": "1970-01-01T00:01:00Z",
        "conditions": [{ "type": "Complete", "status": "True" }],
    });
    check_row(
        "jobs",
        job,
        200,
        expect![[r#"
        Name: report
        Status: Complete
        Completions: 1/1
        Duration: 50s
        Age: 3m20s
        Containers: main
        Images: report:1
        Selector: <none>"#]],
    );
    assert_eq!(
        Job.field(
            &object(json!({ "status": { "succeeded": 2 } })),
            "status.successful"
        ),
        "2"
    );
}
