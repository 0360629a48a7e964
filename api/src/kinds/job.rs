//! Jobs: pods that run to their end.
//!
//! A job that does not bring its own selector gets one that fits its pods alone.

pub mod validate;

mod indexes;
mod policies;
mod status;
mod update;

use crate::field::ErrorList;
use crate::kinds::row::{self, Names, column};
use crate::kinds::{prepare, workload};
use crate::object::Object;
use crate::pod_spec;
use crate::resource::{Column, Part, Requester, Resource, Rules};
use crate::{field::Path, json, print, scale};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    categories: &["all"],
    subresources: &[row::STATUS],
    selectable_fields: &["status.successful"],
    ..row::namespaced(
        "batch",
        "v1",
        Names {
            kind: "Job",
            plural: "jobs",
            singular: "job",
            schema: "io.k8s.api.batch.v1.Job",
        },
        &Job,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Status", "string", "Status of the job."),
    column("Completions", "string", "How many pods ran to their end."),
    column("Duration", "string", "Time required to complete the job."),
    row::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR,
];

const BACKOFF_LIMIT: i64 = 6;
/// With a limit an index, the limit of the job as a whole is out of the way.
const BACKOFF_LIMIT_NONE: i64 = i32::MAX as i64;

/// Labels of the pods of a job: the name of now, and the one of old.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

const TEMPLATE_LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];

#[derive(Debug)]
struct Job;

impl Rules for Job {
    fn default(&self, object: &mut Object) {
        if let Some(spec) = json::spec_mut(object.root_mut()) {
            default_spec(spec);
            default_template(spec);
        }
        let labels = object.get(&TEMPLATE_LABELS).cloned();
        let has_own = object.labels().next().is_some();
        if let Some(labels) = labels.filter(|labels| labels.is_object() && !has_own) {
            object.set(&["metadata", "labels"], labels);
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

    fn stamp(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        _now: &str,
    ) {
        if old.is_none() && !object.bool(&["spec", "manualSelector"]) {
            generate_selector(object);
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::job(object, true)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => status::update(new, old),
            Part::Main | Part::Other(_) => update::update(new, old),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let [names, images] = workload::container_cells(object);
        let selector = object.get(&["spec", "selector"]).unwrap_or(&json::NULL);
        vec![
            object.name().into(),
            state(object).into(),
            completions(object).into(),
            duration(object, now).into(),
            print::age_of(object, now),
            names,
            images,
            workload::selector_cell(&scale::selector_text(selector)),
        ]
    }

    fn field(&self, object: &Object, name: &str) -> String {
        match name {
            "status.successful" => count(object, "succeeded").to_string(),
            _ => String::new(),
        }
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let mut warnings = workload::name_warnings(object, "Pod names and hostnames");
        let spec = object.get(&["spec"]).unwrap_or(&json::NULL);
        warnings.extend(spec_warnings(spec, &Path::root("spec")));
        warnings
    }
}

/// Of a job, and not of the template of a cron job.
fn default_spec(spec: &mut Value) {
    if !json::has(spec, "parallelism") {
        json::default(spec, "completions", 1);
        json::default(spec, "parallelism", 1);
    }
    let limit = if json::has(spec, "backoffLimitPerIndex") {
        BACKOFF_LIMIT_NONE
    } else {
        BACKOFF_LIMIT
    };
    json::default(spec, "backoffLimit", limit);
    json::default(spec, "completionMode", "NonIndexed");
    json::default(spec, "suspend", false);
    let replacement = if json::has(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    json::default(spec, "podReplacementPolicy", replacement);
    json::default(spec, "manualSelector", false);
}

/// What jobs and templates of jobs have filled in alike.
pub fn default_template(spec: &mut Value) {
    json::default(spec, "template", json!({}));
    pod_spec::defaults::template(&mut spec["template"]);
    let Some(policy) = json::object_mut(spec, "podFailurePolicy") else {
        return;
    };
    for rule in json::list_mut(policy, "rules") {
        for pattern in json::list_mut(rule, "onPodConditions") {
            json::default_text(pattern, "status", "True");
        }
    }
}

/// What a client set itself stays, and is refused where it does not fit.
fn generate_selector(job: &mut Object) {
    // Labels that were taken from the template get what it gets. Where neither had any, upstream
    // takes them when it reads the stored job.
    let own = job.get(&["metadata", "labels"]);
    let shares = job.labels().next().is_none() || own == job.get(&TEMPLATE_LABELS);
    let (name, uid) = (job.name().to_owned(), job.uid().to_owned());
    let pairs = NAME_LABELS
        .iter()
        .map(|label| (*label, &name))
        .chain(UID_LABELS.iter().map(|label| (*label, &uid)));
    for (label, value) in pairs {
        let path = ["spec", "template", "metadata", "labels", label];
        if job.get(&path).is_none() {
            job.set(&path, value.as_str().into());
        }
    }
    if let Some(labels) = job.get(&TEMPLATE_LABELS).filter(|_| shares).cloned() {
        job.set(&["metadata", "labels"], labels);
    }
    let path = ["spec", "selector", "matchLabels", UID_LABELS[1]];
    if job.get(&path).is_none() {
        job.set(&path, uid.into());
    }
}

fn count(job: &Object, name: &str) -> i64 {
    job.i64(&["status", name]).unwrap_or(0)
}

pub fn has_condition(job: &Object, kind: &str, status: &str) -> bool {
    job.list(&["status", "conditions"])
        .iter()
        .any(|one| json::text(one, "type") == kind && json::text(one, "status") == status)
}

fn state(job: &Object) -> &'static str {
    let is = |kind: &str| has_condition(job, kind, "True");
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if job.is_deleting() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Object) -> String {
    let succeeded = count(job, "succeeded");
    let parallelism = job.i64(&["spec", "parallelism"]).unwrap_or(0);
    match job.i64(&["spec", "completions"]) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration(job: &Object, now: i64) -> String {
    let time = |name: &str| print::epoch_seconds(job.str(&["status", name]));
    match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => print::human_duration(end.unwrap_or(now) - start),
    }
}

/// Of a job's spec, wherever it stands.
pub fn spec_warnings(spec: &Value, path: &Path) -> Vec<String> {
    const COMPLETIONS_MAX: i64 = 100_000;
    const PARALLELISM_MAX: i64 = 10_000;
    let number = |name: &str| json::int(spec, name).unwrap_or(0);
    let mut warnings = Vec::new();
    if json::text(spec, "completionMode") == "Indexed"
        && number("completions") > COMPLETIONS_MAX
        && number("parallelism") > PARALLELISM_MAX
    {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a \
             parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes \
             when a big number of indexes fail"
        ));
    }
    let template = json::get(spec, "template");
    let path = path.child("template");
    warnings.extend(pod_spec::warnings::of_template(template, &path));
    warnings
}

#[cfg(test)]
mod tests;
