//! OpenAPI documents of what is served, v3 (one a group version) and v2 (one in all).
//!
//! Written on request from the kinds and the schema and kept by nobody here, so that a server
//! that nobody asks does not carry them. They say what upstream's say: kubectl's explain, apply,
//! diff and edit, and generators of clients, go by them.

mod custom; // Schemas of custom resources.
mod form; // How a document is written.
mod operation; // One operation, in either version.
mod parameters; // What operations take in paths and queries.
mod paths; // Which paths there are, and their operations.
mod proto; // Documents in protocol buffers.
mod schemas; // The types that operations name.

use crate::custom::Kinds;
use crate::resource::Resource;
use crate::schema::schema;
use custom::Models;
pub(crate) use custom::model_name;
pub use form::{Documents, Form};
use operation::Style;
use parameters::Parameters;
use paths::{Paths, Topic};
use schemas::Types;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Version of Kubernetes that the documents speak of.
const KUBERNETES_VERSION: &str = "1.36";

/// `/openapi/v3`: where the documents are. The hash in an address changes when its document does,
/// so clients keep documents by address.
pub fn v3_index(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    for (path, topic) in Topic::all(kinds) {
        let hash = hash(kinds, topic);
        let address = json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}") });
        paths.insert(path, address);
    }
    json!({ "paths": paths })
}

/// The hash of one document as the index has it: its `ETag`, and the query that lets a client keep
/// it for good.
pub fn v3_hash(kinds: &Kinds, path: &str) -> Option<String> {
    find(kinds, path).map(|topic| hash(kinds, topic))
}

/// `/openapi/v3/PATH`, for example `apis/apps/v1`.
pub fn v3_group(kinds: &Kinds, path: &str, form: Form) -> Option<Vec<u8>> {
    let topic = find(kinds, path)?;
    let sections = Sections::make(kinds, &[topic], Style::V3, form);
    let frame = json!({
        "openapi": "3.0.0",
        "info": info(),
        "components": { "securitySchemes": { "BearerToken": bearer_token() } },
    });
    if form == Form::Protobuf {
        return Some(proto::v3::document(
            &frame,
            &sections.paths,
            &sections.schemas,
        ));
    }
    let mut text = Vec::new();
    write(&mut text, "{\"openapi\":", &frame["openapi"]);
    write(&mut text, ",\"info\":", &frame["info"]);
    section(&mut text, ",\"paths\":{", &sections.paths);
    text.extend_from_slice(b"},\"components\":{");
    if !sections.schemas.is_empty() {
        section(&mut text, "\"schemas\":{", &sections.schemas);
        text.extend_from_slice(b"},");
    }
    let schemes = &frame["components"]["securitySchemes"];
    write(&mut text, "\"securitySchemes\":", schemes);
    text.extend_from_slice(b"}}");
    Some(text)
}

/// `/openapi/v2`.
pub fn v2(kinds: &Kinds, form: Form) -> Vec<u8> {
    let topics: Vec<Topic> = Topic::all(kinds).into_iter().map(|one| one.1).collect();
    let sections = Sections::make(kinds, &topics, Style::V2, form);
    let facts = crate::schema::parameters();
    let bodies = operation::SHARED_BODIES.iter();
    let bodies = bodies.map(|(schema, name, is_required)| {
        (
            (*name).to_owned(),
            operation::body_parameter(schema, *is_required),
        )
    });
    let parameters: Map<String, Value> = Parameters::parse(&facts).shared().chain(bodies).collect();
    let frame = json!({
        "swagger": "2.0",
        "info": info(),
        "parameters": parameters,
        "securityDefinitions": { "BearerToken": bearer_token() },
        "security": [{ "BearerToken": [] }],
    });
    if form == Form::Protobuf {
        return proto::v2::document(&frame, &sections.paths, &sections.schemas);
    }
    let mut text = Vec::new();
    write(&mut text, "{\"swagger\":", &frame["swagger"]);
    write(&mut text, ",\"info\":", &frame["info"]);
    section(&mut text, ",\"paths\":{", &sections.paths);
    section(&mut text, "},\"definitions\":{", &sections.schemas);
    text.push(b'}');
    for name in ["parameters", "securityDefinitions", "security"] {
        write(&mut text, &format!(",\"{name}\":"), &frame[name]);
    }
    text.push(b'}');
    text
}

