//! From a change to the bytes of an event, in the form that the client takes.

use crate::config::Clock;
use crate::options::{ListOptions, Selection};
use crate::registry;
use crate::respond::{Form, JSON, Shape};
use crate::verbs::asked::Asked;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::protobuf;
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_api::table;
use coracle_store::{Event, EventKind, Revision};
use http::HeaderValue;
use serde_json::{Map, Value, json};

const PROTOBUF: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");

pub(super) struct Framer {
    resource: &'static Resource,
    selection: Selection,
    shape: Shape,
    /// A watch goes on for long: ages are counted when an event is shown.
    clock: Clock,
    /// A watched Table has its columns in the first event alone.
    columns_sent: bool,
}

fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + kind.len() + 24);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}

/// An object that cannot be put into this form is one that we wrote wrongly: the client is told
/// instead of being left with a gap.
fn protobuf_frame(kind: &str, object: &Map<String, Value>) -> Bytes {
    let failed = |error: protobuf::ProtobufError| {
        let status = Status::internal(error.to_string()).to_value();
        let document = status.as_object().map(protobuf::encode_object);
        protobuf::watch_frame("ERROR", &document.and_then(Result::ok).unwrap_or_default())
    };
    match protobuf::encode_object(object) {
        Ok(document) => protobuf::watch_frame(kind, &document).into(),
        Err(error) => failed(error).into(),
    }
}

impl Framer {
    pub(super) fn new(asked: &Asked<'_>, options: &ListOptions, clock: Clock) -> Self {
        let mut shape = asked.shape;
        if shape.form == Form::Protobuf && !protobuf::knows(asked.resource.schema) {
            shape.form = Form::Json;
        }
        Self {
            resource: asked.resource,
            selection: options.selection.clone(),
            shape,
            clock,
            columns_sent: false,
        }
    }

    pub(super) fn content_type(&self) -> HeaderValue {
        match self.shape.form {
            Form::Protobuf => PROTOBUF,
            Form::Json | Form::Yaml | Form::Table | Form::Metadata => JSON,
        }
    }

    pub(super) fn error(&self, status: &Status) -> Bytes {
        let value = status.to_value();
        match (self.shape.form, &value) {
            (Form::Protobuf, Value::Object(object)) => protobuf_frame("ERROR", object),
            _ => frame("ERROR", value.to_string().as_bytes()),
        }
    }

    /// True when stored bytes can go out without a look at them.
    fn is_plain(&self) -> bool {
        let is_json = matches!(self.shape.form, Form::Json | Form::Yaml);
        is_json && self.selection.is_all() && !registry::is_second_view(self.resource)
    }

    fn matches(&self, object: &Object) -> bool {
        self.selection.matches(self.resource, object)
    }

    /// An object that was there when the watch began.
    pub(super) fn added(&mut self, value: &Bytes) -> Option<Bytes> {
        if self.is_plain() {
            return Some(frame("ADDED", value));
        }
        let object = registry::decode(self.resource, value)?;
        self.matches(&object).then(|| self.show("ADDED", &object))
    }

    pub(super) fn event(&mut self, event: &Event) -> Option<Bytes> {
        if self.is_plain() {
            let kind = match event.kind {
                EventKind::Added => "ADDED",
                EventKind::Modified => "MODIFIED",
                EventKind::Deleted => "DELETED",
            };
            return Some(frame(kind, &event.value));
        }
        let object = registry::decode(self.resource, &event.value)?;
        let previous = event.previous.as_ref();
        let previous = previous.and_then(|entry| registry::decode(self.resource, &entry.value));
        let was = previous.as_ref().is_some_and(|object| self.matches(object));
        let is = event.kind != EventKind::Deleted && self.matches(&object);
        match (was, is) {
            (false, true) => Some(self.show("ADDED", &object)),
            (true, true) => Some(self.show("MODIFIED", &object)),
            (false, false) => None,
            (true, false) if event.kind == EventKind::Deleted => {
                Some(self.show("DELETED", &object))
            }
            (true, false) => {
                // Its last state that matched, at the revision at which it ceased to.
                let mut last = previous?;
                let revision = event.revision.to_string();
                last.set(&["metadata", "resourceVersion"], revision.into());
                Some(self.show("DELETED", &last))
            }
        }
    }

    fn show(&mut self, kind: &str, object: &Object) -> Bytes {
        let value = match self.shape.form {
            Form::Json | Form::Yaml => return frame(kind, &crate::respond::serialized(object)),
            Form::Protobuf => return protobuf_frame(kind, object.root()),
            Form::Metadata => table::partial_metadata(object),
            Form::Table => {
                let metadata = json!({ "resourceVersion": object.resource_version() });
                let with_columns = !std::mem::replace(&mut self.columns_sent, true);
                let (include, now) = (self.shape.include, (self.clock)().as_second());
                table::build(
                    self.resource,
                    [object],
                    metadata,
                    include,
                    with_columns,
                    now,
                )
            }
        };
        frame(kind, value.to_string().as_bytes())
    }

    pub(super) fn bookmark(&self, revision: Revision, is_initial_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if is_initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object: Value = match self.shape.form {
            Form::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            }),
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "columnDefinitions": null, "rows": [],
            }),
            Form::Json | Form::Yaml | Form::Protobuf => json!({
                "kind": self.resource.kind, "apiVersion": self.resource.api_version(),
                "metadata": metadata,
            }),
        };
        match (self.shape.form, &object) {
            (Form::Protobuf, Value::Object(object)) => protobuf_frame("BOOKMARK", object),
            _ => frame("BOOKMARK", object.to_string().as_bytes()),
        }
    }
}
