//! Roles: what may be done, in a namespace or in the whole cluster.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::plain;
use crate::object::Object;
use crate::resource::{Column, NameRule, Part, Rules};
use crate::{json, label_selector};
use serde_json::Value;

#[derive(Debug)]
pub struct Role {
    pub namespaced: bool,
}

impl Rules for Role {
    /// The rules are always shown.
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "rules", Value::Null);
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("rules");
        let mut errors = ErrorList::new();
        for (index, rule) in object.list(&["rules"]).iter().enumerate() {
            errors.extend(policy_rule(rule, self.namespaced, &path.index(index)));
        }
        if !self.namespaced {
            errors.extend(aggregation(object));
        }
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        self.validate_create(new)
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        plain::COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        plain::cells(object)
    }
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let absent = |name: &str| json::list(rule, name).is_empty();
    if absent("verbs") {
        let detail = "verbs must contain at least one value";
        errors.push(FieldError::required(&path.child("verbs"), detail));
    }
    let urls = json::list(rule, "nonResourceURLs");
    if !urls.is_empty() {
        let path = path.child("nonResourceURLs");
        let mut invalid =
            |detail: &str| errors.push(FieldError::invalid(&path, Value::from(urls), detail));
        if namespaced {
            invalid("namespaced rules cannot apply to non-resource URLs");
        }
        if !(absent("apiGroups") && absent("resources") && absent("resourceNames")) {
            invalid("rules cannot apply to both regular resources and non-resource URLs");
        }
        return errors;
    }
    for (name, one) in [("apiGroups", "api group"), ("resources", "resource")] {
        if absent(name) {
            let detail = format!("resource rules must supply at least one {one}");
            errors.push(FieldError::required(&path.child(name), detail));
        }
    }
    errors
}

fn aggregation(object: &Object) -> ErrorList {
    let Some(rule) = object
        .get(&["aggregationRule"])
        .filter(|rule| !rule.is_null())
    else {
        return ErrorList::new();
    };
    let path = Path::root("aggregationRule").child("clusterRoleSelectors");
    let selectors = json::list(rule, "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        return vec![FieldError::required(&path, detail)];
    }
    let mut errors = ErrorList::new();
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index);
        let found = label_selector::validate(selector, &path);
        if !found.is_empty() {
            errors.extend(found);
            let detail = "invalid label selector.";
            errors.push(FieldError::invalid(&path, Value::Null, detail));
        }
    }
    errors
}
