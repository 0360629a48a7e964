//! How much of a device's capacity one request may take: one of some values, or a range.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::quantity::Quantity;
use serde_json::Value;

const VALUES_MAX: usize = 10;

/// What is wrong with the policy of a capacity of the given size.
pub fn policy(policy: &Value, capacity: Quantity, path: &Path) -> ErrorList {
    let values = json::list(policy, "validValues");
    let range = json::some(policy, "validRange");
    if !values.is_empty() && range.is_some() {
        let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                      \"validRange\" at the same time";
        return vec![FieldError::forbidden(path, detail)];
    }
    let default = quantity(policy, "default");
    let needs_default = |what: &str| {
        let detail = format!("required when {what} is defined");
        vec![FieldError::required(&path.child("default"), detail)]
    };
    match (range, default) {
        (None, _) if values.is_empty() => ErrorList::new(),
        (None, None) => needs_default("validValues"),
        (Some(_), None) => needs_default("validRange"),
        (None, Some(default)) => {
            let values: Vec<Quantity> = values
                .iter()
                .map(|value| Quantity::from_value(value).unwrap_or(Quantity::ZERO))
                .collect();
            of_values(&values, default, capacity, &path.child("validValues"))
        }
        (Some(range), Some(default)) => {
            of_range(range, default, capacity, &path.child("validRange"))
        }
    }
}

fn quantity(holder: &Value, name: &str) -> Option<Quantity> {
    Quantity::from_value(json::some(holder, name)?).ok()
}

fn wrong(path: &Path, value: Quantity, detail: String) -> FieldError {
    FieldError::invalid(path, value.to_string(), detail)
}

fn of_values(values: &[Quantity], default: Quantity, capacity: Quantity, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, pair) in values.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let detail = "values must be sorted in ascending order".to_owned();
            errors.push(wrong(&path.index(index + 1), pair[1], detail));
        }
    }
    if values.len() > VALUES_MAX {
        errors.push(FieldError::too_many(path, values.len(), VALUES_MAX));
    } else {
        for (index, value) in values.iter().enumerate() {
            if *value > capacity {
                let detail = format!("option is larger than capacity value: {capacity}");
                errors.push(wrong(&path.index(index), *value, detail));
            }
        }
        for (index, value) in values.iter().enumerate() {
            let units = value.value();
            if values[..index].iter().any(|other| other.value() == units) {
                let path = path.index(index);
                errors.push(FieldError::duplicate(&path, units.to_string()));
            }
        }
    }
    if values.len() > VALUES_MAX || !values.contains(&default) {
        let detail = "default value is not valid according to the requestPolicy".to_owned();
        errors.push(wrong(path, default, detail));
    }
    errors
}

fn of_range(range: &Value, default: Quantity, capacity: Quantity, path: &Path) -> ErrorList {
    let [min_path, max_path, step_path] = ["min", "max", "step"].map(|field| path.child(field));
    let Some(min) = quantity(range, "min") else {
        let detail = "required when validRange is defined";
        return vec![FieldError::required(&min_path, detail)];
    };
    let mut errors = ErrorList::new();
    if min > capacity {
        let detail = format!("min is larger than capacity value: {capacity}");
        errors.push(wrong(&min_path, min, detail));
    }
    if default < min {
        errors.push(wrong(
            &min_path,
            default,
            format!("default is less than min: {min}"),
        ));
    }
    let max = quantity(range, "max");
    if let Some(max) = max {
        if min > max {
            let detail = format!("min is larger than max: {max}");
            errors.push(wrong(&max_path, min, detail));
        }
        if max > capacity {
            let detail = format!("max is larger than capacity value: {capacity}");
            errors.push(wrong(&max_path, max, detail));
        }
        if default > max {
            let detail = format!("default is more than max: {max}");
            errors.push(wrong(&max_path, default, detail));
        }
    }
    if let Some(step) = quantity(range, "step") {
        let added = min.plus(step);
        if added > capacity {
            let detail = format!("one step {added} is larger than capacity value: {capacity}");
            errors.push(wrong(&step_path, step, detail));
        }
        for value in [Some(default), max].into_iter().flatten() {
            errors.extend(multiple(value, min, step, &step_path));
        }
    }
    errors
}

fn multiple(value: Quantity, min: Quantity, step: Quantity, path: &Path) -> Option<FieldError> {
    let above = value.value().wrapping_sub(min.value());
    // Upstream divides by a step of zero, and the request ends there; here it fits nothing.
    let fits = above.checked_rem(step.value()) == Some(0);
    (!fits).then(|| {
        let detail = format!("value is not a multiple of a given step ({step}) from ({min})");
        wrong(path, value, detail)
    })
}
