//! What the kinds of dynamic resource allocation share: requests for devices, selectors,
//! configuration for drivers, names.

pub mod claim; // What is asked for.
pub mod matching; // Whether an expression selects a device.
pub mod names; // Drivers, pools, attributes.
pub mod policy; // How much of a capacity one request may take.
pub mod status; // What was allocated.

use crate::cel;
use crate::cel::budget::Budget;
use crate::cel::environment::Environment;
use crate::cel::extents::{Extent, Extents};
use crate::cel::types::Type;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::checks;
use crate::kinds::storage::driver_name;
use crate::meta_validate::{invalid_each, label_name};
use serde_json::Value;
use std::collections::BTreeSet;

const SELECTORS_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// In the units of estimates.
const COST_MAX: u64 = 1_000_000;
const VARIABLE: &str = "device";
const RESULT_MUST: &str = "must evaluate to bool or the unknown type, not ";
const DRIVER_NAME_LENGTH_MAX: u64 = 63;
const DOMAIN_LENGTH_MAX: u64 = 63;
const NAME_LENGTH_MAX: u64 = 32;
/// Of the value of an attribute.
const VALUE_LENGTH_MAX: u64 = 64;
/// Of one device, and as many capacities.
const ATTRIBUTES_MAX: u64 = 32;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;
pub const CONFIGURATIONS_MAX: usize = 32;
pub const BINDING_CONDITIONS_MAX: usize = 4;
const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

/// Each item of a list that is not too long; a list that is, is looked at no further.
pub fn each(
    items: &[Value],
    max: usize,
    path: &Path,
    mut check: impl FnMut(&Value, &Path) -> ErrorList,
) -> ErrorList {
    if items.len() > max {
        return vec![FieldError::too_many(path, items.len(), max)];
    }
    let items = items.iter().enumerate();
    items
        .flat_map(|(index, item)| check(item, &path.index(index)))
        .collect()
}

/// As `each`, and no two items have one key.
pub fn each_of_set(
    items: &[Value],
    max: usize,
    path: &Path,
    check: impl FnMut(&Value, &Path) -> ErrorList,
    key: impl Fn(&Value) -> String,
) -> ErrorList {
    let mut errors = each(items, max, path, check);
    if items.len() > max {
        return errors;
    }
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        if !seen.insert(key.clone()) {
            errors.push(FieldError::duplicate(&path.index(index), key));
        }
    }
    errors
}

/// The string itself is the key.
pub fn text_key(item: &Value) -> String {
    item.as_str().unwrap_or("").to_owned()
}

pub fn name_key(item: &Value) -> String {
    json::text(item, "name").to_owned()
}

/// `selectors`: expressions over one device.
pub fn selectors(selectors: &[Value], budget: &Budget, path: &Path) -> ErrorList {
    each(selectors, SELECTORS_MAX, path, |selector, path| {
        let path = path.child("cel");
        match json::some(selector, "cel") {
            None => vec![FieldError::required(&path, "")],
            Some(cel) => {
                let text = json::text(cel, "expression");
                expression(text, budget, &path.child("expression"))
            }
        }
    })
}

fn expression(text: &str, budget: &Budget, path: &Path) -> ErrorList {
    if text.len() > EXPRESSION_BYTES_MAX {
        return vec![FieldError::too_long(path, EXPRESSION_BYTES_MAX)];
    }
    let compiled = cel::compile(text, &device().within(budget));
    let detail = match compiled.map(|compiled| (compiled.of, compiled.cost)) {
        Err(error) => format!("compilation failed: {error}"),
        Ok((Type::Bool | Type::Any, cost)) if cost.is_none_or(|cost| cost <= COST_MAX) => {
            return ErrorList::new();
        }
        Ok((Type::Bool | Type::Any, _)) => {
            return vec![FieldError::forbidden(
                path,
                "too complex, exceeds cost limit",
            )];
        }
        Ok((other, _)) => format!("{RESULT_MUST}{other}"),
    };
    vec![FieldError::invalid(path, text, detail)]
}

/// What is said of a device: attributes and capacities by the domain of their owner and by name.
fn device() -> Environment {
    const DEVICE: &str = "kubernetes.DRADevice";
    let by_domain = |of: Type| Type::map(Type::String, Type::map(Type::String, of));
    let quantity = Type::Opaque("kubernetes.Quantity".into(), Vec::new());
    let fields = [
        ("driver", Type::String),
        ("attributes", by_domain(Type::Any)),
        ("capacity", by_domain(quantity)),
        ("allowMultipleAllocations", Type::Bool),
    ];
    Environment::default()
        .with_bind()
        .with_struct(DEVICE, &fields)
        .with(VARIABLE, Type::of_struct(DEVICE))
        .sized(Extents::of_variable(VARIABLE, extent()))
}

