//! Defaults, printed cells, schedules and zones of a CronJob.

use crate::kinds::testing::{check_errors, check_row, check_spec, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn nightly() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": { "name": "nightly", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": {
            "schedule": "0 3 * * *", "timeZone": "Europe/Berlin",
            "jobTemplate": { "spec": { "template": { "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "main", "image": "report:1" }],
            } } } },
        },
    })
}

#[test]
fn defaults() {
    check_spec(
        "cronjobs",
        nightly(),
        expect![[r#"
        concurrencyPolicy: "Allow"
        failedJobsHistoryLimit: 1
        jobTemplate: {"spec":{"template":{"spec":{"containers":[{"image":"report:1","imagePullPolicy":"IfNotPresent","name":"main","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Never","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}
        schedule: "0 3 * * *"
        successfulJobsHistoryLimit: 3
        suspend: false
        timeZone: "Europe/Berlin""#]],
    );
}

#[test]
fn printed() {
    let mut nightly = nightly();
    nightly["status"] = json!({
        "active": [{ "name": "nightly-1" }], "lastScheduleTime": "1970-01-01T00:02:00Z",
    });
    check_row(
        "cronjobs",
        nightly,
        200,
        expect![[r#"
        Name: nightly
        Schedule: 0 3 * * *
        Timezone: Europe/Berlin
        Suspend: False
        Active: 1 (number)
        Last Schedule: 80s
        Age: 3m20s
        Containers: main
        Images: report:1
        Selector: <none>"#]],
    );
}

#[test]
fn schedules_and_zones() {
    let mut bad = nightly();
    bad["metadata"]["name"] = "n".repeat(53).into();
    bad["spec"]["schedule"] = "TZ=UTC 61 * * * *".into();
    bad["spec"]["timeZone"] = "Mars/Base".into();
    bad["spec"]["concurrencyPolicy"] = "Maybe".into();
    bad["spec"]["jobTemplate"]["spec"]["selector"] = json!({ "matchLabels": { "a": "b" } });
    bad["spec"]["jobTemplate"]["spec"]["manualSelector"] = true.into();
    check_errors(
        "cronjobs",
        bad,
        expect![[r#"
        spec.schedule: Invalid value: "TZ=UTC 61 * * * *": end of range (61) above maximum (59): 61
        spec.schedule: Invalid value: "TZ=UTC 61 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
        spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base
        spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"
        spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated
        spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"
        metadata.name: Invalid value: "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn": must be no more than 52 characters"#]],
    );
    let mut bad = nightly();
    bad["spec"]["schedule"] = "".into();
    bad["spec"]["timeZone"] = "../etc".into();
    check_errors(
        "cronjobs",
        bad,
        expect![[r#"
        spec.schedule: Required value
        spec.timeZone: Invalid value: "../etc": unknown time zone ../etc"#]],
    );
}

#[test]
fn a_schedule_of_old_may_name_its_zone() {
    let mut old = nightly();
    old["spec"]["schedule"] = "TZ=UTC 0 3 * * *".into();
    let mut new = old.clone();
    new["spec"]["timeZone"] = Value::Null;
    new["spec"]["suspend"] = true.into();
    update_errors("cronjobs", new, old.clone(), Part::Main, expect![[""]]);
    update_errors(
        "cronjobs",
        old.clone(),
        old,
        Part::Main,
        expect![[
            r#"spec.schedule: Invalid value: "TZ=UTC 0 3 * * *": cannot use both timeZone field and TZ or CRON_TZ in schedule"#
        ]],
    );
}
