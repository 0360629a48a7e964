//! Bindings: where a policy applies, and with which parameters.

use super::rules;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, column};
use crate::object::Object;
use crate::resource::Column;
use crate::{json, label_selector, names, print};
use serde_json::{Value, json};
use std::fmt::Write;

pub const COLUMNS: &[Column] = &[
    row::NAME,
    column("PolicyName", "string", "The policy that is bound."),
    column("ParamRef", "string", "Where its parameters are."),
    row::AGE,
];

pub fn default(object: &mut Object) {
    json::default_in(object.root_mut(), "spec", json!({}));
    if let Some(spec) = object.get_mut(&["spec"]) {
        rules::default_match_resources(spec, "matchResources");
    }
}

pub fn cells(object: &Object, now: i64) -> Vec<Value> {
    vec![
        object.name().into(),
        object.str(&["spec", "policyName"]).into(),
        param_cell(object.get(&["spec", "paramRef"])),
        print::age_of(object, now),
    ]
}

fn param_cell(param: Option<&Value>) -> Value {
    let param = param.unwrap_or(&Value::Null);
    match (json::text(param, "namespace"), json::text(param, "name")) {
        (_, "") => match json::some(param, "selector") {
            Some(selector) => selector_cell(selector).into(),
            None => "<unset>".into(),
        },
        // Whether it has a namespace is not known here.
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}

/// As Go shows the struct.
fn selector_cell(selector: &Value) -> String {
    let mut labels: Vec<(&str, &str)> = json::entries(selector, "matchLabels")
        .map(|(key, value)| (key, value.as_str().unwrap_or("")))
        .collect();
    labels.sort_unstable();
    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in labels {
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for one in json::list(selector, "matchExpressions") {
        let values: Vec<&str> = json::list(one, "values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            json::text(one, "key"),
            json::text(one, "operator"),
            values.join(" ")
        );
    }
    text.push_str("},}");
    text
}

/// What is wrong with a binding, the actions of one that judges aside.
pub fn validate(object: &Object) -> ErrorList {
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let path = Path::root("spec");
    let mut errors = ErrorList::new();
    let (name, of_name) = (json::text(spec, "policyName"), path.child("policyName"));
    if name.is_empty() {
        errors.push(FieldError::required(&of_name, ""));
    } else {
        checks::each(&mut errors, &of_name, name, names::dns_subdomain(name));
    }
    if let Some(param) = json::some(spec, "paramRef") {
        errors.extend(param_ref(param, &path.child("paramRef")));
    }
    if let Some(resources) = json::some(spec, "matchResources") {
        let path = path.child("matchResources");
        errors.extend(rules::match_resources(resources, &path));
    }
    errors
}

fn param_ref(param: &Value, path: &Path) -> ErrorList {
    const EITHER: &str = "name and selector are mutually exclusive";
    let name = json::text(param, "name");
    let selector = json::some(param, "selector");
    let mut errors = ErrorList::new();
    if !name.is_empty() {
        let path = path.child("name");
        checks::each(&mut errors, &path, name, names::path_segment(name));
        if selector.is_some() {
            errors.push(FieldError::forbidden(&path, EITHER));
        }
    }
    if let Some(selector) = selector {
        let path = path.child("selector");
        errors.extend(label_selector::validate(selector, &path));
        if !name.is_empty() {
            errors.push(FieldError::forbidden(&path, EITHER));
        }
    } else if name.is_empty() {
        let detail = "one of name or selector must be specified";
        errors.push(FieldError::required(path, detail));
    }
    checks::required_one_of(
        &mut errors,
        json::text(param, "parameterNotFoundAction"),
        &["Deny", "Allow"],
        &path.child("parameterNotFoundAction"),
    );
    errors
}