/// How large a device may be.
fn extent() -> Extent {
    let by_domain = |of: Extent, is_named: bool| {
        let by_name = Extent::map(Extent::of(NAME_LENGTH_MAX), of, ATTRIBUTES_MAX);
        let by_name = if is_named { by_name.named() } else { by_name };
        Extent::map(Extent::of(DOMAIN_LENGTH_MAX), by_name, ATTRIBUTES_MAX)
    };
    Extent::object([
        ("driver", Extent::of(DRIVER_NAME_LENGTH_MAX)),
        ("attributes", by_domain(Extent::of(VALUE_LENGTH_MAX), true)),
        ("capacity", by_domain(Extent::of(0), false)),
        ("allowMultipleAllocations", Extent::of(1)),
    ])
}

/// A DeviceConfiguration: parameters for a driver, which only the driver knows.
pub fn configuration(configuration: &Value, path: &Path) -> ErrorList {
    let path = path.child("opaque");
    let Some(opaque) = json::some(configuration, "opaque") else {
        return vec![FieldError::required(&path, "")];
    };
    let mut errors = driver_name(json::text(opaque, "driver"), &path.child("driver"));
    let parameters = json::get(opaque, "parameters");
    errors.extend(raw(
        parameters,
        PARAMETERS_BYTES_MAX,
        &path.child("parameters"),
    ));
    errors
}

/// A JSON object of any shape.
pub fn raw(value: &Value, bytes_max: usize, path: &Path) -> ErrorList {
    if value.is_null() {
        vec![FieldError::required(path, "")]
    } else if value.to_string().len() > bytes_max {
        vec![FieldError::too_long(path, bytes_max)]
    } else if value.is_object() {
        ErrorList::new()
    } else {
        let detail = "must be a valid JSON object";
        vec![FieldError::invalid(path, "<value omitted>", detail)]
    }
}

/// A taint on a device.
pub fn taint(taint: &Value, path: &Path) -> ErrorList {
    let mut errors = label_name(json::text(taint, "key"), &path.child("key"));
    let value = json::text(taint, "value");
    let details = crate::names::label_value(value);
    invalid_each(&mut errors, &path.child("value"), value, details);
    let effect = json::text(taint, "effect");
    checks::required_one_of(&mut errors, effect, EFFECTS, &path.child("effect"));
    errors
}

/// A toleration of such a taint.
pub fn toleration(toleration: &Value, path: &Path) -> ErrorList {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| json::text(toleration, field));
    let mut errors = ErrorList::new();
    if !key.is_empty() {
        errors.extend(label_name(key, &path.child("key")));
    }
    let value_path = path.child("value");
    match operator {
        "Exists" if !value.is_empty() => {
            let detail = "must be empty for operator `Exists`";
            errors.push(FieldError::invalid(&value_path, value, detail));
        }
        "Exists" => {}
        "Equal" => {
            let details = crate::names::label_value(value);
            invalid_each(&mut errors, &value_path, value, details);
        }
        other => {
            let operators = &["Equal", "Exists"];
            checks::required_one_of(&mut errors, other, operators, &path.child("operator"));
        }
    }
    if !effect.is_empty() {
        checks::one_of(&mut errors, effect, EFFECTS, &path.child("effect"));
    }
    errors
}

/// What must come true, and what must not, before a pod is bound.
pub fn binding_conditions(holder: &Value, path: &Path) -> ErrorList {
    let lists = ["bindingConditions", "bindingFailureConditions"];
    let [conditions, failures] = lists.map(|list| json::list(holder, list));
    let [conditions_path, failures_path] = lists.map(|list| path.child(list));
    let label = |item: &Value, path: &Path| label_name(item.as_str().unwrap_or(""), path);
    let mut errors = each(conditions, BINDING_CONDITIONS_MAX, &conditions_path, label);
    errors.extend(each(
        failures,
        BINDING_CONDITIONS_MAX,
        &failures_path,
        label,
    ));
    for (index, condition) in conditions.iter().enumerate() {
        if conditions[..index].contains(condition) {
            let path = conditions_path.index(index);
            errors.push(FieldError::duplicate(&path, condition.clone()));
        }
    }
    for (index, condition) in failures.iter().enumerate() {
        let path = failures_path.index(index);
        if failures[..index].contains(condition) {
            errors.push(FieldError::duplicate(&path, condition.clone()));
        }
        if conditions.contains(condition) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.push(FieldError::invalid(&path, condition.clone(), detail));
        }
    }
    let alone = match (conditions.is_empty(), failures.is_empty()) {
        (true, false) => Some((
            &conditions_path,
            lists[0],
            "bindingConditions are required to use bindingFailureConditions",
        )),
        (false, true) => Some((
            &failures_path,
            lists[1],
            "bindingFailureConditions are required to use bindingConditions",
        )),
        _ => None,
    };
    if let Some((path, list, detail)) = alone {
        let value = json::get(holder, list).clone();
        errors.push(FieldError::invalid(path, value, detail));
    }
    errors
}
