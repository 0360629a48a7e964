//! Asks whether a toleration bears a taint, with the types of the wire.

use coracle_api::toleration;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};

/// The one rule of `api`, asked with the types of the wire.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let toleration = toleration::Toleration {
        key: toleration.key.as_deref().unwrap_or(""),
        operator: toleration.operator.as_deref().unwrap_or(""),
        value: toleration.value.as_deref().unwrap_or(""),
        effect: toleration.effect.as_deref().unwrap_or(""),
    };
    toleration.bears(toleration::Taint {
        key: &taint.key,
        value: taint.value.as_deref().unwrap_or(""),
        effect: &taint.effect,
    })
}

/// The same of a device and a claim. These know no comparison of numbers.
pub fn tolerates_device(one: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let operator = one.operator.as_deref().unwrap_or("");
    let toleration = toleration::Toleration {
        key: one.key.as_deref().unwrap_or(""),
        operator,
        value: one.value.as_deref().unwrap_or(""),
        effect: one.effect.as_deref().unwrap_or(""),
    };
    let taint = toleration::Taint {
        key: &taint.key,
        value: taint.value.as_deref().unwrap_or(""),
        effect: &taint.effect,
    };
    matches!(operator, "" | "Equal" | "Exists") && toleration.bears(taint)
}
