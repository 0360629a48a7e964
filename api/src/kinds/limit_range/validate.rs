//! What is wrong with a limit range: types, names of resources, and bounds that contradict.

use crate::field::{ErrorList, FieldError, Path};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::pod_spec::validate::resources;
use crate::quantity::{Format, Quantity};
use crate::{json, names};
use serde_json::Value;
use std::collections::BTreeSet;

/// The lists of resources in one item.
pub const LISTS: [&str; 5] = [
    "max",
    "min",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
];

pub fn limit_range(object: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut types = BTreeSet::new();
    let path = Path::root("spec").child("limits");
    for (index, limit) in object.list(&["spec", "limits"]).iter().enumerate() {
        let path = path.index(index);
        let kind = json::text(limit, "type");
        errors.extend(type_name(kind, &path.child("type")));
        if !types.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        errors.extend(item(limit, kind, &path));
    }
    errors
}

fn type_name(kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, kind, names::qualified_name(kind));
    let known = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.is_empty() && !kind.contains('/') && !known {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    errors
}

fn item(limit: &Value, kind: &str, path: &Path) -> ErrorList {
    let of_pod = kind == "Pod";
    let mut errors = ErrorList::new();
    let mut resources_named = BTreeSet::new();
    for list in LISTS {
        let entries = json::entries(limit, list);
        if of_pod && list.starts_with("default") {
            if entries.count() > 0 {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(list), detail));
            }
            continue;
        }
        if list == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" {
            errors.extend(storage_bound(limit, path));
        }
        for (name, _) in entries {
            let path = path.child(list).key(name);
            errors.extend(if matches!(kind, "Pod" | "Container") {
                resources::container_resource_name(name, &path)
            } else {
                resources::standard_name(name, &path)
            });
            resources_named.insert(name);
        }
    }
    for name in resources_named {
        errors.extend(bounds(limit, of_pod, name, path));
    }
    errors
}

/// A range for claims says something about storage.
fn storage_bound(limit: &Value, path: &Path) -> ErrorList {
    let says = |list: &str| json::has(json::get(limit, list), "storage");
    if says("min") || says("max") {
        return ErrorList::new();
    }
    let detail = "either minimum or maximum storage value is required, but neither was provided";
    vec![FieldError::required(&path.child("limits"), detail)]
}

/// The bounds of one resource against each other.
fn bounds(limit: &Value, of_pod: bool, name: &str, path: &Path) -> ErrorList {
    let find = |list: &str| Quantity::from_value(json::some(json::get(limit, list), name)?).ok();
    let (min, max) = (find("min"), find("max"));
    let [default, request] = ["default", "defaultRequest"].map(|list| {
        let found = find(list);
        found.filter(|_| !of_pod)
    });
    let mut errors = ErrorList::new();
    let mut check = |low: Option<Quantity>, high, list: &str, shown: Shown, names: [&str; 2]| {
        let (Some(low), Some(high)) = (low, high) else {
            return;
        };
        if low > high {
            let value: Quantity = match shown {
                Shown::Low => low,
                Shown::High => high,
            };
            let detail = format!(
                "{} value {low} is greater than {} value {high}",
                names[0], names[1]
            );
            let path = path.child(list).key(name);
            errors.push(FieldError::invalid(&path, value.to_string(), detail));
        }
    };
    check(min, max, "min", Shown::Low, ["min", "max"]);
    let request_list = "defaultRequest";
    check(
        min,
        request,
        request_list,
        Shown::High,
        ["min", "default request"],
    );
    check(
        request,
        max,
        request_list,
        Shown::Low,
        ["default request", "max"],
    );
    let both = ["default request", "default limit"];
    check(request, default, request_list, Shown::Low, both);
    check(min, default, "default", Shown::Low, ["min", "default"]);
    check(default, max, "default", Shown::High, ["default", "max"]);
    errors.extend(ratio(find("maxLimitRequestRatio"), min, max, name, path));
    if let (Some(default), Some(request)) = (default, request)
        && default != request
        && !resources::may_overcommit(name)
    {
        let detail = format!(
            "default value {default} must equal to defaultRequest value {request} in {name}"
        );
        let path = path.child("defaultRequest").key(name);
        errors.push(FieldError::invalid(&path, request.to_string(), detail));
    }
    errors
}

/// Which of two values the error shows.
#[derive(Clone, Copy)]
enum Shown {
    Low,
    High,
}

fn ratio(
    ratio: Option<Quantity>,
    min: Option<Quantity>,
    max: Option<Quantity>,
    name: &str,
    path: &Path,
) -> ErrorList {
    /// Up to here thousandths are counted.
    const MILLI_MAX: i64 = i64::MAX / 1000;
    let mut errors = ErrorList::new();
    let Some(ratio) = ratio else { return errors };
    let path = path.child("maxLimitRequestRatio").key(name);
    let mut wrong = |detail: String| {
        errors.push(FieldError::invalid(&path, ratio.to_string(), detail));
    };
    if ratio < Quantity::from_units(1, Format::DecimalSi) {
        wrong(format!("ratio {ratio} is less than 1"));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let small = [ratio, min, max].iter().all(|q| q.value() < MILLI_MAX);
        let (value, min, max) = if small {
            let milli = Quantity::milli_value;
            (as_float(milli(&ratio)) / 1000.0, milli(&min), milli(&max))
        } else {
            (as_float(ratio.value()), min.value(), max.value())
        };
        let most = as_float(max) / as_float(min);
        if value > most {
            wrong(format!("ratio {ratio} is greater than max/min = {most:.6}"));
        }
    }
    errors
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio is compared and shown, never kept"
)]
fn as_float(value: i64) -> f64 {
    value as f64
}
