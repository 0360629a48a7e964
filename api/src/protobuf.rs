//! The protobuf form of objects: `application/vnd.kubernetes.protobuf`, to and from JSON.
//!
//! A document is the four bytes `k8s\0` and a `runtime.Unknown`: apiVersion, kind, and the bytes
//! of the object. client-go sends its bodies so by default. Field numbers are facts
//! (`facts/protobuf.tsv`); nothing here is generated code. What comes out of [`decode`] is the JSON
//! that Go would write with its zero values: [`crate::decode`] brings it into the usual form.
//!
//! Input is hostile: its depth and its number of values are bounded, lengths are checked against
//! what is there, and unknown fields are skipped.

mod reader; // Bytes of a message into JSON.
mod special; // Messages that JSON has as a text, a number or something else.
pub mod table; // Which messages there are, and their fields.
mod wire; // Tags, varints and lengths.
mod writer; // JSON into the bytes of a message.

use crate::decode::TypeMeta;
use serde_json::{Map, Value};
use table::Table;

pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every document starts with.
pub const MAGIC: &[u8] = b"k8s\0";

const META_TYPES: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Fields of `runtime.Unknown` and, within its first, of `runtime.TypeMeta`.
mod envelope {
    pub const TYPE_META: u32 = 1;
    pub const RAW: u32 = 2;
    pub const CONTENT_ENCODING: u32 = 3;
    pub const CONTENT_TYPE: u32 = 4;
    pub const API_VERSION: u32 = 1;
    pub const KIND: u32 = 2;
}

/// Fields that all kinds of list have.
mod list {
    pub const METADATA: u32 = 1;
    pub const ITEMS: u32 = 2;
}

/// Fields of `meta.v1.WatchEvent` and, within its second, of `runtime.RawExtension`.
mod event {
    pub const TYPE: u32 = 1;
    pub const OBJECT: u32 = 2;
    pub const RAW: u32 = 1;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    #[error("empty data")]
    Nothing,
    #[error("empty body")]
    NothingInside,
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal tag {0}")]
    Tag(u64),
    #[error("proto: wrong wireType for field {0}")]
    WireType(&'static str),
    #[error("proto: messages are nested deeper than {}", reader::DEPTH_MAX)]
    TooDeep,
    #[error("proto: more than {} values in one document", reader::VALUES_MAX)]
    TooManyValues,
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind { api_version: String, kind: String },
    #[error("no protobuf form is known for {0}")]
    UnknownType(String),
    /// A text within the message that is not what it must be.
    #[error("{0}")]
    Text(String),
    /// JSON that its field cannot take.
    #[error("field {0} does not take such a value")]
    Value(&'static str),
}

impl ProtobufError {
    fn unknown(meta: &TypeMeta) -> Self {
        Self::UnknownKind {
            api_version: meta.api_version.clone(),
            kind: meta.kind.clone(),
        }
    }
}

/// A document into apiVersion, kind, and the object as JSON, apiVersion and kind included.
pub fn decode(bytes: &[u8]) -> Result<(TypeMeta, Value), ProtobufError> {
    let (meta, object) = reader::Reader::new(table::table()).document(bytes)?;
    Ok((meta, Value::Object(object)))
}

/// apiVersion and kind of a document, as far as it names them.
pub fn type_meta(bytes: &[u8]) -> Result<TypeMeta, ProtobufError> {
    reader::unseal(bytes).map(|(meta, _)| meta)
}

/// [`decode`] of a document that must hold the type `type_name`, whatever it says of itself.
pub fn decode_as(bytes: &[u8], type_name: &str) -> Result<(TypeMeta, Value), ProtobufError> {
    let mut reader = reader::Reader::new(table::table());
    let (meta, object) = reader.document_as(bytes, type_name)?;
    Ok((meta, Value::Object(object)))
}

/// An object as a document. `type_name` is its schema name (`io.k8s.api.core.v1.Pod`).
pub fn encode(
    value: &Value,
    api_version: &str,
    kind: &str,
    type_name: &str,
) -> Result<Vec<u8>, ProtobufError> {
    let table = table::table();
    let id = find(table, type_name)?;
    let object = value
        .as_object()
        .ok_or(ProtobufError::Value("(the object)"))?;
    sealed(api_version, kind, |out| {
        writer::message(table, id, object, 0, out)
    })
}

/// [`encode`] by the apiVersion and kind that the object itself names.
pub fn encode_object(object: &Map<String, Value>) -> Result<Vec<u8>, ProtobufError> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or("");
    let meta = TypeMeta {
        api_version: text("apiVersion").to_owned(),
        kind: text("kind").to_owned(),
    };
    let table = table::table();
    let id = type_of(&meta).and_then(|name| table.find(&name));
    let id = id.ok_or_else(|| ProtobufError::unknown(&meta))?;
    sealed(&meta.api_version, &meta.kind, |out| {
        writer::message(table, id, object, 0, out)
    })
}

/// True when objects of the type `type_name` have a protobuf form.
pub fn knows(type_name: &str) -> bool {
    table::table().find(type_name).is_some()
}

/// The name of the struct that Go has embedded in the type `type_name` and that has this field.
pub(crate) fn embedded(type_name: &str, field: &str) -> Option<&'static str> {
    let table = table::table();
    let id = table.find(type_name)?;
    table.embedded(id, field)
}

