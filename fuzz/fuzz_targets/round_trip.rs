//! JSON into protobuf and back: a document in the usual form comes back as it was, but for empty
//! lists and maps, which protobuf does not tell from none.
#![no_main]

use coracle_api::decode::{FieldValidation, conform, decode};
use coracle_api::protobuf::{self, ListEncoder, knows};
use coracle_fuzz::{api_version, kind};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

/// What stands within another object has no apiVersion and kind of its own in protobuf.
fn drop_types(object: &mut Map<String, Value>) {
    for name in ["items", "volumeClaimTemplates", "spec"] {
        match object.get_mut(name) {
            Some(Value::Array(items)) => {
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    item.remove("apiVersion");
                    item.remove("kind");
                    drop_types(item);
                }
            }
            Some(Value::Object(spec)) => drop_types(spec),
            _ => {}
        }
    }
}

/// The value without what is empty in it.
fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let fields = map.into_iter();
            let fields = fields.map(|(key, value)| (key, without_empty(value)));
            Value::Object(fields.filter(|field| !is_empty(&field.1)).collect())
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = kind(data) else {
        return;
    };
    if !knows(kind.schema) {
        return;
    }
    let Ok(decoded) = decode(body, kind.schema, FieldValidation::Ignore) else {
        return;
    };
    let mut object = decoded.object;
    drop_types(object.root_mut());
    object
        .root_mut()
        .insert("apiVersion".into(), api_version(kind).into());
    object.root_mut().insert("kind".into(), kind.kind.into());
    let value = object.to_value();
    let document = match protobuf::encode_object(object.root()) {
        Ok(document) => document,
        // JSON may nest deeper than a message of protobuf.
        Err(protobuf::ProtobufError::TooDeep) => return,
        Err(error) => panic!("{error}: {value}"),
    };
    let (_, mut back) = protobuf::decode(&document).expect("what was written can be read");
    conform(&mut back, kind.schema, FieldValidation::Strict).expect("it did before");
    assert_eq!(without_empty(back), without_empty(value));
    let mut list = ListEncoder::new(kind.schema).expect("the type is known");
    list.push(object.root()).expect("it was written before");
});
