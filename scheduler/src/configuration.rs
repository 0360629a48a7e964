//! A KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`) in YAML or JSON: which profiles
//! there are, with which plugins and arguments, and how pods wait.
//!
//! Strict: what is not known, or known and of no use here, is an error, in upstream's words where
//! upstream has it. Pure.

use crate::framework::Point;
use crate::plugins::registry::Plan;
use crate::pod_info::DEFAULT_SCHEDULER;
use crate::queue::Backoff;
use coracle_api::field::{ErrorList, FieldError, Path};
use std::time::Duration;

mod arguments; // Of plugins.
mod document; // The file as it is written.
mod election; // How one of several schedulers is chosen.
mod plugins; // Which plugins take part where.
mod shown; // As JSON.

pub use election::LeaderElection;

use document::{Document, Profile};

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";
/// Both bounds of a backoff, in seconds, unless the file says otherwise.
const BACKOFF_SECONDS: (i64, i64) = (1, 10);
/// More cannot be added to every time; it is 68 years.
const SECONDS_MAX: i64 = i32::MAX as i64;

#[derive(Clone, Debug)]
pub struct Configuration {
    /// At least one; of different names.
    pub profiles: Vec<Plan>,
    pub backoff: Backoff,
    pub election: LeaderElection,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            profiles: vec![Plan::new(DEFAULT_SCHEDULER)],
            backoff: Backoff::default(),
            election: LeaderElection::default(),
        }
    }
}

/// For the operator, one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigurationError(String);

pub fn read(text: &str) -> Result<Configuration, ConfigurationError> {
    let document: Document =
        serde_yaml_ng::from_str(text).map_err(|error| ConfigurationError(error.to_string()))?;
    of_kind(&document)?;
    strict(document.unknown())?;
    let mut errors = ErrorList::new();
    let (initial, max) = backoff_seconds(&document, &mut errors);
    if let Some(count) = document.parallelism.filter(|count| *count <= 0) {
        let why = "should be an integer value greater than zero";
        errors.push(FieldError::invalid(&Path::root("parallelism"), count, why));
    }
    if document.extenders.iter().flatten().next().is_some() {
        let why = "no extenders are called";
        errors.push(FieldError::forbidden(&Path::root("extenders"), why));
    }
    let path = Path::root("percentageOfNodesToScore");
    let percentage = percentage(document.percentage_of_nodes_to_score, &path, &mut errors);
    let election = election::read(document.leader_election.as_ref(), &mut errors);
    let plans = profiles(&document, percentage.unwrap_or(0), &mut errors)?;
    told(&errors)?;
    Ok(Configuration {
        profiles: plans,
        backoff: Backoff {
            initial: Duration::from_secs(initial.unsigned_abs()),
            max: Duration::from_secs(max.unsigned_abs()),
        },
        election,
    })
}

fn of_kind(document: &Document) -> Result<(), ConfigurationError> {
    let (version, kind) = (&document.api_version, &document.kind);
    if version.is_empty() || kind.is_empty() {
        let what = if kind.is_empty() {
            "kind"
        } else {
            "apiVersion"
        };
        let text = format!("Object '{what}' is missing");
        return Err(ConfigurationError(text));
    }
    if version != API_VERSION || kind != KIND {
        let text = format!("no kind {kind:?} is registered for version {version:?}");
        return Err(ConfigurationError(text));
    }
    Ok(())
}

fn strict(unknown: Vec<String>) -> Result<(), ConfigurationError> {
    if unknown.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = unknown
        .iter()
        .map(|field| format!("unknown field {field:?}"))
        .collect();
    let text = format!("strict decoding error: {}", texts.join(", "));
    Err(ConfigurationError(text))
}

fn told(errors: &ErrorList) -> Result<(), ConfigurationError> {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(ConfigurationError(one.clone())),
        many => Err(ConfigurationError(format!("[{}]", many.join(", ")))),
    }
}

fn backoff_seconds(document: &Document, errors: &mut ErrorList) -> (i64, i64) {
    let initial = document
        .pod_initial_backoff_seconds
        .unwrap_or(BACKOFF_SECONDS.0);
    let max = document
        .pod_max_backoff_seconds
        .unwrap_or(BACKOFF_SECONDS.1);
    if initial <= 0 {
        let path = Path::root("podInitialBackoffSeconds");
        errors.push(FieldError::invalid(
            &path,
            initial,
            "must be greater than 0",
        ));
    }
    if max > SECONDS_MAX {
        let path = Path::root("podMaxBackoffSeconds");
        let why = format!("must be less than or equal to {SECONDS_MAX}");
        errors.push(FieldError::invalid(&path, max, why));
    }
    if max < initial {
        let path = Path::root("podMaxBackoffSeconds");
        let why = "must be greater than or equal to PodInitialBackoffSeconds";
        errors.push(FieldError::invalid(&path, max, why));
    }
    (initial, max)
}

fn percentage(value: Option<i64>, path: &Path, errors: &mut ErrorList) -> Option<usize> {
    let value = value?;
    if !(0..=100).contains(&value) {
        errors.push(FieldError::invalid(
            path,
            value,
            "not in valid range [0-100]",
        ));
    }
    usize::try_from(value).ok()
}

fn profiles(
    document: &Document,
    percentage_of_all: usize,
    errors: &mut ErrorList,
) -> Result<Vec<Plan>, ConfigurationError> {
    let default = [Profile::default()];
    let written = document.profiles.as_deref().unwrap_or(&[]);
    let written = if written.is_empty() {
        &default
    } else {
        written
    };
    let path = Path::root("profiles");
    let mut plans: Vec<Plan> = Vec::new();
    for (index, profile) in written.iter().enumerate() {
        let path_of = path.index(index);
        let name = match &profile.scheduler_name {
            None if written.len() == 1 => DEFAULT_SCHEDULER,
            name => name.as_deref().unwrap_or(""),
        };
        if name.is_empty() {
            errors.push(FieldError::required(&path_of.child("schedulerName"), ""));
        } else if let Some(first) = plans.iter().position(|plan| plan.scheduler_name == name) {
            let first = path.index(first).child("schedulerName");
            errors.push(
                FieldError::duplicate(&path_of.child("schedulerName"), "").shown_as(first.as_str()),
            );
        }
        let mut plan = Plan::new(name);
        let field = path_of.child("percentageOfNodesToScore");
        let own = percentage(profile.percentage_of_nodes_to_score, &field, errors);
        plan.percentage_of_nodes = own.unwrap_or(percentage_of_all);
        arguments::read(&profile.plugin_config, index, &mut plan.arguments, errors)
            .and_then(|()| {
                let written = profile.plugins.as_ref();
                plugins::choose(written, &path_of.child("plugins"), &mut plan, errors)
            })
            .map_err(ConfigurationError)?;
        plans.push(plan);
    }
    let sorts = |plan: &Plan| plan.by_point[Point::QueueSort as usize].clone();
    let others = plans.iter().enumerate().skip(1);
    for (index, _) in others.filter(|(_, plan)| sorts(plan) != sorts(&plans[0])) {
        let path = path.index(index).child("plugins").child("queueSort");
        let why = "must be the same for all profiles";
        errors.push(FieldError::invalid_unshown(&path, why));
    }
    Ok(plans)
}

#[cfg(test)]
mod tests;
