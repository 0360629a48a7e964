//! Claims and ingresses that name no class get the default one: the newest of those that are
//! marked as default, by name among those of one second.

use super::Attributes;
use crate::view::View;
use coracle_api::kinds::storage::BETA_CLASS;
use coracle_api::object::Object;
use jiff::Timestamp;
use std::cmp::Reverse;

const STORAGE_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const INGRESS_DEFAULT: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

pub fn of_claim(view: &dyn View, claim: &mut Object, asked: &Attributes<'_>) {
    const FIELD: &[&str] = &["spec", "storageClassName"];
    if !asked.is_main("", "persistentvolumeclaims") || has(claim, FIELD, BETA_CLASS) {
        return;
    }
    let classes = view.list("storage.k8s.io", "storageclasses", None);
    if let Some(class) = newest(classes, &STORAGE_DEFAULT) {
        claim.set(FIELD, class.name().into());
    }
}

pub fn of_ingress(view: &dyn View, ingress: &mut Object, asked: &Attributes<'_>) {
    const FIELD: &[&str] = &["spec", "ingressClassName"];
    if !asked.is_main("networking.k8s.io", "ingresses") || has(ingress, FIELD, INGRESS_CLASS) {
        return;
    }
    let classes = view.list("networking.k8s.io", "ingressclasses", None);
    if let Some(class) = newest(classes, &INGRESS_DEFAULT) {
        ingress.set(FIELD, class.name().into());
    }
}

/// An empty name is a choice too: of no class.
fn has(object: &Object, field: &[&str], annotation: &str) -> bool {
    object.get(field).is_some_and(|name| !name.is_null()) || object.annotation(annotation).is_some()
}

fn newest(classes: Vec<Object>, marks: &[&str]) -> Option<Object> {
    classes
        .into_iter()
        .filter(|class| {
            marks
                .iter()
                .any(|mark| class.annotation(mark) == Some("true"))
        })
        .min_by_key(|class| {
            let made: Option<Timestamp> =
                class.str(&["metadata", "creationTimestamp"]).parse().ok();
            (Reverse(made), class.name().to_owned())
        })
}
