//! From a change to the bytes of an event, in the form that the client takes.

use super::shared::{Change, FrameKey, Shared, identity};
use crate::config::Clock;
use crate::options::Selection;
use crate::registry::{self, glance};
use crate::respond::{self, Form, JSON, Shape, Target, serialized};
use crate::verbs::asked::Asked;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::protobuf;
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_api::table::{self, Include};
use coracle_store::{Event, EventKind, Revision};
use http::HeaderValue;
use serde_json::{Value, json};

const PROTOBUF: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");
/// The length before a frame of protobuf; messages of a WebSocket have their own.
const LENGTH_BYTES: usize = 4;

/// Events on their way out, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Frames {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many there are, and their bytes together.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.ends.len(), self.bytes.len())
    }

    /// All in one.
    pub(super) fn joined(self) -> Bytes {
        self.bytes.into()
    }

    /// Each by itself.
    pub(super) fn apart(self) -> impl Iterator<Item = Bytes> {
        let mut rest = Bytes::from(self.bytes);
        let mut begin = 0;
        self.ends.into_iter().map(move |end| {
            let length = end - std::mem::replace(&mut begin, end);
            rest.split_to(length)
        })
    }

    fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    fn push_json(&mut self, word: &str, object: &[u8]) {
        self.bytes.reserve(object.len() + word.len() + 24);
        self.bytes.extend_from_slice(b"{\"type\":\"");
        self.bytes.extend_from_slice(word.as_bytes());
        self.bytes.extend_from_slice(b"\",\"object\":");
        self.bytes.extend_from_slice(object);
        self.bytes.extend_from_slice(b"}\n");
        self.ends.push(self.bytes.len());
    }
}

pub(super) struct Framer {
    resource: &'static Resource,
    shape: Shape,
    /// A watch goes on for long: ages are counted when an event is shown.
    clock: Clock,
    /// A watched Table has its columns in the first event alone.
    columns_sent: bool,
    with_length: bool,
}

impl Framer {
    pub(super) fn new(asked: &Asked<'_>, clock: Clock, with_length: bool) -> Self {
        let mut shape = asked.shape;
        if shape.form == Form::Protobuf && !protobuf::knows(asked.resource.schema) {
            shape.form = Form::Json;
        }
        if shape.target == Target::MetadataList {
            shape.target = Target::Metadata;
        }
        Self {
            resource: asked.resource,
            shape,
            clock,
            columns_sent: false,
            with_length,
        }
    }

    pub(super) fn content_type(&self) -> HeaderValue {
        match self.shape.form {
            Form::Protobuf => PROTOBUF,
            Form::Json | Form::Yaml => JSON,
        }
    }

    /// True when stored bytes can go out without a look at them.
    fn is_plain(&self) -> bool {
        self.shape.form == Form::Json
            && self.shape.target == Target::Object
            && !registry::is_second_view(self.resource)
    }

    pub(super) fn error(&self, status: &Status, frames: &mut Frames) {
        self.document("ERROR", &status.to_value(), frames);
    }

    fn document(&self, word: &str, value: &Value, frames: &mut Frames) {
        match (self.shape.form, value) {
            (Form::Protobuf, Value::Object(_)) => {
                self.push_protobuf(&protobuf_frame(word, value), frames);
            }
            _ => frames.push_json(word, value.to_string().as_bytes()),
        }
    }

    fn push_protobuf(&self, frame: &[u8], frames: &mut Frames) {
        let begin = if self.with_length { 0 } else { LENGTH_BYTES };
        frames.push(frame.get(begin..).unwrap_or_default());
    }

    /// An object that was there when the watch began.
    pub(super) fn added(&mut self, value: &Bytes, frames: &mut Frames) {
        if self.is_plain() {
            return frames.push_json("ADDED", value);
        }
        if let Some(object) = registry::decode(self.resource, value) {
            let with_columns = self.takes_columns();
            let frame = self.make("ADDED", &object, with_columns);
            self.push_made(&frame, frames);
        }
    }

    pub(super) fn event(&mut self, event: &Event, selection: &Selection, frames: &mut Frames) {
        let shared = || event.notes.of::<Shared>();
        let was_and_is = if selection.is_all() {
            (event.kind != EventKind::Added, true)
        } else {
            shared()
                .sides(self.resource, event)
                .chosen(selection, self.resource)
        };
        let change = match (was_and_is, event.kind == EventKind::Deleted) {
            ((true, _), true) => Change::Deleted,
            ((true, true), false) => Change::Modified,
            ((false, true), false) => Change::Added,
            ((true, false), false) => Change::Left,
            ((false, _), _) => return,
        };
        if self.is_plain() && change != Change::Left {
            return frames.push_json(change.word(), &event.value);
        }
        // The first event of a table has columns, which is nobody else's frame.
        if self.takes_columns() {
            if let Some(frame) = self.of_event(event, change, true) {
                self.push_made(&frame, frames);
            }
            return;
        }
        let key = FrameKey {
            resource: identity(self.resource),
            change,
            form: self.shape.form,
            target: self.shape.target,
            version: self.shape.version,
            include: self.shape.include,
        };
        let frame = shared().frame(key, || self.of_event(event, change, false));
        if let Some(frame) = frame {
            self.push_made(&frame, frames);
        }
    }

