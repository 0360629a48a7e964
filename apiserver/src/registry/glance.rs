//! What can be read off stored bytes without parsing all of them.
//!
//! Stored bytes begin with kind, apiVersion and metadata, in this order and spelt in one way
//! ([`super::encode`]); whatever does not is parsed whole.

use super::{decode, is_second_view};
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What selectors ask of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    /// Values of the resource's selectable fields, in their order; empty when not asked for.
    pub fields: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

impl Traits {
    /// `with_fields` when a selector asks for more than metadata. `None` for bytes that are no
    /// object.
    pub fn of(resource: &Resource, value: &Bytes, with_fields: bool) -> Option<Self> {
        let needs_all = with_fields && !resource.selectable_fields.is_empty();
        if !needs_all && let Some(metadata) = after_type(resource, value).and_then(metadata) {
            return Some(Self {
                name: metadata.name,
                namespace: metadata.namespace,
                labels: metadata.labels.unwrap_or_default(),
                fields: Vec::new(),
            });
        }
        let object = match needs_all && is_shallow(resource) {
            true => shallow(resource, value)?,
            false => decode(resource, value)?,
        };
        Some(Self::of_object(resource, &object))
    }

    pub fn of_object(resource: &Resource, object: &Object) -> Self {
        let fields = resource.selectable_fields.iter();
        Self {
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
            labels: object
                .labels()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            fields: fields
                .map(|field| resource.rules.field(object, field))
                .collect(),
        }
    }

    /// The value of a selectable field.
    pub fn field(&self, resource: &Resource, name: &str) -> &str {
        let own = || {
            let all = resource.selectable_fields.iter();
            let place = all.clone().position(|field| *field == name)?;
            self.fields.get(place).map(String::as_str)
        };
        match name {
            "metadata.name" => &self.name,
            "metadata.namespace" => &self.namespace,
            _ => own().unwrap_or(""),
        }
    }
}

/// The bytes behind kind and apiVersion: a comma and the rest. `None` when they are not those of
/// the resource, or stand elsewhere.
pub fn after_type<'a>(resource: &Resource, value: &'a [u8]) -> Option<&'a [u8]> {
    if is_second_view(resource) {
        return None;
    }
    let rest = value.strip_prefix(b"{\"kind\":\"")?;
    let rest = rest.strip_prefix(resource.kind.as_bytes())?;
    let mut rest = rest.strip_prefix(b"\",\"apiVersion\":\"")?;
    if !resource.group.is_empty() {
        rest = rest.strip_prefix(resource.group.as_bytes())?;
        rest = rest.strip_prefix(b"/")?;
    }
    let rest = rest.strip_prefix(resource.version.as_bytes())?;
    let rest = rest.strip_prefix(b"\"")?;
    rest.starts_with(b",").then_some(rest)
}

fn metadata(after_type: &[u8]) -> Option<Metadata> {
    let rest = after_type.strip_prefix(b",\"metadata\":")?;
    // Reads one value and looks no further.
    Metadata::deserialize(&mut serde_json::Deserializer::from_slice(rest)).ok()
}

/// What is below a field that a selector may name and is no plain value itself: `status.podIP` is
/// the first of them.
const KEPT: &str = "podIPs";

/// Whether all that selectors may ask for is a plain value in a part of the object, as
/// `spec.nodeName` is.
fn is_shallow(resource: &Resource) -> bool {
    let depth = |field: &&str| field.split('.').count();
    !is_second_view(resource)
        && resource
            .selectable_fields
            .iter()
            .all(|field| depth(field) <= 2)
}

/// An object of which only names, labels and the plain values of its parts are decoded: each event
/// of a watch is looked at twice, and a pod is mostly containers.
fn shallow(resource: &Resource, value: &[u8]) -> Option<Object> {
    let parts: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(value).ok()?;
    let mut object = Map::new();
    for (name, raw) in parts {
        let part = match &*name {
            "metadata" => {
                let metadata: Metadata = serde_json::from_str(raw.get()).ok()?;
                serde_json::to_value(metadata).ok()?
            }
            _ if raw.get().starts_with('{') => plain_values(raw)?,
            _ => serde_json::from_str(raw.get()).ok()?,
        };
        object.insert(name.into_owned(), part);
    }
    object.insert("kind".to_owned(), resource.kind.into());
    Object::from_value(object.into())
}

fn plain_values(part: &RawValue) -> Option<Value> {
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(part.get()).ok()?;
    let is_kept = |name: &str, raw: &RawValue| name == KEPT || !raw.get().starts_with(['{', '[']);
    let mut plain = Map::new();
    for (name, raw) in fields {
        if is_kept(&name, raw) {
            plain.insert(name.into_owned(), serde_json::from_str(raw.get()).ok()?);
        }
    }
    Some(plain.into())
}

/// The bytes of an object's metadata.
pub fn metadata_bytes<'a>(resource: &Resource, value: &'a [u8]) -> Option<&'a [u8]> {
    let rest = after_type(resource, value)?.strip_prefix(b",\"metadata\":")?;
    let raw = <&RawValue>::deserialize(&mut serde_json::Deserializer::from_slice(rest)).ok()?;
    Some(raw.get().as_bytes())
}
