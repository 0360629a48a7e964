//! PodSecurity: what pods may have of the node they run on, by the level that labels of their
//! namespace ask for.
//!
//! Three modes, each with a level and a version of it: `enforce` refuses pods, `warn` tells the
//! client, `audit` the audit log. Workloads are never refused: their templates are warned of and
//! audited. A namespace that is made stricter is told which of its pods would not be let in today.
//! Source: the Pod Security Standards, and upstream's words.

pub mod checks; // The rules, by level and version. Pure.
pub mod configuration; // The file with defaults and exemptions.
pub mod level; // Levels, versions, and what the labels ask for. Pure.

use super::{Attributes, Operation};
use crate::view::View;
use checks::{Subject, Violation};
use coracle_api::field::FieldError;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::pod_spec::gates::template_path;
use coracle_api::status::{self, Status};
use level::{Level, LevelVersion, Policy};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Of the pods that are there when a namespace becomes stricter, as many are looked at.
const PODS_CHECKED_MAX: usize = 3000;

const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const AUDITED: &str = "pod-security.kubernetes.io/audit-violations";
const FAILED: &str = "pod-security.kubernetes.io/error";

/// What changes nothing of a pod's spec.
const IGNORED_SUBRESOURCES: [&str; 8] = [
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];

/// For namespaces without labels, and who and what is never looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurity {
    pub defaults: Policy,
    pub exempt_users: BTreeSet<String>,
    pub exempt_namespaces: BTreeSet<String>,
    pub exempt_runtime_classes: BTreeSet<String>,
}

impl PodSecurity {
    pub fn validate(
        &self,
        view: &dyn View,
        object: &Object,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        match (asked.resource.group, asked.resource.plural) {
            ("", "namespaces") => self.namespace(view, object, asked),
            ("", "pods") => self.pod(view, object, asked),
            _ => {
                if let Some(path) = template_path(asked.resource.group, asked.resource.plural) {
                    self.workload(view, object.get(path), asked);
                }
                Ok(())
            }
        }
    }

    fn namespace(
        &self,
        view: &dyn View,
        namespace: &Object,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        if !asked.subresource.is_empty() {
            return Ok(());
        }
        let (policy, errors) = self.policy(namespace);
        let name = namespace.name();
        let is_exempt = self.exempt_namespaces.contains(name);
        let Some(old) = asked.old.filter(|_| asked.operation == Operation::Update) else {
            refuse_labels(name, &errors)?;
            if is_exempt {
                asked.warn(self.ignored(namespace, policy));
            }
            return Ok(());
        };
        let (before, old_errors) = self.policy(old);
        if errors != old_errors {
            refuse_labels(name, &errors)?;
        }
        let (new, old) = (policy.enforce, before.enforce);
        let is_relaxed = new.version == old.version && new.level <= old.level;
        if new == old || new.level == Level::Privileged || is_relaxed {
            return Ok(());
        }
        if is_exempt {
            asked.warn(self.ignored(namespace, policy));
        } else {
            let pods = view.list("", "pods", Some(name));
            asked.warn(self.pods_in_violation(name, pods, new));
        }
        Ok(())
    }

    fn policy(&self, namespace: &Object) -> (Policy, Vec<FieldError>) {
        level::policy(|label| namespace.label(label), self.defaults)
    }

