//! Ingress classes: which controller implements an ingress.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::Value;

pub const ROW: Resource = row::cluster(
    "networking.k8s.io",
    "v1",
    Names {
        kind: "IngressClass",
        plural: "ingressclasses",
        singular: "ingressclass",
        schema: "io.k8s.api.networking.v1.IngressClass",
    },
    &IngressClass,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Controller",
        "string",
        "Controller that is responsible for handling this class",
    ),
    column(
        "Parameters",
        "string",
        "A reference to a resource with additional parameters",
    ),
    row::AGE,
];

const CONTROLLER_BYTES_MAX: usize = 250;
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

#[derive(Debug)]
struct IngressClass;

impl Rules for IngressClass {
    fn default(&self, object: &mut Object) {
        if let Some(parameters) = object.get_mut(&["spec", "parameters"]) {
            json::default(parameters, "scope", "Cluster");
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("spec");
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        let controller = json::text(spec, "controller");
        let controller_path = path.child("controller");
        let mut errors = ErrorList::new();
        if controller.len() > CONTROLLER_BYTES_MAX {
            let error = FieldError::too_long(&controller_path, CONTROLLER_BYTES_MAX);
            errors.push(error);
        }
        checks::domain_prefixed_path(&mut errors, controller, &controller_path);
        if let Some(parameters) = json::some(spec, "parameters") {
            errors.extend(check_parameters(parameters, &path.child("parameters")));
        }
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let [new_spec, old_spec] =
            [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
        let mut errors = ErrorList::new();
        let path = Path::root("spec");
        checks::immutable_text(&mut errors, new_spec, old_spec, "controller", &path);
        errors.extend(self.validate_create(new));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let name = match object.annotation(IS_DEFAULT) {
            Some("true") => format!("{} (default)", object.name()),
            _ => object.name().to_owned(),
        };
        let parameters = object.get(&["spec", "parameters"]);
        let parameters = match parameters.filter(|parameters| !parameters.is_null()) {
            None => "<none>".to_owned(),
            Some(parameters) => {
                let text = |field| json::text(parameters, field);
                match json::some(parameters, "apiGroup").and_then(Value::as_str) {
                    Some(group) => format!("{}.{group}/{}", text("kind"), text("name")),
                    None => format!("{}/{}", text("kind"), text("name")),
                }
            }
        };
        vec![
            name.into(),
            object.str(&["spec", "controller"]).into(),
            parameters.into(),
            print::age_of(object, now),
        ]
    }
}

fn check_parameters(parameters: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(group) = json::some(parameters, "apiGroup").and_then(Value::as_str) {
        let path = path.child("apiGroup");
        checks::each(&mut errors, &path, group, names::dns_subdomain(group));
    }
    checks::required_segment(&mut errors, parameters, "kind", path);
    checks::required_segment(&mut errors, parameters, "name", path);
    let scope_path = path.child("scope");
    let Some(scope) = json::some(parameters, "scope").and_then(Value::as_str) else {
        errors.push(FieldError::required(&scope_path, ""));
        return errors;
    };
    let namespace = json::some(parameters, "namespace").and_then(Value::as_str);
    let path = path.child("namespace");
    match (scope, namespace) {
        ("Namespace", None) => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(&path, detail));
        }
        ("Namespace", Some(namespace)) => {
            let details = names::dns_label(namespace);
            checks::each(&mut errors, &path, namespace, details);
        }
        ("Cluster", Some(_)) => {
            let detail = "`parameters.scope` is set to 'Cluster'";
            errors.push(FieldError::forbidden(&path, detail));
        }
        _ => checks::one_of(&mut errors, scope, &["Cluster", "Namespace"], &scope_path),
    }
    errors
}

#[cfg(test)]
mod tests;
