//! Jobs and CronJobs as users drive them, with real pods: to completion, by index, to failure and
//! why, suspended, cleaned up, by the clock and by hand.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};

/// `spec` and `pod` are in flow style, with a comma at the end of each entry.
fn job(name: &str, spec: &str, pod: &str, script: &str) -> String {
    format!(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {{ name: {name} }}
spec: {{ {spec} template: {{ spec: {{ {pod} terminationGracePeriodSeconds: 1,
  containers: [{{ name: work, image: "{IMAGE}", command: [sh, -c, "{script}"] }}] }} }} }}
"#
    )
}

fn condition(cluster: &Cluster, name: &str, kind: &str, field: &str) -> String {
    let path = format!("{{.status.conditions[?(@.type==\"{kind}\")].{field}}}");
    cluster.value(&["job", name], &path)
}

fn wait_condition(cluster: &Cluster, name: &str, kind: &str) {
    let condition = format!("--for=condition={kind}");
    let target = format!("job/{name}");
    cluster.kubectl(&["wait", &condition, &target, "--timeout=110s"]);
}

fn events_of(cluster: &Cluster, kind: &str, name: &str) -> String {
    let selector = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let path = "jsonpath={range .items[*]}{.reason}: {.message}{\"\\n\"}{end}";
    cluster.kubectl(&["get", "events", "--field-selector", &selector, "-o", path])
}

fn wait_event(cluster: &Cluster, kind: &str, name: &str, text: &str) {
    wait(text, || {
        events_of(cluster, kind, name).contains(text).then_some(())
    });
}

/// The cell of a column of the one row.
fn cell(cluster: &Cluster, name: &str, column: &str) -> String {
    let table = cluster.kubectl(&["get", "job", name]);
    let mut lines = table.lines().map(str::split_whitespace);
    let number = lines.next().unwrap().position(|one| one == column).unwrap();
    lines.next().unwrap().nth(number).unwrap().to_owned()
}

#[test]
fn jobs_run_to_completion() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "done");
    let never = "restartPolicy: Never,";
    cluster.apply(&job(
        "parallel",
        "completions: 4, parallelism: 2,",
        never,
        "echo done",
    ));
    let script = "echo index $JOB_COMPLETION_INDEX of $(hostname)";
    let spec = "completions: 3, parallelism: 3, completionMode: Indexed,";
    cluster.apply(&job("indexed", spec, never, script));

    wait_condition(&cluster, "parallel", "Complete");
    assert_eq!(
        cell(&cluster, "parallel", "COMPLETIONS"),
        "4/4",
        "{}",
        cluster.kubectl(&["get", "job"])
    );
    assert_eq!(cell(&cluster, "parallel", "STATUS"), "Complete");
    let phases = "{.items[*].status.phase}";
    let label = "batch.kubernetes.io/job-name=parallel";
    assert_eq!(
        cluster.value(&["pods", "-l", label], phases),
        "Succeeded Succeeded Succeeded Succeeded"
    );
    let finalizers = "{.items[*].metadata.finalizers}";
    assert_eq!(cluster.value(&["pods", "-l", label], finalizers), "");
    wait_event(&cluster, "Job", "parallel", "Completed: Job completed");
    wait("the creation of each pod is told", || {
        let events = events_of(&cluster, "Job", "parallel");
        let created = events.matches("SuccessfulCreate: Created pod: parallel-");
        (created.count() == 4).then_some(())
    });

    wait_condition(&cluster, "indexed", "Complete");
    let indexes = "{.status.completedIndexes}";
    assert_eq!(cluster.value(&["job", "indexed"], indexes), "0-2");
    let label = "batch.kubernetes.io/job-completion-index=1";
    let said = cluster.kubectl(&["logs", "-l", label]);
    assert_eq!(said, "index 1 of indexed-1\n");
    let described = cluster.kubectl(&["describe", "job", "indexed"]);
    for part in ["Completion Mode:", "Completed Indexes:", "0-2"] {
        assert!(described.contains(part), "{described}");
    }

    cluster.kubectl(&["delete", "job", "parallel", "indexed"]);
    wait("the pods go with their jobs", || {
        cluster
            .kubectl(&["get", "pods", "-o", "name"])
            .is_empty()
            .then_some(())
    });
}