    fn pod(&self, view: &dyn View, pod: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
        if IGNORED_SUBRESOURCES.contains(&asked.subresource) || self.is_exempt(asked) {
            return Ok(());
        }
        let Some(namespace) = view.get("", "namespaces", "", asked.namespace) else {
            let why = format!("failed to lookup namespace {:?}", asked.namespace);
            return Err(Status::internal(why));
        };
        let (policy, errors) = self.policy(&namespace);
        if errors.is_empty() && policy.is_privileged() {
            asked.annotate(ENFORCED, &LevelVersion::default().to_string());
            return Ok(());
        }
        if let (Operation::Update, Some(old)) = (asked.operation, asked.old)
            && !is_significant(pod, old)
        {
            return Ok(());
        }
        let subject = Subject {
            annotations: pod.get(&["metadata", "annotations"]).unwrap_or(&json::NULL),
            spec: pod.get(&["spec"]).unwrap_or(&json::NULL),
        };
        if self.is_exempt_class(subject, asked) {
            return Ok(());
        }
        annotate_errors(asked, &errors);
        asked.annotate(ENFORCED, &policy.enforce.to_string());
        let enforced = checks::evaluate(policy.enforce, subject);
        audit(policy, subject, asked);
        if enforced.is_empty() {
            warn(policy, subject, asked);
            return Ok(());
        }
        let why = format!(
            "violates PodSecurity \"{}\": {}",
            policy.enforce,
            details(&enforced)
        );
        Err(asked.forbidden(Some(pod), why))
    }

    /// The template of a workload, if there is one.
    fn workload(&self, view: &dyn View, template: Option<&Value>, asked: &Attributes<'_>) {
        if !asked.subresource.is_empty() || self.is_exempt(asked) {
            return;
        }
        let Some(namespace) = view.get("", "namespaces", "", asked.namespace) else {
            let why = format!(
                "failed to lookup namespace {:?}: namespace {:?} not found",
                asked.namespace, asked.namespace
            );
            asked.annotate(FAILED, &why);
            return;
        };
        let (policy, errors) = self.policy(&namespace);
        let levels = [policy.warn.level, policy.audit.level];
        if errors.is_empty() && levels == [Level::Privileged; 2] {
            return;
        }
        let Some(template) = template.filter(|template| !template.is_null()) else {
            return;
        };
        let subject = Subject {
            annotations: json::at(template, &["metadata", "annotations"]),
            spec: json::get(template, "spec"),
        };
        if self.is_exempt_class(subject, asked) {
            return;
        }
        annotate_errors(asked, &errors);
        audit(policy, subject, asked);
        warn(policy, subject, asked);
    }

    fn is_exempt(&self, asked: &Attributes<'_>) -> bool {
        let why = if self.exempt_namespaces.contains(asked.namespace) {
            "namespace"
        } else if self.exempt_users.contains(&asked.user.name) {
            "user"
        } else {
            return false;
        };
        asked.annotate(EXEMPT, why);
        true
    }

    fn is_exempt_class(&self, subject: Subject<'_>, asked: &Attributes<'_>) -> bool {
        let class = json::text(subject.spec, "runtimeClassName");
        let is_exempt = self.exempt_runtime_classes.contains(class);
        if is_exempt {
            asked.annotate(EXEMPT, "runtimeClass");
        }
        is_exempt
    }

    /// The warning that labels of an exempt namespace mean nothing.
    fn ignored(&self, namespace: &Object, policy: Policy) -> Option<String> {
        if policy.is_privileged() || policy.is_equivalent(self.defaults) {
            return None;
        }
        let modes = [
            ("enforce", policy.enforce),
            ("audit", policy.audit),
            ("warn", policy.warn),
        ];
        let said: Vec<String> = modes
            .into_iter()
            .filter(|(mode, wanted)| {
                let has = |label: &str| namespace.label(label).is_some();
                wanted.level != Level::Privileged
                    && (has(&level::label(mode)) || has(&level::version_label(mode)))
            })
            .map(|(mode, wanted)| format!("{mode}={wanted}"))
            .collect();
        Some(format!(
            "namespace {:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            namespace.name(),
            said.join(", ")
        ))
    }

