//! The user and the request that an access review asks about. Pure.

use crate::authenticate::User;
use crate::request_info::RequestInfo;
use coracle_api::json;
use coracle_api::selector::{FieldSelector, LabelSelector, Operator, Requirement};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn user(spec: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        let texts = items.iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    User {
        name: json::text(spec, "user").to_owned(),
        uid: json::text(spec, "uid").to_owned(),
        groups: texts(json::get(spec, "groups")),
        extra: json::entries(spec, "extra")
            .map(|(key, values)| (key.to_owned(), texts(values)))
            .collect::<BTreeMap<_, _>>(),
    }
}

/// The request, and what of it was not understood and is left out. All parts of a selector must
/// hold, so that leaving one out asks for more.
pub(super) fn request(spec: &Value) -> (RequestInfo, Vec<String>) {
    if let Some(asked) = json::some(spec, "nonResourceAttributes") {
        let info = RequestInfo {
            verb: json::text(asked, "verb").to_owned(),
            path: json::text(asked, "path").to_owned(),
            ..RequestInfo::default()
        };
        return (info, Vec::new());
    }
    let asked = json::get(spec, "resourceAttributes");
    let text = |name: &str| json::text(asked, name).to_owned();
    let fields = selector(asked, "fieldSelector", is_field_selector, field_requirement);
    let labels = selector(asked, "labelSelector", is_label_selector, label_requirement);
    let info = RequestInfo {
        verb: text("verb"),
        group: text("group"),
        version: match text("version") {
            none if none.is_empty() => "*".to_owned(),
            version => version,
        },
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        is_resource_request: true,
        field_selector: fields.text,
        label_selector: labels.text,
        ..RequestInfo::default()
    };
    let ignored = [fields.ignored, labels.ignored];
    (info, ignored.into_iter().flatten().collect())
}

/// A selector as a query carries it.
struct Selector {
    text: String,
    ignored: Option<String>,
}

fn selector(
    asked: &Value,
    name: &str,
    is_good: fn(&str) -> bool,
    requirement: fn(&Value) -> Option<String>,
) -> Selector {
    let selector = json::get(asked, name);
    let requirements = json::list(selector, "requirements");
    let raw = json::text(selector, "rawSelector");
    let (text, is_whole) = if requirements.is_empty() {
        let text = if is_good(raw) { raw } else { "" };
        (text.to_owned(), text == raw)
    } else {
        let good: Vec<String> = requirements.iter().filter_map(requirement).collect();
        (good.join(","), good.len() == requirements.len())
    };
    let how = match text.is_empty() {
        true => "ignored",
        false => "partially ignored",
    };
    let ignored = format!("spec.resourceAttributes.{name} {how} due to parse error");
    Selector {
        text,
        ignored: (!is_whole).then_some(ignored),
    }
}

fn is_field_selector(text: &str) -> bool {
    FieldSelector::parse(text).is_ok()
}

fn is_label_selector(text: &str) -> bool {
    LabelSelector::parse(text).is_ok()
}

/// Selectors of fields know equality alone.
fn field_requirement(one: &Value) -> Option<String> {
    let sign = match json::text(one, "operator") {
        "In" => "=",
        "NotIn" => "!=",
        _ => return None,
    };
    let [value] = json::list(one, "values") else {
        return None;
    };
    let value = escaped(value.as_str()?);
    Some(format!("{}{sign}{value}", json::text(one, "key")))
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if matches!(letter, '\\' | ',' | '=') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

fn label_requirement(one: &Value) -> Option<String> {
    let values = json::list(one, "values").iter().filter_map(Value::as_str);
    let values: Vec<String> = values.map(str::to_owned).collect();
    let key = json::text(one, "key").to_owned();
    let operator = match json::text(one, "operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    let one = Requirement::new(key, operator, values).ok()?;
    Some(LabelSelector::from_requirements(vec![one]).to_string())
}