#[test]
fn failures_end_a_job_as_its_limits_say() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "fail");
    let never = "restartPolicy: Never,";
    cluster.apply(&job("limit", "backoffLimit: 0,", never, "exit 3"));
    let policy = "backoffLimit: 6, podFailurePolicy: { rules: [
        { action: FailJob, onExitCodes: { operator: In, values: [42] } } ] },";
    cluster.apply(&job("policy", policy, never, "exit 42"));
    let per_index = "completions: 2, parallelism: 2, completionMode: Indexed,
        backoffLimitPerIndex: 0,";
    let script = "exit $JOB_COMPLETION_INDEX";
    cluster.apply(&job("index", per_index, never, script));
    let script = "while true; do sleep 1; done";
    cluster.apply(&job(
        "late",
        "activeDeadlineSeconds: 2, parallelism: 2,",
        never,
        script,
    ));

    for (name, reason, message) in [
        (
            "limit",
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        ),
        (
            "policy",
            "PodFailurePolicy",
            "Container work for pod default/policy-",
        ),
        ("index", "FailedIndexes", "Job has failed indexes"),
        (
            "late",
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ),
    ] {
        wait_condition(&cluster, name, "Failed");
        assert_eq!(condition(&cluster, name, "Failed", "reason"), reason);
        assert_eq!(condition(&cluster, name, "FailureTarget", "reason"), reason);
        let said = condition(&cluster, name, "Failed", "message");
        assert!(said.starts_with(message), "{said}");
        wait_event(&cluster, "Job", name, &format!("{reason}: {message}"));
    }
    let said = condition(&cluster, "policy", "Failed", "message");
    let rule = "failed with exit code 42 matching FailJob rule at index 0";
    assert!(said.ends_with(rule), "{said}");
    let status =
        |name: &str, field: &str| cluster.value(&["job", name], &format!("{{.status.{field}}}"));
    assert_eq!(status("limit", "failed"), "1");
    assert_eq!(status("policy", "failed"), "1");
    assert_eq!(status("late", "failed"), "2");
    assert_eq!(status("index", "failedIndexes"), "1");
    assert_eq!(status("index", "completedIndexes"), "0");
    assert_eq!(cell(&cluster, "limit", "STATUS"), "Failed");
}

#[test]
fn a_job_is_suspended_and_resumed_and_goes_after_its_time() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "pause");
    let spec = "suspend: true, ttlSecondsAfterFinished: 1,";
    let script = "while [ ! -e /tmp/go ]; do sleep 1; done";
    cluster.apply(&job("pause", spec, "restartPolicy: Never,", script));
    let suspend = |on: bool| {
        let patch = format!("{{\"spec\":{{\"suspend\":{on}}}}}");
        cluster.kubectl(&["patch", "job", "pause", "-p", &patch]);
    };
    wait_condition(&cluster, "pause", "Suspended");
    wait_event(&cluster, "Job", "pause", "Suspended: Job suspended");
    assert_eq!(cell(&cluster, "pause", "STATUS"), "Suspended");
    assert_eq!(cluster.kubectl(&["get", "pods", "-o", "name"]), "");

    suspend(false);
    cluster.wait_value(&["job", "pause"], "{.status.ready}", "1");
    assert_eq!(condition(&cluster, "pause", "Suspended", "status"), "False");
    wait_event(&cluster, "Job", "pause", "Resumed: Job resumed");
    suspend(true);
    wait("the pod goes, and counts for nothing", || {
        let none = cluster.kubectl(&["get", "pods", "-o", "name"]).is_empty();
        none.then_some(())
    });
    cluster.wait_value(&["job", "pause"], "{.status.terminating}", "0");
    assert_eq!(cluster.value(&["job", "pause"], "{.status.active}"), "");
    assert_eq!(cluster.value(&["job", "pause"], "{.status.failed}"), "");
    suspend(false);
    cluster.wait_value(&["job", "pause"], "{.status.ready}", "1");
    let pod = cluster.value(&["pods"], "{.items[0].metadata.name}");
    cluster.kubectl(&["exec", &pod, "--", "touch", "/tmp/go"]);
    wait("the job and its pod are cleaned up", || {
        let left = cluster.kubectl(&["get", "jobs,pods", "-o", "name"]);
        left.is_empty().then_some(())
    });
}

#[test]
fn a_cron_job_starts_jobs_by_the_clock_and_by_hand() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "cron");
    cluster.apply(&format!(
        r#"
apiVersion: batch/v1
kind: CronJob
metadata: {{ name: tick }}
spec:
  schedule: "* * * * *"
  timeZone: Asia/Kolkata
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - {{ name: work, image: "{IMAGE}", command: [sh, -c, "echo tick"] }}
"#
    ));
    cluster.kubectl(&["create", "job", "by-hand", "--from=cronjob/tick"]);
    wait_condition(&cluster, "by-hand", "Complete");
    let annotation = "{.metadata.annotations.cronjob\\.kubernetes\\.io/instantiate}";
    assert_eq!(cluster.value(&["job", "by-hand"], annotation), "manual");

    wait("a job of the clock's succeeds", || {
        let last = cluster.value(&["cronjob", "tick"], "{.status.lastSuccessfulTime}");
        (!last.is_empty()).then_some(())
    });
    wait_event(
        &cluster,
        "CronJob",
        "tick",
        "SuccessfulCreate: Created job tick-",
    );
    wait_event(
        &cluster,
        "CronJob",
        "tick",
        "SawCompletedJob: Saw completed job: tick-",
    );
    let jobs = cluster.value(&["jobs"], "{.items[*].metadata.name}");
    let ticked = jobs.split(' ').find(|name| name.starts_with("tick-"));
    let due = "{.metadata.annotations.batch\\.kubernetes\\.io/cronjob-scheduled-timestamp}";
    let due = cluster.value(&["job", ticked.unwrap()], due);
    assert!(due.ends_with(":00+05:30"), "{due}");

    cluster.kubectl(&["delete", "cronjob", "tick"]);
    wait("its jobs and pods go with it", || {
        let left = cluster.kubectl(&["get", "jobs,pods", "-o", "name"]);
        left.is_empty().then_some(())
    });
}