/// One frame of a watch: its length in four bytes, then a `meta.v1.WatchEvent` around `document`,
/// which [`encode`] made.
pub fn watch_frame(event_type: &str, document: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    wire::put_bytes(&mut out, event::TYPE, event_type.as_bytes());
    // The closure cannot fail: it copies.
    let _: Result<(), ProtobufError> = wire::delimited(&mut out, event::OBJECT, |out| {
        wire::put_bytes(out, event::RAW, document);
        Ok(())
    });
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// Makes a list item by item, so that only one of them is there as JSON at a time.
#[derive(Debug)]
pub struct ListEncoder {
    item: table::MessageId,
    items: Vec<u8>,
}

impl ListEncoder {
    /// A list of objects of the type `type_name`.
    pub fn new(type_name: &str) -> Result<Self, ProtobufError> {
        Ok(Self {
            item: find(table::table(), type_name)?,
            items: Vec::new(),
        })
    }

    pub fn push(&mut self, object: &Map<String, Value>) -> Result<(), ProtobufError> {
        let item = self.item;
        wire::delimited(&mut self.items, list::ITEMS, |out| {
            writer::message(table::table(), item, object, 1, out)
        })
    }

    /// The document. `kind` is the list's own; `metadata` a `meta.v1.ListMeta`.
    pub fn finish(
        self,
        api_version: &str,
        kind: &str,
        metadata: &Map<String, Value>,
    ) -> Result<Vec<u8>, ProtobufError> {
        let table = table::table();
        let meta = find(table, "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")?;
        sealed(api_version, kind, |out| {
            wire::delimited(out, list::METADATA, |out| {
                writer::message(table, meta, metadata, 1, out)
            })?;
            out.extend_from_slice(&self.items);
            Ok(())
        })
    }
}

fn find(table: &Table, type_name: &str) -> Result<table::MessageId, ProtobufError> {
    table
        .find(type_name)
        .ok_or_else(|| ProtobufError::UnknownType(type_name.to_owned()))
}

/// The envelope around what `body` writes.
fn sealed(
    api_version: &str,
    kind: &str,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), ProtobufError>,
) -> Result<Vec<u8>, ProtobufError> {
    let mut out = MAGIC.to_vec();
    wire::delimited(&mut out, envelope::TYPE_META, |out| {
        wire::put_bytes(out, envelope::API_VERSION, api_version.as_bytes());
        wire::put_bytes(out, envelope::KIND, kind.as_bytes());
        Ok(())
    })?;
    wire::delimited(&mut out, envelope::RAW, body)?;
    // Go writes these two though they are empty.
    wire::put_bytes(&mut out, envelope::CONTENT_ENCODING, b"");
    wire::put_bytes(&mut out, envelope::CONTENT_TYPE, b"");
    Ok(out)
}

/// The type of a kind: of the schema's, or of those that every group version knows.
fn type_of(meta: &TypeMeta) -> Option<String> {
    let (group, version) = meta
        .api_version
        .split_once('/')
        .unwrap_or(("", &meta.api_version));
    let known = crate::schema::kinds()
        .iter()
        .find(|one| one.kind == meta.kind && one.version == version && one.group == group);
    match known {
        Some(known) => Some(known.schema.to_owned()),
        None if meta.kind.is_empty() => None,
        None => Some(format!("{META_TYPES}{}", meta.kind)),
    }
}

#[cfg(test)]
mod tests;
