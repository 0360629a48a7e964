//! The managers of a Scale: those of the object that it shows, as far as replicas go, and back.

use super::managed::{Entry, Managed};
use super::set::Set;
use serde_json::Value;

const SCALE_VERSION: &str = "autoscaling/v1";
/// Where both have the number of replicas.
const REPLICAS: &[&str] = &["spec", "replicas"];

/// True for a version in which the parent is known to have replicas.
fn is_known(api_version: &str, parent_version: &str) -> bool {
    let group = |text: &str| {
        text.rsplit_once('/')
            .map_or("", |(group, _)| group)
            .to_owned()
    };
    group(api_version) == group(parent_version)
}

/// `managedFields` of the Scale.
pub fn of_parent(parent: Option<&Value>, parent_version: &str) -> Option<Value> {
    let managed = Managed::read(parent).ok()?;
    let entries = managed
        .0
        .into_iter()
        .filter(|entry| is_known(&entry.api_version, parent_version))
        .filter(|entry| entry.set.has_fields(REPLICAS))
        .map(|entry| Entry {
            api_version: SCALE_VERSION.into(),
            set: Set::of_fields(&[REPLICAS]),
            ..entry
        });
    Managed(entries.collect()).into_value()
}

/// `managedFields` of the object after a write of its Scale, whose managers are `scale`.
pub fn to_parent(
    parent: Option<&Value>,
    scale: Option<&Value>,
    parent_version: &str,
) -> Option<Value> {
    let before = Managed::read(parent).ok()?;
    let mut of_scale = Managed::read(scale).ok()?;
    let mut after: Vec<Entry<'_>> = Vec::new();
    for entry in &before.0 {
        if !is_known(&entry.api_version, parent_version) {
            continue;
        }
        let keeps = !entry.set.has_fields(REPLICAS) || of_scale.take(entry).is_some();
        let set = if keeps {
            entry.set.clone()
        } else {
            entry.set.difference(&Set::of_fields(&[REPLICAS]))
        };
        if !set.is_empty() {
            after.push(Entry {
                set,
                ..entry.clone()
            });
        }
    }
    for entry in of_scale.0 {
        if entry.set.has_fields(REPLICAS) {
            let time = before.find(&entry).and_then(|one| one.time.clone());
            after.push(Entry {
                time,
                api_version: parent_version.to_owned().into(),
                set: Set::of_fields(&[REPLICAS]),
                ..entry
            });
        }
    }
    Managed(after).into_value()
}
