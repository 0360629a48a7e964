//! What is wrong with a deployment.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::{checks, workload};
use crate::object::Object;
use serde_json::Value;

pub fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let old_spec = old.and_then(|old| old.get(&["spec"]));
    let mut errors = ErrorList::new();
    checks::nonnegative(&mut errors, spec, "replicas", &path);
    errors.extend(workload::selector_and_template(spec, old_spec, &path));
    errors.extend(strategy(
        json::get(spec, "strategy"),
        &path.child("strategy"),
    ));
    checks::nonnegative(&mut errors, spec, "minReadySeconds", &path);
    checks::nonnegative(&mut errors, spec, "revisionHistoryLimit", &path);
    if let Some(deadline) = json::int(spec, "progressDeadlineSeconds") {
        checks::nonnegative(&mut errors, spec, "progressDeadlineSeconds", &path);
        if deadline <= json::int(spec, "minReadySeconds").unwrap_or(0) {
            let path = path.child("progressDeadlineSeconds");
            let detail = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid(&path, deadline, detail));
        }
    }
    errors
}

pub fn update(new: &Object, old: &Object) -> ErrorList {
    let mut errors = spec(new, Some(old));
    let specs = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
    checks::immutable_as(
        &mut errors,
        checks::LABEL_SELECTOR,
        specs[0],
        specs[1],
        "selector",
        &Path::root("spec"),
    );
    errors
}

pub fn status(new: &Object, old: &Object) -> ErrorList {
    const ALL: &[&str] = &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let status = new.get(&["status"]).unwrap_or(&Value::Null);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let mut errors = workload::counts(status, ALL, &parts, "readyReplicas");
    errors.extend(workload::collisions(new, old));
    errors
}

fn strategy(strategy: &Value, path: &Path) -> ErrorList {
    let rolling_path = path.child("rollingUpdate");
    let rolling = json::some(strategy, "rollingUpdate");
    match json::text(strategy, "type") {
        "Recreate" if rolling.is_some() => vec![FieldError::forbidden(
            &rolling_path,
            "may not be specified when strategy `type` is 'Recreate'",
        )],
        "Recreate" => ErrorList::new(),
        "RollingUpdate" => match rolling {
            Some(rolling) => rolling_update(rolling, &rolling_path),
            None => {
                let detail = "this should be defaulted and never be nil";
                vec![FieldError::required(&rolling_path, detail)]
            }
        },
        _ => {
            let supported = &["Recreate", "RollingUpdate"];
            let error = FieldError::not_supported(path, strategy.clone(), supported);
            vec![error.as_go("io.k8s.api.apps.v1.DeploymentStrategy")]
        }
    }
}

fn rolling_update(rolling: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["maxUnavailable", "maxSurge"] {
        errors.extend(checks::count_or_percent(
            json::get(rolling, name),
            &path.child(name),
        ));
    }
    let unavailable = json::get(rolling, "maxUnavailable");
    let path = path.child("maxUnavailable");
    if checks::amount(unavailable) == 0 && checks::amount(json::get(rolling, "maxSurge")) == 0 {
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(&path, unavailable.clone(), detail));
    }
    errors.extend(checks::at_most_all(unavailable, &path));
    errors
}
