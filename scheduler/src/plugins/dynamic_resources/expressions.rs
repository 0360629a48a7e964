//! The expressions of classes and claims, compiled once, and what they see of a device.

use coracle_api::kinds::devices::matching::{Attribute, Device as Seen, Expression};
use coracle_api::quantity::Quantity;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceSelector};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Expressions kept; past this all are forgotten. A cluster has a few for each class.
const KEPT_MAX: usize = 256;

/// By their text; what is wrong with one is told to whoever uses it.
pub type Compiled = HashMap<String, Arc<Result<Expression, String>>>;

#[derive(Debug, Default)]
pub struct Expressions(Mutex<Compiled>);

impl Expressions {
    /// Those of `selectors`, for one pod.
    pub fn compile<'a>(&self, selectors: impl Iterator<Item = &'a DeviceSelector>) -> Compiled {
        let mut all = Compiled::new();
        for selector in selectors {
            let Some(cel) = &selector.cel else { continue };
            if !all.contains_key(&cel.expression) {
                all.insert(cel.expression.clone(), self.one(&cel.expression));
            }
        }
        all
    }

    fn one(&self, text: &str) -> Arc<Result<Expression, String>> {
        let known = self.0.lock().get(text).cloned();
        known.unwrap_or_else(|| {
            let compiled = Arc::new(Expression::compile(text));
            let mut kept = self.0.lock();
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(text.to_owned(), Arc::clone(&compiled));
            compiled
        })
    }
}

pub fn device_seen<'a>(device: &'a Device, driver: &'a str) -> Seen<'a> {
    let attributes = device.attributes.iter().flatten();
    let capacity = device.capacity.iter().flatten();
    Seen {
        driver,
        allows_multiple: device.allow_multiple_allocations == Some(true),
        attributes: attributes
            .map(|(name, attribute)| (&**name, value(attribute)))
            .collect(),
        capacity: capacity
            .filter_map(|(name, one)| Some((&**name, Quantity::parse(&one.value.0).ok()?)))
            .collect(),
    }
}

fn value(attribute: &DeviceAttribute) -> Attribute<'_> {
    match attribute {
        DeviceAttribute {
            int: Some(number), ..
        } => Attribute::Int(*number),
        DeviceAttribute {
            bool: Some(is_true),
            ..
        } => Attribute::Bool(*is_true),
        DeviceAttribute {
            string: Some(text), ..
        } => Attribute::Text(text),
        DeviceAttribute {
            version: Some(text),
            ..
        } => Attribute::Version(text),
        _ => Attribute::Unknown,
    }
}
