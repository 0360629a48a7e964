//! What is wrong with the policies of a job: when its failed pods count, and when it has succeeded.

use super::indexes;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::checks;
use crate::names;
use serde_json::Value;
use std::collections::HashSet;

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const PATTERNS_MAX: usize = 20;
const INDEXES_BYTES_MAX: usize = 64 * 1024;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// `valid values: ["In" "NotIn"]`, as Go prints a list.
fn required_one_of(errors: &mut ErrorList, value: &str, supported: &[&str], path: &Path) {
    if value.is_empty() {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("valid values: [{}]", quoted.join(" "));
        errors.push(FieldError::required(path, detail));
    } else {
        checks::one_of(errors, value, supported, path);
    }
}

pub fn failure(spec: &Value, policy: &Value, path: &Path) -> ErrorList {
    let path = path.child("rules");
    let rules = json::list(policy, "rules");
    let mut errors = ErrorList::new();
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(failure_rule(spec, rule, &path.index(index)));
    }
    errors
}

fn failure_rule(spec: &Value, rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let action = json::text(rule, "action");
    let action_path = path.child("action");
    if action == "FailIndex" {
        if !json::has(spec, "backoffLimitPerIndex") {
            let detail = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(&action_path, action, detail));
        }
    } else {
        required_one_of(&mut errors, action, &ACTIONS, &action_path);
    }
    let codes = json::some(rule, "onExitCodes");
    let conditions = json::list(rule, "onPodConditions");
    if let Some(codes) = codes {
        errors.extend(exit_codes(spec, codes, &path.child("onExitCodes")));
    }
    if !conditions.is_empty() {
        errors.extend(pod_conditions(conditions, &path.child("onPodConditions")));
    }
    let detail = match (codes.is_some(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return errors,
    };
    errors.push(FieldError::invalid_unshown(path, detail));
    errors
}

fn pod_conditions(patterns: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if patterns.len() > PATTERNS_MAX {
        errors.push(FieldError::too_many(path, patterns.len(), PATTERNS_MAX));
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = path.index(index);
        let kind = json::text(pattern, "type");
        let details = names::qualified_name(kind);
        checks::each(&mut errors, &path.child("type"), kind, details);
        let status = json::text(pattern, "status");
        required_one_of(&mut errors, status, &STATUSES, &path.child("status"));
    }
    errors
}

fn exit_codes(spec: &Value, codes: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let operator = json::text(codes, "operator");
    required_one_of(&mut errors, operator, &OPERATORS, &path.child("operator"));
    if let Some(name) = json::some(codes, "containerName") {
        let pod = json::at(spec, &["template", "spec"]);
        let known = ["containers", "initContainers"]
            .iter()
            .flat_map(|list| json::list(pod, list))
            .any(|container| json::get(container, "name") == name);
        if !known {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(
                &path.child("containerName"),
                name.clone(),
                detail,
            ));
        }
    }
    errors.extend(exit_values(codes, operator, &path.child("values")));
    errors
}

fn exit_values(codes: &Value, operator: &str, path: &Path) -> ErrorList {
    let values = json::list(codes, "values");
    let shown = || json::get(codes, "values").clone();
    let mut errors = ErrorList::new();
    if values.is_empty() {
        errors.push(FieldError::invalid(
            path,
            shown(),
            "at least one value is required",
        ));
    } else if values.len() > EXIT_CODES_MAX {
        errors.push(FieldError::too_many(path, values.len(), EXIT_CODES_MAX));
    }
    let mut seen = HashSet::new();
    let mut last = i64::MIN;
    let mut ordered = true;
    for (index, value) in values.iter().enumerate() {
        let path = path.index(index);
        let value = value.as_i64().unwrap_or(0);
        if operator == "In" && value == 0 {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(&path, value, detail));
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&path, value));
        }
        ordered &= last <= value;
        last = value;
    }
    if !ordered {
        errors.push(FieldError::invalid(path, shown(), "must be ordered"));
    }
    errors
}

pub fn replacement(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(policy) = json::some(spec, "podReplacementPolicy") {
        let supported: &[&str] = if json::has(spec, "podFailurePolicy") {
            &["Failed"]
        } else {
            &["Failed", "TerminatingOrFailed"]
        };
        checks::one_of(&mut errors, policy.as_str().unwrap_or(""), supported, path);
    }
    errors
}

/// `spec` is that of an indexed job.
pub fn success(spec: &Value, policy: &Value, path: &Path) -> ErrorList {
    let path = path.child("rules");
    let rules = json::list(policy, "rules");
    let mut errors = ErrorList::new();
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    let completions = json::int(spec, "completions").unwrap_or(0);
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(success_rule(rule, completions, &path.index(index)));
    }
    errors
}

fn success_rule(rule: &Value, completions: i64, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let count = json::int(rule, "succeededCount");
    let text = json::some(rule, "succeededIndexes").and_then(Value::as_str);
    if count.is_none() && text.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(text) = text {
        let path = path.child("succeededIndexes");
        if text.len() > INDEXES_BYTES_MAX {
            errors.push(FieldError::too_long(&path, INDEXES_BYTES_MAX));
        }
        match indexes::count(text, completions) {
            Ok(count) => total = count,
            Err(error) => {
                let detail = format!("error parsing succeededIndexes: {error}");
                errors.push(FieldError::invalid(&path, text, detail));
            }
        }
    }
    if let Some(count) = count {
        checks::nonnegative(&mut errors, rule, "succeededCount", path);
        let path = path.child("succeededCount");
        let mut at_most = |max: i64, what: &str| {
            if count > max {
                let detail = format!("must be less than or equal to {max} ({what})");
                errors.push(FieldError::invalid(&path, count, detail));
            }
        };
        at_most(completions, "the number of specified completions");
        if text.is_some() {
            let what = "the number of indexes in the specified succeededIndexes field";
            at_most(total, what);
        }
    }
    errors
}
