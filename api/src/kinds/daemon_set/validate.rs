//! What is wrong with a daemon set.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, workload};
use crate::object::Object;
use crate::{json, label_selector, pod_spec};
use serde_json::Value;

pub fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let old_template = old.and_then(|old| old.get(&["spec", "template"]));
    let template = json::get(spec, "template");
    let template_path = path.child("template");
    let mut errors = selector(spec, template, &path);
    errors.extend(pod_spec::validate::template(
        template,
        old_template,
        &template_path,
    ));
    workload::always_restarts(&mut errors, template, "DaemonSet", &template_path);
    checks::nonnegative(&mut errors, spec, "minReadySeconds", &path);
    errors.extend(strategy(
        json::get(spec, "updateStrategy"),
        &path.child("updateStrategy"),
    ));
    checks::nonnegative(&mut errors, spec, "revisionHistoryLimit", &path);
    errors
}

/// No selector matches nothing, and is not named as missing.
fn selector(spec: &Value, template: &Value, path: &Path) -> ErrorList {
    let selector_path = path.child("selector");
    let Some(selector) = json::some(spec, "selector") else {
        return vec![workload::labels_error(template, &path.child("template"))];
    };
    let mut errors = label_selector::validate(selector, &selector_path);
    let labels = json::at(template, &["metadata", "labels"]);
    if errors.is_empty() && !label_selector::matches(selector, labels) {
        errors.push(workload::labels_error(template, &path.child("template")));
    }
    if label_selector::is_empty(selector) {
        let detail = "empty selector is invalid for daemonset";
        let error = FieldError::invalid(&selector_path, selector.clone(), detail);
        errors.push(error.as_go(checks::LABEL_SELECTOR));
    }
    errors
}

fn strategy(strategy: &Value, path: &Path) -> ErrorList {
    let rolling_path = path.child("rollingUpdate");
    match json::text(strategy, "type") {
        "OnDelete" => ErrorList::new(),
        "RollingUpdate" => match json::some(strategy, "rollingUpdate") {
            Some(rolling) => rolling_update(rolling, &rolling_path),
            None => vec![FieldError::required(&rolling_path, "")],
        },
        _ => {
            let supported = &["RollingUpdate", "OnDelete"];
            let error = FieldError::not_supported(path, strategy.clone(), supported);
            vec![error.as_go("io.k8s.api.apps.v1.DaemonSetUpdateStrategy")]
        }
    }
}

/// One of the two is zero, and the other is not.
fn rolling_update(rolling: &Value, path: &Path) -> ErrorList {
    let fields = ["maxUnavailable", "maxSurge"];
    let [unavailable, surge] = fields.map(|name| json::get(rolling, name));
    let [unavailable_path, surge_path] = fields.map(|name| path.child(name));
    let mut errors = checks::count_or_percent(unavailable, &unavailable_path);
    errors.extend(checks::count_or_percent(surge, &surge_path));
    errors.extend(checks::at_most_all(unavailable, &unavailable_path));
    errors.extend(checks::at_most_all(surge, &surge_path));
    match (checks::amount(unavailable) != 0, checks::amount(surge) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&surge_path, surge.clone(), detail));
        }
        (false, false) => {
            let detail = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(&unavailable_path, detail));
        }
        _ => {}
    }
    errors
}

pub fn update(new: &Object, old: &Object) -> ErrorList {
    let specs = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
    let mut errors = ErrorList::new();
    let path = Path::root("spec");
    checks::immutable_as(
        &mut errors,
        checks::LABEL_SELECTOR,
        specs[0],
        specs[1],
        "selector",
        &path,
    );
    errors.extend(spec(new, Some(old)));
    errors
}

pub fn status(new: &Object, old: &Object) -> ErrorList {
    const ALL: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let status = new.get(&["status"]).unwrap_or(&Value::Null);
    let path = Path::root("status");
    let mut errors = ErrorList::new();
    for name in ALL {
        checks::nonnegative(&mut errors, status, name, &path);
    }
    errors.extend(workload::collisions(new, old));
    errors
}