/// The two large parts of a document, written.
struct Sections {
    paths: Vec<u8>,
    schemas: Vec<u8>,
}

impl Sections {
    fn make(kinds: &Kinds, topics: &[Topic], style: Style, form: Form) -> Self {
        let (put_path, put_schema): (PutEntry, PutEntry) = match (form, style) {
            (Form::Json, _) => (put_json, put_json),
            (Form::Protobuf, Style::V2) => (proto::v2::put_path, proto::v2::put_schema),
            (Form::Protobuf, Style::V3) => (proto::v3::put_path, proto::v3::put_schema),
        };
        let (mut path_bytes, mut schemas) = (Vec::new(), Vec::new());
        let facts = crate::schema::parameters();
        let parameters = Parameters::parse(&facts);
        let mut put = |name: &str, value: &Value| put_path(&mut path_bytes, name, value);
        let mut paths = Paths::new(kinds, style, &parameters, &mut put);
        for topic in topics {
            paths.add(*topic);
        }
        let own = match topics {
            [Topic::Resources(group, version)] => Some((*group, *version)),
            _ => None,
        };
        let mut types = Types::new(schema(), style, own);
        for name in std::mem::take(&mut paths.used) {
            types.add(&name);
        }
        let rows = custom_rows(kinds, topics);
        if !rows.is_empty() {
            types.add(custom::OBJECT_META);
            types.add(custom::LIST_META);
        }
        let mut put = |name: &str, value: &Value| put_schema(&mut schemas, name, value);
        types.each(&mut put);
        if !rows.is_empty() {
            let models = Models::new(style);
            rows.iter().for_each(|row| models.each(row, &mut put));
        }
        Self {
            paths: path_bytes,
            schemas,
        }
    }
}

/// The rows of definitions that documents about these topics show.
fn custom_rows(kinds: &Kinds, topics: &[Topic]) -> Vec<&'static Resource> {
    let is_shown =
        |row: &&&'static Resource| topics.contains(&Topic::Resources(row.group, row.version));
    kinds.custom().iter().filter(is_shown).copied().collect()
}

type PutEntry = fn(&mut Vec<u8>, &str, &Value);

/// One member of a JSON object, a comma before it.
fn put_json(text: &mut Vec<u8>, name: &str, value: &Value) {
    text.push(b',');
    serde_json::to_writer(&mut *text, name).expect("a Vec takes all");
    text.push(b':');
    serde_json::to_writer(text, value).expect("a Vec takes all");
}

fn section(text: &mut Vec<u8>, before: &str, members: &[u8]) {
    text.extend_from_slice(before.as_bytes());
    text.extend_from_slice(members.get(1..).unwrap_or_default());
}

/// `ETag` of `/openapi/v2`.
pub fn v2_hash(kinds: &Kinds) -> String {
    let mut hash = Fnv::new();
    for (_, topic) in Topic::all(kinds) {
        hash.topic(kinds, topic);
    }
    hash.text()
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": KUBERNETES_VERSION })
}

fn bearer_token() -> Value {
    json!({
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    })
}

fn write(text: &mut Vec<u8>, before: &str, value: &Value) {
    text.extend_from_slice(before.as_bytes());
    serde_json::to_writer(text, value).expect("a Vec takes all");
}

fn find(kinds: &Kinds, path: &str) -> Option<Topic> {
    let found = Topic::all(kinds).into_iter().find(|one| one.0 == path);
    found.map(|one| one.1)
}

fn hash(kinds: &Kinds, topic: Topic) -> String {
    let mut hash = Fnv::new();
    hash.topic(kinds, topic);
    hash.text()
}

/// The same for the same bytes, in every process.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.add(bytes);
    hash.0
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

    fn topic(&mut self, kinds: &Kinds, topic: Topic) {
        self.add(format!("{topic:?}").as_bytes());
        let Topic::Resources(group, version) = topic else {
            return;
        };
        for row in kinds.of_version(group, version) {
            if let Some(custom) = row.rules.custom() {
                self.add(&custom.fingerprint.to_le_bytes());
            }
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
