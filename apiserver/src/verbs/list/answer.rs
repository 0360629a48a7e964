//! A page in the form that the client takes.
//!
//! What is JSON is made object by object while it is sent. Protobuf says the length of the whole
//! before its content, so that its objects are encoded first, a step at a time.

use super::page::{Items, Page};
use crate::registry::{self, glance};
use crate::respond::pretty::Pretty;
use crate::respond::{self, Form, Shape, Target, go_type, gzip, stream};
use crate::tunnel::Body;
use crate::verbs::asked::Asked;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::protobuf::{ListEncoder, ProtobufError};
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_api::table;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::{Value, json};

const PARTIAL: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// A list is no single object's metadata.
pub fn check_target(asked: &Asked<'_>) -> Result<(), Status> {
    if asked.shape.target != Target::Metadata {
        return Ok(());
    }
    let kind = go_type(asked.resource, &asked.resource.list_kind());
    Err(Status::not_acceptable(format!(
        "you requested PartialObjectMetadata, but the requested object is a list ({kind})"
    )))
}

pub async fn answer(asked: &Asked<'_>, mut page: Page) -> Response<Body> {
    if let (Target::Table, Some(rank)) = (asked.shape.target, asked.resource.rules.row_rank()) {
        page.items.sort_by_rank(|value| {
            registry::decode(asked.resource, value).map_or(0, |object| rank(&object))
        });
    }
    let list = List {
        shape: asked.shape,
        resource: asked.resource,
        page,
    };
    match list.shape.form {
        Form::Json => list.json(),
        Form::Yaml => list.yaml().await,
        Form::Protobuf => list.protobuf().await,
    }
}

struct List {
    shape: Shape,
    resource: &'static Resource,
    page: Page,
}

impl List {
    fn type_meta(&self) -> (String, String) {
        match self.shape.target {
            Target::Object => (self.resource.list_kind(), self.resource.api_version()),
            target => {
                let kind = match target {
                    Target::Table => "Table",
                    _ => "PartialObjectMetadataList",
                };
                (kind.to_owned(), self.shape.version.api_version().to_owned())
            }
        }
    }

    /// Everything up to the first item, the items, and the end.
    fn json(self) -> Response<Body> {
        let (kind, api_version) = self.type_meta();
        let metadata = self.page.metadata();
        let mut head = format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata}"
        );
        if self.shape.target == Target::Table {
            let columns = table::column_definitions(self.resource.rules.columns());
            head.push_str(&format!(",\"columnDefinitions\":{columns},\"rows\":["));
        } else {
            head.push_str(",\"items\":[");
        }
        let producer = Producer {
            shape: self.shape,
            resource: self.resource,
            items: self.page.items,
            head: Some(head.into_bytes()),
            comma: false,
            pretty: self.shape.pretty.then(Pretty::default),
        };
        let body = stream::body(producer, gzip::THRESHOLD_BYTES);
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, respond::JSON);
        response
    }

    async fn yaml(mut self) -> Response<Body> {
        let (kind, api_version) = self.type_meta();
        let mut items = Vec::new();
        while let Some(step) = self.page.items.step() {
            let objects = step.iter().filter_map(|value| self.decode(value));
            items.extend(objects.map(|object| item_value(self.shape, self.resource, object)));
            tokio::task::yield_now().await;
        }
        let mut list = json!({
            "kind": kind, "apiVersion": api_version, "metadata": self.page.metadata(),
        });
        if self.shape.target == Target::Table {
            list["columnDefinitions"] = table::column_definitions(self.resource.rules.columns());
            list["rows"] = items.into();
        } else {
            list["items"] = items.into();
        }
        self.shape.document(StatusCode::OK, &list)
    }

    fn decode(&self, value: &Bytes) -> Option<Object> {
        registry::decode(self.resource, value)
    }

    async fn protobuf(mut self) -> Response<Body> {
        let item = match self.shape.target {
            Target::Object => self.resource.schema,
            _ => PARTIAL,
        };
        let Ok(encoder) = ListEncoder::new(item) else {
            // No protobuf form: every client of one reads JSON too.
            self.shape.form = Form::Json;
            return self.json();
        };
        match self.encoded(encoder).await {
            Ok(bytes) => self
                .shape
                .protobuf_or(StatusCode::OK, Ok(bytes), Bytes::new),
            Err(error) => self.shape.failure(&Status::internal(error)),
        }
    }

    async fn encoded(&mut self, mut list: ListEncoder) -> Result<Vec<u8>, ProtobufError> {
        let (kind, api_version) = self.type_meta();
        let is_partial = self.shape.target != Target::Object;
        while let Some(step) = self.page.items.step() {
            for value in &step {
                let Some(object) = self.decode(value) else {
                    continue;
                };
                if is_partial {
                    let partial = self.shape.partial(&object);
                    list.push(partial.as_object().unwrap_or(object.root()))?;
                } else {
                    list.push(object.root())?;
                }
            }
            // Many objects take long: others have their turn in between.
            tokio::task::yield_now().await;
        }
        let metadata = self.page.metadata();
        let empty = serde_json::Map::new();
        list.finish(&api_version, &kind, metadata.as_object().unwrap_or(&empty))
    }
}

/// Items of a list do not say again what they are, unless they are partial metadata.
fn item_value(shape: Shape, resource: &Resource, mut object: Object) -> Value {
    match shape.target {
        Target::Object => {
            // Documents of no type that the server knows keep it, as upstream's.
            if resource.rules.custom().is_none() {
                object.remove(&["kind"]);
                object.remove(&["apiVersion"]);
            }
            object.into_value()
        }
        Target::Table => shape.row(resource, &object),
        Target::Metadata | Target::MetadataList => shape.partial(&object),
    }
}

/// Writes a list in JSON, some items at a time.
struct Producer {
    shape: Shape,
    resource: &'static Resource,
    items: Items,
    /// What comes before the first item, until it is written.
    head: Option<Vec<u8>>,
    comma: bool,
    pretty: Option<Pretty>,
}

impl stream::Produce for Producer {
    fn produce(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut pretty) = self.pretty.take() else {
            return self.write(out);
        };
        let mut plain = Vec::new();
        let more = self.write(&mut plain);
        pretty.push(&plain, out);
        if !more {
            out.push(b'\n');
        }
        self.pretty = Some(pretty);
        more
    }
}

impl Producer {
    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(head) = self.head.take() {
            out.extend_from_slice(&head);
        }
        let Some(step) = self.items.step() else {
            out.extend_from_slice(b"]}");
            return false;
        };
        out.reserve(step.iter().map(|value| value.len() + 1).sum());
        for value in &step {
            let begin = out.len();
            if self.comma {
                out.push(b',');
            }
            if self.item(value, out) {
                self.comma = true;
            } else {
                out.truncate(begin);
            }
        }
        true
    }

    /// False for bytes that are no object, which nobody here wrote.
    fn item(&self, value: &Bytes, out: &mut Vec<u8>) -> bool {
        match self.shape.target {
            Target::Object => {
                if let Some(rest) = glance::after_type(self.resource, value) {
                    out.push(b'{');
                    out.extend_from_slice(&rest[1..]);
                    return true;
                }
            }
            Target::Metadata | Target::MetadataList => {
                if let Some(metadata) = glance::metadata_bytes(self.resource, value) {
                    self.shape.partial_bytes(metadata, out);
                    return true;
                }
            }
            Target::Table => {}
        }
        let Some(object) = registry::decode(self.resource, value) else {
            return false;
        };
        let value = item_value(self.shape, self.resource, object);
        serde_json::to_writer(out, &value).is_ok()
    }
}
