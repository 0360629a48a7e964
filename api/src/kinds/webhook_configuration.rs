//! Webhooks that change, and webhooks that judge, what is written.

use crate::field::ErrorList;
use crate::json;
use crate::kinds::admission_registration::webhook::{self, Does};
use crate::kinds::admission_registration::{self, GROUP};
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

pub const MUTATING: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "MutatingWebhookConfiguration",
            plural: "mutatingwebhookconfigurations",
            singular: "mutatingwebhookconfiguration",
            schema: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        },
        &WebhookConfiguration(Does::Change),
    )
};

pub const VALIDATING: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "ValidatingWebhookConfiguration",
            plural: "validatingwebhookconfigurations",
            singular: "validatingwebhookconfiguration",
            schema: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
        },
        &WebhookConfiguration(Does::Judge),
    )
};

#[derive(Debug)]
struct WebhookConfiguration(Does);

impl Rules for WebhookConfiguration {
    fn default(&self, object: &mut Object) {
        webhook::default(object, self.0);
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn raises_generation(&self, new: &Object, old: &Object) -> bool {
        let [new, old] = [new, old].map(|object| object.get(&["webhooks"]).unwrap_or(&json::NULL));
        !json::same(new, old)
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        webhook::validate(object, self.0)
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        self.validate_create(new)
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        webhook::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        webhook::cells(object, now)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        admission_registration::warnings(object)
    }
}
