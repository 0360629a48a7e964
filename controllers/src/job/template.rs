//! The pods that a job's template describes. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec,
};

use super::failure_policy::judge;
use super::plan::Pass;
use super::seen::{self, FINALIZER, INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES};
use crate::pod_control::pod_from;

const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest prefix for which a generated name is a label of 63 characters at most.
const INDEXED_PREFIX_MAX: usize = 58;

/// The pod of an index, or of a job that has none.
pub(super) fn pod(pass: &Pass<'_>, index: Option<i32>) -> Pod {
    let mut pod = pod_from(pass.job, pass.spec.template);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    if let Some(index) = index {
        give_index(&mut pod, pass, index);
    }
    pod
}

fn give_index(pod: &mut Pod, pass: &Pass<'_>, index: i32) {
    let name = pass.job.metadata.name.as_deref().unwrap_or_default();
    pod.metadata.generate_name = Some(indexed_prefix(name, index));
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{name}-{index}"));
    add_variable(spec);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(INDEX.to_owned(), index.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    if pass.spec.backoff_limit_per_index.is_some() {
        let replaced = pass.awaiting_replacement.get(&index);
        take_over_failures(annotations, pass, replaced.map(AsRef::as_ref));
    }
}

/// The failures of an index go from pod to pod: who counts them needs to see the last one alone.
fn take_over_failures(
    annotations: &mut BTreeMap<String, String>,
    pass: &Pass<'_>,
    replaced: Option<&Pod>,
) {
    let (mut failures, mut ignored) = (0, 0);
    if let Some(replaced) = replaced {
        failures = seen::index_failures(replaced);
        ignored = seen::index_ignored_failures(replaced);
        let count = if judge(pass.spec.failure_policy, replaced).counts() {
            &mut failures
        } else {
            &mut ignored
        };
        *count = count.saturating_add(1);
    }
    annotations.insert(INDEX_FAILURES.to_owned(), failures.to_string());
    if ignored > 0 {
        annotations.insert(INDEX_IGNORED_FAILURES.to_owned(), ignored.to_string());
    }
}

fn indexed_prefix(name: &str, index: i32) -> String {
    let suffix = format!("-{index}-");
    let keep = INDEXED_PREFIX_MAX.saturating_sub(suffix.len());
    let name = name.get(..keep.min(name.len())).unwrap_or(name);
    format!("{name}{suffix}")
}

fn add_variable(spec: &mut PodSpec) {
    let initial = spec.init_containers.iter_mut().flatten();
    for container in initial.chain(&mut spec.containers) {
        add_variable_to(container);
    }
}

/// A variable of the user's own of this name stays.
fn add_variable_to(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|one| one.name == INDEX_VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        api_version: None,
    };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..EnvVarSource::default()
        }),
    });
}
