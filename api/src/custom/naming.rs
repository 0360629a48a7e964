//! What becomes of a definition: which of its names are its own, and whether it is served.
//!
//! Pure, level-triggered, and as upstream's controllers of the same: names that another definition
//! of the group has stay with that one; once all are accepted the kind is established, and stays so.

use super::{condition, set_condition};
use crate::json;
use crate::object::Object;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Says that an API in a group of Kubernetes' own was approved.
const APPROVED: &str = "api-approved.kubernetes.io";
const WHERE_TO_READ: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Names that are taken in a group.
#[derive(Debug, Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn of<'a>(group: &str, others: impl Iterator<Item = &'a Object>) -> Self {
        let mut taken = Self::default();
        for other in others.filter(|other| other.str(&["spec", "group"]) == group) {
            let names = other.get(&["status", "acceptedNames"]);
            let names = names.unwrap_or(&json::NULL);
            let text = |name: &str| json::text(names, name).to_owned();
            taken.resources.extend([text("plural"), text("singular")]);
            let short = json::list(names, "shortNames").iter();
            let short = short.filter_map(Value::as_str).map(str::to_owned);
            taken.resources.extend(short);
            taken.kinds.extend([text("kind"), text("listKind")]);
        }
        taken
    }
}

/// The definition with the status that it should have; `None` when it has it. `all` are the
/// definitions that there are, this one too.
pub fn settled<'a>(
    definition: &Object,
    all: impl Iterator<Item = &'a Object>,
    now: &str,
) -> Option<Object> {
    let mut next = definition.clone();
    let taken = Taken::of(definition.str(&["spec", "group"]), all);
    let problem = name(&mut next, &taken);
    let is_accepted = problem.is_none();
    let (status, reason, message) = match &problem {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    set_condition(&mut next, "NamesAccepted", [status, reason, message], now);
    let was_established = super::condition_is_true(definition, "Established");
    if is_accepted && !was_established {
        let why = "the initial names have been accepted";
        let established = ["True", "InitialNamesAccepted", why];
        set_condition(&mut next, "Established", established, now);
    } else if condition(definition, "Established").is_none() {
        let why = ["False", "NotAccepted", "not all names are accepted"];
        set_condition(&mut next, "Established", why, now);
    }
    approve(&mut next, now);
    (next != *definition).then_some(next)
}

/// Accepts what can be; gives the last problem, as upstream keeps one.
fn name(definition: &mut Object, taken: &Taken) -> Option<(&'static str, String)> {
    let wanted = definition
        .get(&["spec", "names"])
        .cloned()
        .unwrap_or_default();
    let accepted = definition.get(&["status", "acceptedNames"]).cloned();
    let accepted = accepted.unwrap_or_else(|| json!({}));
    let mut next = accepted.clone();
    let mut problem: Option<(&'static str, String)> = None;
    let mut settle = |next: &mut Value, field: &str, taken: &BTreeSet<String>, reason| {
        let (wanted, own) = (json::text(&wanted, field), json::text(&accepted, field));
        if wanted != own && taken.contains(wanted) {
            problem = Some((reason, format!("{wanted:?} is already in use")));
        } else {
            next[field] = wanted.into();
        }
    };
    settle(&mut next, "plural", &taken.resources, "PluralConflict");
    settle(&mut next, "singular", &taken.resources, "SingularConflict");
    let of_short = short_names(&mut next, &wanted, &accepted, &taken.resources);
    settle(&mut next, "kind", &taken.kinds, "KindConflict");
    settle(&mut next, "listKind", &taken.kinds, "ListKindConflict");
    put_list(&mut next, "categories", &wanted);
    definition.set(&["status", "acceptedNames"], next);
    // In upstream's order the kinds come last, and the last is told.
    match (problem, of_short) {
        (Some((reason, message)), _) if reason.contains("Kind") => Some((reason, message)),
        (_, Some(message)) => Some(("ShortNamesConflict", message)),
        (problem, None) => problem,
    }
}

/// All of them, or what is wrong with them.
fn short_names(
    next: &mut Value,
    wanted: &Value,
    accepted: &Value,
    taken: &BTreeSet<String>,
) -> Option<String> {
    let own = json::list(accepted, "shortNames");
    let in_use: Vec<String> = json::list(wanted, "shortNames")
        .iter()
        .filter(|name| !own.contains(name))
        .filter_map(Value::as_str)
        .filter(|name| taken.contains(*name))
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    match &in_use[..] {
        [] => {
            put_list(next, "shortNames", wanted);
            None
        }
        [one] => Some(one.clone()),
        more => Some(format!("[{}]", more.join(", "))),
    }
}

fn put_list(names: &mut Value, field: &str, wanted: &Value) {
    match wanted.get(field) {
        Some(list) => names[field] = list.clone(),
        None => {
            names.as_object_mut().and_then(|names| names.remove(field));
        }
    }
}

/// Groups of Kubernetes' own need the word of its reviewers.
fn approve(definition: &mut Object, now: &str) {
    let group = definition.str(&["spec", "group"]);
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|own| group == *own || group.ends_with(&format!(".{own}")));
    if !is_protected {
        return;
    }
    let annotation = definition.annotation(APPROVED).unwrap_or("").to_owned();
    let (status, reason, message) = if annotation.is_empty() {
        let message =
            format!("protected groups must have approval annotation {APPROVED:?}, {WHERE_TO_READ}");
        ("False", "MissingAnnotation", message)
    } else if annotation.starts_with("unapproved") {
        let message = format!("not approved: {annotation:?}");
        ("False", "UnapprovedAnnotation", message)
    } else if annotation.contains("://") {
        let message = format!("approved in {annotation}");
        ("True", "ApprovedAnnotation", message)
    } else {
        let message = format!(
            "protected groups must have approval annotation {APPROVED:?} with either a URL or a \
             reason starting with \"unapproved\", {WHERE_TO_READ}"
        );
        ("False", "InvalidAnnotation", message)
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    set_condition(definition, kind, [status, reason, &message], now);
}

#[cfg(test)]
mod tests;