    /// One warning for all pods that violate the new level in the same way.
    fn pods_in_violation(
        &self,
        namespace: &str,
        pods: Vec<Object>,
        enforce: LevelVersion,
    ) -> Vec<String> {
        let pods = self.by_weight(pods);
        let mut found: BTreeMap<String, (&str, usize)> = BTreeMap::new();
        for pod in pods.iter().take(PODS_CHECKED_MAX) {
            let subject = Subject {
                annotations: pod.get(&["metadata", "annotations"]).unwrap_or(&json::NULL),
                spec: pod.get(&["spec"]).unwrap_or(&json::NULL),
            };
            let violations = checks::evaluate(enforce, subject);
            if violations.is_empty() {
                continue;
            }
            let reasons: Vec<&str> = violations.iter().map(|one| one.reason).collect();
            let (first, count) = found.entry(reasons.join(", ")).or_insert((pod.name(), 0));
            *first = (*first).min(pod.name());
            *count += 1;
        }
        let mut warnings = Vec::new();
        if pods.len() > PODS_CHECKED_MAX {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {PODS_CHECKED_MAX} \
                 of {} existing pods",
                pods.len()
            ));
        }
        if !found.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {namespace:?} violate the new PodSecurity enforce \
                 level \"{enforce}\""
            ));
        }
        let mut texts: Vec<String> = found
            .iter()
            .map(|(reasons, (name, count))| match count {
                1 => format!("{name}: {reasons}"),
                2 => format!("{name} (and 1 other pod): {reasons}"),
                many => format!("{name} (and {} other pods): {reasons}", many - 1),
            })
            .collect();
        texts.sort();
        warnings.extend(texts);
        warnings
    }

    /// One pod of each owner first: those of one owner are alike.
    fn by_weight(&self, pods: Vec<Object>) -> Vec<Object> {
        let mut seen = BTreeSet::new();
        let (mut first, rest): (Vec<Object>, Vec<Object>) = pods
            .into_iter()
            .filter(|pod| {
                let class = pod.str(&["spec", "runtimeClassName"]);
                !self.exempt_runtime_classes.contains(class)
            })
            .partition(|pod| {
                let owner = pod.owner_references().find(|owner| owner.controller);
                owner.is_none_or(|owner| seen.insert(owner.uid.to_owned()))
            });
        first.extend(rest);
        first
    }
}

fn refuse_labels(name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    let subject = status::Subject {
        group: "",
        resource: "Namespace",
        name,
    };
    Err(Status::invalid(subject, errors))
}

fn annotate_errors(asked: &Attributes<'_>, errors: &[FieldError]) {
    if errors.is_empty() {
        return;
    }
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let text = status::aggregate(&texts);
    asked.annotate(FAILED, &format!("Failed to parse policy: {text}"));
}

fn audit(policy: Policy, subject: Subject<'_>, asked: &Attributes<'_>) {
    if asked.trail.is_none() {
        return;
    }
    if let Some(text) = would_violate(policy.audit, subject) {
        asked.annotate(AUDITED, &text);
    }
}

fn warn(policy: Policy, subject: Subject<'_>, asked: &Attributes<'_>) {
    asked.warn(would_violate(policy.warn, subject));
}

fn would_violate(wanted: LevelVersion, subject: Subject<'_>) -> Option<String> {
    let violations = checks::evaluate(wanted, subject);
    (!violations.is_empty()).then(|| {
        format!(
            "would violate PodSecurity \"{wanted}\": {}",
            details(&violations)
        )
    })
}

fn details(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations
        .iter()
        .map(|one| format!("{} ({})", one.reason, one.detail))
        .collect();
    texts.join(", ")
}

/// True when an update brings in an image or a container: all else of a pod's security is fixed.
fn is_significant(new: &Object, old: &Object) -> bool {
    let image = |container| json::text(container, "image");
    let name = |container| json::text(container, "name");
    let fixed = ["containers", "initContainers"].into_iter().any(|list| {
        let path = ["spec", list];
        let (new, old) = (new.list(&path), old.list(&path));
        new.len() != old.len()
            || new
                .iter()
                .zip(old)
                .any(|(new, old)| image(new) != image(old))
    });
    let path = ["spec", "ephemeralContainers"];
    let known = old.list(&path);
    fixed
        || new.list(&path).iter().any(|one| {
            let before = known.iter().find(|old| name(old) == name(one));
            before.is_none_or(|before| image(before) != image(one))
        })
}

#[cfg(test)]
mod tests;