    fn push_made(&self, frame: &[u8], frames: &mut Frames) {
        match self.shape.form {
            Form::Protobuf => self.push_protobuf(frame, frames),
            Form::Json | Form::Yaml => frames.push(frame),
        }
    }

    fn takes_columns(&mut self) -> bool {
        self.shape.target == Target::Table && !std::mem::replace(&mut self.columns_sent, true)
    }

    fn of_event(&self, event: &Event, change: Change, with_columns: bool) -> Option<Bytes> {
        let is_metadata = self.shape.target == Target::Metadata && self.shape.form == Form::Json;
        if is_metadata
            && change != Change::Left
            && let Some(metadata) = glance::metadata_bytes(self.resource, &event.value)
        {
            let mut partial = Vec::with_capacity(metadata.len() + 96);
            self.shape.partial_bytes(metadata, &mut partial);
            return Some(json_frame(change.word(), &partial));
        }
        let object = match change {
            Change::Left => {
                let last = &event.previous.as_ref()?.value;
                let mut last = registry::decode(self.resource, last)?;
                let revision = event.revision.to_string();
                last.set(&["metadata", "resourceVersion"], revision.into());
                last
            }
            _ => registry::decode(self.resource, &event.value)?,
        };
        Some(self.make(change.word(), &object, with_columns))
    }

    fn make(&self, word: &str, object: &Object, with_columns: bool) -> Bytes {
        let value = match self.shape.target {
            Target::Object if self.shape.form == Form::Protobuf => object.to_value(),
            Target::Object => return json_frame(word, &serialized(object)),
            Target::Metadata | Target::MetadataList => self.shape.partial(object),
            Target::Table => self.table(object, with_columns),
        };
        match self.shape.form {
            Form::Protobuf => protobuf_frame(word, &value),
            Form::Json | Form::Yaml => json_frame(word, value.to_string().as_bytes()),
        }
    }

    fn table(&self, object: &Object, with_columns: bool) -> Value {
        let shape = Shape {
            now: (self.clock)().as_second(),
            ..self.shape
        };
        let columns = if with_columns {
            table::column_definitions(self.resource.rules.columns())
        } else {
            Value::Null
        };
        json!({
            "kind": "Table", "apiVersion": shape.version.api_version(),
            "metadata": { "resourceVersion": object.resource_version() },
            "columnDefinitions": columns, "rows": [shape.row(self.resource, object)],
        })
    }

    pub(super) fn bookmark(
        &mut self,
        revision: Revision,
        is_initial_end: bool,
        frames: &mut Frames,
    ) {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if is_initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let mut object = Object::new(&self.resource.api_version(), self.resource.kind);
        object.set(&["metadata"], metadata);
        let value = match self.shape.target {
            Target::Object => object.into_value(),
            Target::Metadata | Target::MetadataList => self.shape.partial(&object),
            Target::Table => {
                let mut table = self.table(&object, false);
                // The mark is always shown, whatever is included of objects.
                if is_initial_end && self.shape.include == Include::None {
                    table["rows"][0]["object"] = self.shape.partial(&object);
                }
                if self.takes_columns() {
                    let columns = self.resource.rules.columns();
                    table["columnDefinitions"] = table::column_definitions(columns);
                }
                table
            }
        };
        self.document("BOOKMARK", &value, frames);
    }
}

fn json_frame(word: &str, object: &[u8]) -> Bytes {
    let mut frames = Frames::default();
    frames.push_json(word, object);
    frames.joined()
}

/// An object that cannot be put into this form is one that we wrote wrongly: the client is told
/// instead of being left with a gap.
fn protobuf_frame(word: &str, value: &Value) -> Bytes {
    let document = |value: &Value| value.as_object().map(respond::encoded);
    match document(value) {
        Some(Ok(document)) => protobuf::watch_frame(word, &document).into(),
        Some(Err(error)) => {
            let status = Status::internal(error.to_string()).to_value();
            let document = document(&status).and_then(Result::ok);
            protobuf::watch_frame("ERROR", &document.unwrap_or_default()).into()
        }
        None => Bytes::new(),
    }
}
