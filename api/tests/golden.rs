//! What kube-apiserver itself wrote: the protobuf and the JSON that it answered to one request say
//! the same to us, and what we make of its JSON says what its own protobuf does.

#![allow(clippy::unwrap_used)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::decode::{FieldValidation, TypeMeta, conform};
use coracle_api::{protobuf, schema};
use serde_json::Value;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

struct Answer {
    what: &'static str,
    bytes: Vec<u8>,
    json: Value,
}

fn answers() -> impl Iterator<Item = Answer> {
    include_str!("golden.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [what, bytes, json] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            Answer {
                what,
                bytes: STANDARD.decode(bytes).unwrap(),
                json: serde_json::from_str(json).unwrap(),
            }
        })
}

/// The schema's name of the type of a document.
fn type_name(meta: &TypeMeta) -> String {
    let (group, version) = meta
        .api_version
        .split_once('/')
        .unwrap_or(("", &meta.api_version));
    schema::kinds()
        .iter()
        .find(|one| one.kind == meta.kind && one.version == version && one.group == group)
        .map_or_else(
            || format!("{META}{}", meta.kind),
            |known| known.schema.to_owned(),
        )
}

/// What differs, a line an answer; nothing is hidden behind the first difference.
fn check(compare: impl Fn(Answer, &TypeMeta) -> Result<(), String>) {
    let mut differences = Vec::new();
    for answer in answers() {
        let (meta, _) = protobuf::decode(&answer.bytes).unwrap();
        let about = format!("{} of {} {}", answer.what, meta.api_version, meta.kind);
        if let Err(text) = compare(answer, &meta) {
            differences.push(format!("{about}: {text}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn same(ours: &Value, theirs: &Value) -> Result<(), String> {
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("\n  ours   {ours}\n  theirs {theirs}")),
    }
}

/// Go writes the kind of claim templates in JSON; protobuf has no place for it.
fn without_kinds_of_templates(mut value: Value) -> Value {
    let templates = value.pointer_mut("/spec/volumeClaimTemplates");
    for template in templates
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let template = template.as_object_mut().unwrap();
        assert_eq!(template.remove("apiVersion"), Some("v1".into()));
        assert_eq!(
            template.remove("kind"),
            Some("PersistentVolumeClaim".into())
        );
    }
    value
}

/// The form that objects have with us: what Go writes of fields that nobody set is left out.
fn conformed(mut value: Value, meta: &TypeMeta) -> Result<Value, String> {
    // Partial metadata is no type of the schema: nobody sends it.
    let (part, type_name) = if meta.kind == "PartialObjectMetadata" {
        (&mut value["metadata"], format!("{META}ObjectMeta"))
    } else {
        (&mut value, type_name(meta))
    };
    let warnings = conform(part, &type_name, FieldValidation::Strict);
    match warnings.map_err(|error| error.to_string())? {
        // Protobuf does not tell an empty list from none.
        none if none.is_empty() && meta.kind.ends_with("List") && value["items"].is_null() => {
            value["items"] = Value::Array(Vec::new());
            Ok(value)
        }
        none if none.is_empty() => Ok(value),
        some => Err(some.join(", ")),
    }
}

#[test]
fn its_protobuf_is_its_json() {
    check(|answer, meta| {
        let (_, ours) = protobuf::decode(&answer.bytes).map_err(|error| error.to_string())?;
        let theirs = without_kinds_of_templates(answer.json);
        same(&conformed(ours, meta)?, &conformed(theirs, meta)?)
    });
}

/// Go writes fields that nobody set, too, so that ours may be shorter.
#[test]
fn its_json_becomes_what_its_protobuf_says() {
    check(|answer, meta| {
        let object = answer.json.as_object().ok_or("no object")?;
        let bytes = protobuf::encode_object(object).map_err(|error| error.to_string())?;
        if bytes.len() > answer.bytes.len() {
            return Err(format!("{} bytes for {}", bytes.len(), answer.bytes.len()));
        }
        let (ours, theirs) = (protobuf::decode(&bytes), protobuf::decode(&answer.bytes));
        let [ours, theirs] = [ours, theirs].map(|decoded| decoded.unwrap().1);
        same(&conformed(ours, meta)?, &conformed(theirs, meta)?)
    });
}
