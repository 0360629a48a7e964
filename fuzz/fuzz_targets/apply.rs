//! A live object of any kind and a configuration to apply.
//!
//! A forced apply meets no conflict and is at rest after one pass: the same configuration changes
//! nothing the second time. Somebody else's managers are sets that are read as they were written.
#![no_main]

use coracle_api::apply::{Filter, Writer};
use coracle_api::decode::{FieldValidation, decode};
use coracle_api::object::Object;
use coracle_fuzz::{api_version, assert_bounded, bytes, halves, kind};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

const NOW: &str = "2026-01-02T03:04:05Z";

/// What an apply adds beside the configuration: the sets of fields that managers have.
const MANAGERS_BYTES_MAX: usize = 64;

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = kind(data) else {
        return;
    };
    let Some((live, patch)) = halves(rest) else {
        return;
    };
    let Ok(live) = decode(live, kind.schema, FieldValidation::Ignore) else {
        return;
    };
    let Ok(mut patch) = serde_json::from_slice::<Map<String, Value>>(patch) else {
        return;
    };
    let api_version = api_version(kind);
    let mut live = live.object;
    for object in [live.root_mut(), &mut patch] {
        object.insert("apiVersion".into(), api_version.as_str().into());
        object.insert("kind".into(), kind.kind.into());
    }
    let writer = |manager| Writer {
        api_version: &api_version,
        kind: kind.kind,
        type_name: kind.schema,
        family: None,
        subresource: "",
        filter: Filter::All,
        manager,
        now: NOW,
    };
    let _ = writer("other").update(None, &live);
    let _ = writer("kubectl").apply(Some(&live), &patch, false);
    let Ok(applied) = writer("me").apply(Some(&live), &patch, true) else {
        return;
    };
    let made = bytes(&Value::Object(applied.object.clone())).len();
    assert_bounded(made, MANAGERS_BYTES_MAX * data.len());
    let object = Object::from_value(Value::Object(applied.object)).expect("it is one");
    let again = writer("me")
        .apply(Some(&object), &patch, true)
        .expect("it was applied before");
    assert!(!again.is_changed, "{object:?} under {patch:?}");
    let _ = writer("other").update(Some(&live), &object);
});
