//! Service accounts: the identities of pods.

use crate::field::{ErrorList, Path};
use crate::kinds::row::{self, CREATE_ONLY, Names};
use crate::object::Object;
use crate::print;
use crate::resource::{Column, Part, Resource, Rules, Subresource, SubresourceKind};
use serde_json::Value;

pub const ROW: Resource = Resource {
    short_names: &["sa"],
    subresources: &[Subresource {
        name: "token",
        kind: SubresourceKind::Action,
        body: Some(("authentication.k8s.io", "v1", "TokenRequest")),
        verbs: CREATE_ONLY,
    }],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "ServiceAccount",
            plural: "serviceaccounts",
            singular: "serviceaccount",
            schema: "io.k8s.api.core.v1.ServiceAccount",
        },
        &ServiceAccount,
    )
};

/// Pods of such an account use no secrets but its own.
pub const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

const COLUMNS: &[Column] = &[row::NAME, row::AGE];

#[derive(Debug)]
struct ServiceAccount;

impl Rules for ServiceAccount {
    fn default(&self, _object: &mut Object) {}

    /// Of a reference to a secret, only the name is kept.
    fn prepare_create(&self, object: &mut Object) {
        let secrets = object.get_mut(&["secrets"]).and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten() {
            if let Some(reference) = secret.as_object_mut() {
                reference.retain(|field, _| field == "name");
            }
        }
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _part: Part<'_>) {
        self.prepare_create(new);
    }

    fn validate_create(&self, _object: &Object) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        ErrorList::new()
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let is_set = object.annotation(MOUNTABLE_SECRETS).is_some();
        let text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted \
                    secrets";
        let path = Path::root("metadata").child("annotations");
        let warning = is_set.then(|| format!("{}: {text}", path.key(MOUNTABLE_SECRETS)));
        warning.into_iter().collect()
    }

    /// Nobody is told twice.
    fn warnings_on_update(&self, new: &Object, old: &Object) -> Vec<String> {
        match old.annotation(MOUNTABLE_SECRETS) {
            Some(_) => Vec::new(),
            None => self.warnings(new),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![object.name().into(), print::age_of(object, now)]
    }
}

#[cfg(test)]
mod tests;
