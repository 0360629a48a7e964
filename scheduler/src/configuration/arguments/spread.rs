//! Arguments of PodTopologySpread: the constraints of pods that have none.

use super::super::document::Unknown;
use super::{Written, known};
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::names;
use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde::Deserialize;

const SYSTEM: &str = "System";
const LIST: &str = "List";
const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadArgs {
    default_constraints: Vec<TopologySpreadConstraint>,
    defaulting_type: String,
    #[serde(flatten)]
    unknown: Unknown,
}

impl Written for SpreadArgs {
    fn unknown(&self) -> Vec<String> {
        known(&self.unknown)
    }
}

/// `None` for the system's constraints.
pub fn read(
    args: SpreadArgs,
    path: &Path,
    errors: &mut ErrorList,
) -> Option<Vec<TopologySpreadConstraint>> {
    let constraints = args.default_constraints;
    let of_type = path.child("defaultingType");
    match args.defaulting_type.as_str() {
        "" | SYSTEM if !constraints.is_empty() => {
            let why = "when .defaultConstraints are not empty";
            errors.push(FieldError::invalid(&of_type, SYSTEM, why));
        }
        "" | SYSTEM => return None,
        LIST => {}
        other => errors.push(FieldError::not_supported(&of_type, other, &[SYSTEM, LIST])),
    }
    let path = path.child("defaultConstraints");
    for (index, one) in constraints.iter().enumerate() {
        check(one, &path.index(index), errors);
        let mut before = constraints[..index].iter();
        let is_same = |other: &TopologySpreadConstraint| {
            (&other.topology_key, &other.when_unsatisfiable)
                == (&one.topology_key, &one.when_unsatisfiable)
        };
        if before.any(is_same) {
            let shown = format!("{{{}, {}}}", one.topology_key, one.when_unsatisfiable);
            errors.push(FieldError::duplicate(&path.index(index), shown));
        }
    }
    Some(constraints)
}

fn check(one: &TopologySpreadConstraint, path: &Path, errors: &mut ErrorList) {
    if one.max_skew <= 0 {
        let why = "not in valid range (0, inf)";
        errors.push(FieldError::invalid(
            &path.child("maxSkew"),
            one.max_skew,
            why,
        ));
    }
    let of_key = path.child("topologyKey");
    if one.topology_key.is_empty() {
        errors.push(FieldError::required(&of_key, "can not be empty"));
    } else {
        let key = one.topology_key.as_str();
        let faults = names::qualified_name(key).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&of_key, key, fault)));
    }
    let of_action = path.child("whenUnsatisfiable");
    let action = one.when_unsatisfiable.as_str();
    if action.is_empty() {
        errors.push(FieldError::required(&of_action, "can not be empty"));
    } else if !ACTIONS.contains(&action) {
        errors.push(FieldError::not_supported(&of_action, action, &ACTIONS));
    }
    if one.label_selector.is_some() {
        let why = "constraint must not define a selector, as they deduced for each pod";
        errors.push(FieldError::forbidden(&path.child("labelSelector"), why));
    }
}
