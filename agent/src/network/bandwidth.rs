//! How much a pod may send and be sent, by its annotations. Pure.

use coracle_api::quantity::Quantity;
use std::collections::BTreeMap;

const INGRESS: &str = "kubernetes.io/ingress-bandwidth";
const EGRESS: &str = "kubernetes.io/egress-bandwidth";

/// Upstream's bounds, in bits a second.
const BITS_MIN: i64 = 1000;
const BITS_MAX: i64 = 1_000_000_000_000_000;

/// In bytes a second; None for no limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Bandwidth {
    /// To the pod.
    pub ingress: Option<u64>,
    pub egress: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum BandwidthError {
    #[error("the annotation {annotation} is no quantity: {value:?}")]
    NoQuantity {
        annotation: &'static str,
        value: String,
    },
    #[error("the annotation {annotation} is unreasonably small (< 1kbit): {value:?}")]
    Small {
        annotation: &'static str,
        value: String,
    },
    #[error("the annotation {annotation} is unreasonably large (> 1Pbit): {value:?}")]
    Large {
        annotation: &'static str,
        value: String,
    },
}

impl Bandwidth {
    pub fn of(annotations: &BTreeMap<String, String>) -> Result<Self, BandwidthError> {
        Ok(Self {
            ingress: limit(annotations, INGRESS)?,
            egress: limit(annotations, EGRESS)?,
        })
    }
}

fn limit(
    annotations: &BTreeMap<String, String>,
    annotation: &'static str,
) -> Result<Option<u64>, BandwidthError> {
    let Some(value) = annotations.get(annotation) else {
        return Ok(None);
    };
    let text = value.clone();
    let Ok(quantity) = Quantity::parse(value) else {
        return Err(BandwidthError::NoQuantity {
            annotation,
            value: text,
        });
    };
    match quantity.value() {
        bits if bits < BITS_MIN => Err(BandwidthError::Small {
            annotation,
            value: text,
        }),
        bits if bits > BITS_MAX => Err(BandwidthError::Large {
            annotation,
            value: text,
        }),
        bits => Ok(u64::try_from(bits / 8).ok()),
    }
}

#[cfg(test)]
mod tests;
