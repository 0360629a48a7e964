//! Cron jobs: jobs made by the clock.

mod validate;

use crate::field::{ErrorList, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::{job, prepare, workload};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print, scale};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["cj"],
    categories: &["all"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "batch",
        "v1",
        Names {
            kind: "CronJob",
            plural: "cronjobs",
            singular: "cronjob",
            schema: "io.k8s.api.batch.v1.CronJob",
        },
        &CronJob,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Schedule", "string", "When jobs are made."),
    column("Timezone", "string", "Whose clock the schedule means."),
    column("Suspend", "boolean", "Whether no jobs are made for now."),
    column("Active", "integer", "How many of its jobs run."),
    column("Last Schedule", "string", "When a job was last made."),
    row::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR,
];

const SUCCESSFUL_JOBS_KEPT: i64 = 3;
const FAILED_JOBS_KEPT: i64 = 1;

#[derive(Debug)]
struct CronJob;

impl Rules for CronJob {
    fn default(&self, object: &mut Object) {
        if let Some(spec) = json::spec_mut(object.root_mut()) {
            json::default_text(spec, "concurrencyPolicy", "Allow");
            json::default(spec, "suspend", false);
            json::default(spec, "successfulJobsHistoryLimit", SUCCESSFUL_JOBS_KEPT);
            json::default(spec, "failedJobsHistoryLimit", FAILED_JOBS_KEPT);
            json::default(spec, "jobTemplate", json!({}));
            json::default(&mut spec["jobTemplate"], "spec", json!({}));
            job::default_template(&mut spec["jobTemplate"]["spec"]);
        }
        json::default_in(object.root_mut(), "status", json!({}));
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::create(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => ErrorList::new(),
            Part::Main | Part::Other(_) => validate::spec(new, Some(old)),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let or_none = |text: &str| if text.is_empty() { "<none>" } else { text }.to_owned();
        let last = match object.str(&["status", "lastScheduleTime"]) {
            "" => "<none>".to_owned(),
            time => print::age(time, now),
        };
        let template: &[&str] = &["spec", "jobTemplate", "spec"];
        let job = object.get(template).unwrap_or(&json::NULL);
        let [names, images] = workload::container_cells_of(job);
        let suspend = match object.get(&["spec", "suspend"]).and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        vec![
            object.name().into(),
            object.str(&["spec", "schedule"]).into(),
            or_none(object.str(&["spec", "timeZone"])).into(),
            suspend.into(),
            object.list(&["status", "active"]).len().into(),
            last.into(),
            print::age_of(object, now),
            names,
            images,
            workload::selector_cell(&scale::selector_text(json::get(job, "selector"))),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let mut warnings = workload::name_warnings(object, "Pod names and hostnames");
        let path = Path::root("spec").child("jobTemplate").child("spec");
        let spec = object
            .get(&["spec", "jobTemplate", "spec"])
            .unwrap_or(&json::NULL);
        warnings.extend(job::spec_warnings(spec, &path));
        warnings
    }
}

#[cfg(test)]
mod tests;
