//! Bindings: who has a role, in a namespace or in the whole cluster.

use super::GROUP;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, column, wide};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::resource::{Column, NameRule, Part, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Role", "string", "The role that is given."),
    row::AGE,
    wide("Users", "string", "Users in the roleBinding"),
    wide("Groups", "string", "Groups in the roleBinding"),
    wide(
        "ServiceAccounts",
        "string",
        "ServiceAccounts in the roleBinding",
    ),
];

const CLUSTER_COLUMNS: &[Column] = &[
    row::NAME,
    column("Role", "string", "The role that is given."),
    row::AGE,
    wide("Users", "string", "Users in the clusterRoleBinding"),
    wide("Groups", "string", "Groups in the clusterRoleBinding"),
    wide(
        "ServiceAccounts",
        "string",
        "ServiceAccounts in the clusterRoleBinding",
    ),
];

#[derive(Debug)]
pub struct Binding {
    pub namespaced: bool,
}

impl Rules for Binding {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "roleRef", json!({}));
        if let Some(role) = object.get_mut(&["roleRef"]) {
            json::default_text(role, "apiGroup", GROUP);
        }
        let subjects = object.get_mut(&["subjects"]).and_then(Value::as_array_mut);
        for subject in subjects.into_iter().flatten() {
            if matches!(json::text(subject, "kind"), "User" | "Group") {
                json::default_text(subject, "apiGroup", GROUP);
            }
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = self.role(object);
        let path = Path::root("subjects");
        for (index, subject) in object.list(&["subjects"]).iter().enumerate() {
            errors.extend(self.subject(subject, &path.index(index)));
        }
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = self.validate_create(new);
        let role = |object: &Object| object.get(&["roleRef"]).cloned().unwrap_or_default();
        if role(new) != role(old) {
            let path = Path::root("roleRef");
            let error = FieldError::invalid(&path, role(new), "cannot change roleRef");
            errors.push(error.as_go("io.k8s.api.rbac.v1.RoleRef"));
        }
        errors
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        if self.namespaced {
            COLUMNS
        } else {
            CLUSTER_COLUMNS
        }
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let subjects = |kind: &str| -> Value {
            let subjects = object.list(&["subjects"]).iter();
            let names: Vec<String> = subjects
                .filter(|subject| json::text(subject, "kind") == kind)
                .map(|subject| match kind {
                    "ServiceAccount" => {
                        format!(
                            "{}/{}",
                            json::text(subject, "namespace"),
                            json::text(subject, "name")
                        )
                    }
                    _ => json::text(subject, "name").to_owned(),
                })
                .collect();
            names.join(", ").into()
        };
        let role = ["kind", "name"].map(|field| object.str(&["roleRef", field]));
        vec![
            object.name().into(),
            role.join("/").into(),
            print::age_of(object, now),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    }
}

impl Binding {
    fn role(&self, object: &Object) -> ErrorList {
        let path = Path::root("roleRef");
        let mut errors = ErrorList::new();
        let group = object.str(&["roleRef", "apiGroup"]);
        if group != GROUP {
            errors.push(FieldError::not_supported(
                &path.child("apiGroup"),
                group,
                &[GROUP],
            ));
        }
        let kinds: &[&str] = if self.namespaced {
            &["Role", "ClusterRole"]
        } else {
            &["ClusterRole"]
        };
        let kind = object.str(&["roleRef", "kind"]);
        if !kinds.contains(&kind) {
            errors.push(FieldError::not_supported(&path.child("kind"), kind, kinds));
        }
        let path = path.child("name");
        match object.str(&["roleRef", "name"]) {
            "" => errors.push(FieldError::required(&path, "")),
            name => invalid_each(&mut errors, &path, name, names::path_segment(name)),
        }
        errors
    }

    fn subject(&self, subject: &Value, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let name = json::text(subject, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let group = json::text(subject, "apiGroup");
        let group_path = path.child("apiGroup");
        match json::text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    let path = path.child("name");
                    invalid_each(&mut errors, &path, name, names::dns_subdomain(name));
                }
                if !group.is_empty() {
                    errors.push(FieldError::not_supported(&group_path, group, &[""]));
                }
                if !self.namespaced && json::text(subject, "namespace").is_empty() {
                    errors.push(FieldError::required(&path.child("namespace"), ""));
                }
            }
            "User" | "Group" if group != GROUP => {
                errors.push(FieldError::not_supported(&group_path, group, &[GROUP]));
            }
            "User" | "Group" => {}
            kind => {
                let supported = &["ServiceAccount", "User", "Group"];
                errors.push(FieldError::not_supported(
                    &path.child("kind"),
                    kind,
                    supported,
                ));
            }
        }
        errors
    }
}
