//! OpenAPI documents of the served kinds, v3 (one a group version) and v2 (one in all).
//!
//! Written on request from the catalogue and the schema and kept by nobody here, so that a server
//! that nobody asks does not carry them. Enough for kubectl's explain, apply, diff, edit and
//! validation, and for generators of clients.

mod operation;
mod paths;
mod proto;
mod schemas;

use crate::catalogue;
use crate::schema::schema;
use operation::Style;
use schemas::Types;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Version of Kubernetes that the documents speak of.
const KUBERNETES_VERSION: &str = "v1.36.0";

/// `/openapi/v3`: where the documents are. The hash in an address changes when its document does,
/// so clients keep documents by address.
pub fn v3_index() -> Value {
    let mut paths = Map::new();
    for (group, version) in served() {
        let path = document_path(group, version);
        let hash = hash(group, version);
        let address = json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}") });
        paths.insert(path, address);
    }
    json!({ "paths": paths })
}

/// The hash of one document as the index has it: its `ETag`, and the query that lets a client keep
/// it for good.
pub fn v3_hash(path: &str) -> Option<String> {
    let (group, version) = find(path)?;
    Some(hash(group, version))
}

/// `/openapi/v3/PATH`, for example `apis/apps/v1`; JSON.
pub fn v3_group(path: &str) -> Option<Vec<u8>> {
    let (group, version) = find(path)?;
    let paths = paths::of_version(group, version, Style::V3);
    let mut types = Types::new(schema(), Style::V3);
    types.add_version(group, version);
    let mut text = Vec::new();
    write(&mut text, &json!("3.0.0"), "{\"openapi\":");
    write(&mut text, &info(), ",\"info\":");
    write(&mut text, &Value::Object(paths), ",\"paths\":");
    text.extend_from_slice(b",\"components\":{\"schemas\":");
    types.write(&mut text);
    text.extend_from_slice(b"}}");
    Some(text)
}

/// `/openapi/v2`; JSON.
pub fn v2() -> Vec<u8> {
    let mut paths = Map::new();
    let mut types = Types::new(schema(), Style::V2);
    for (group, version) in served() {
        paths.extend(paths::of_version(group, version, Style::V2));
        types.add_version(group, version);
    }
    let mut text = Vec::new();
    write(&mut text, &json!("2.0"), "{\"swagger\":");
    write(&mut text, &info(), ",\"info\":");
    write(&mut text, &Value::Object(paths), ",\"paths\":");
    text.extend_from_slice(b",\"definitions\":");
    types.write(&mut text);
    text.push(b'}');
    text
}

/// Content type of [`v2_protobuf`].
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The same as Go clients ask for it. It is no valid media type, so answers never carry it.
const V2_PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Whether an `Accept` header names the protocol buffers form of v2.
pub fn wants_v2_protobuf(accept: &str) -> bool {
    let types = accept
        .split(',')
        .map(|range| range.split(';').next().unwrap_or("").trim());
    types
        .into_iter()
        .any(|one| one == V2_PROTOBUF || one == V2_PROTOBUF_ASKED)
}

/// `/openapi/v2` in protocol buffers.
pub fn v2_protobuf() -> Vec<u8> {
    let document = serde_json::from_slice(&v2()).expect("it was just written");
    proto::document(&document)
}

/// `ETag` of `/openapi/v2`.
pub fn v2_hash() -> String {
    let mut hash = Fnv::new();
    for (group, version) in served() {
        hash.rows(group, version);
    }
    hash.text()
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": KUBERNETES_VERSION })
}

fn write(text: &mut Vec<u8>, value: &Value, before: &str) {
    text.extend_from_slice(before.as_bytes());
    serde_json::to_writer(text, value).expect("a Vec takes all");
}

/// Group versions that have a resource.
fn served() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = catalogue::groups().flat_map(|group| {
        let name = group.name;
        group.versions.iter().map(move |version| (name, *version))
    });
    all.filter(|(group, version)| catalogue::of_version(group, version).next().is_some())
}

fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn find(path: &str) -> Option<(&'static str, &'static str)> {
    served().find(|(group, version)| document_path(group, version) == path)
}

fn hash(group: &str, version: &str) -> String {
    let mut hash = Fnv::new();
    hash.rows(group, version);
    hash.text()
}

/// FNV-1a over what a document is made from: cheap, and equal inputs are all that it must tell.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        static BLOBS: OnceLock<u64> = OnceLock::new();
        Self(*BLOBS.get_or_init(|| {
            let mut hash = Self(0xcbf2_9ce4_8422_2325);
            hash.add(env!("CARGO_PKG_VERSION").as_bytes());
            for blob in crate::schema::blobs() {
                hash.add(blob);
            }
            hash.0
        }))
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn rows(&mut self, group: &str, version: &str) {
        for row in catalogue::of_version(group, version) {
            let subs = row.subresources;
            self.add(format!("{row:?} {} {:?} {subs:?}", row.schema, row.verbs).as_bytes());
        }
    }

    fn text(&self) -> String {
        format!("{:016X}", self.0)
    }
}

#[cfg(test)]
mod tests;
