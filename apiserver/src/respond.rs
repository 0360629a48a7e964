//! Answers: which form a client takes, and bodies in that form.

use crate::registry;
use crate::registry::glance;
use crate::tunnel::Body;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::protobuf::{self, ProtobufError};
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_api::table::{self, Include};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};

pub mod accept; // The Accept header.
pub mod gzip; // Compression of large answers.
pub mod pretty; // JSON for people.
pub mod stream; // Bodies made while they are sent.
pub mod yaml; // Documents as YAML.

pub use accept::{
    Accepted, Form, MetaVersion, Route, Served, Target, best, check_produced, negotiate,
};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const PROTOBUF: HeaderValue = HeaderValue::from_static(protobuf::MEDIA_TYPE);
/// Nothing of an API is for a cache between client and server.
const PRIVATE: HeaderValue = HeaderValue::from_static("no-cache, private");

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// JSON bytes as they are.
pub fn json_bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    typed(code, JSON, full(bytes))
}

fn typed(code: StatusCode, content_type: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A failure in JSON, for whoever negotiates nothing.
pub fn failure(status: &Status) -> Response<Body> {
    Shape::json().failure(status)
}

/// The answer was not there in time: in upstream's words, which it calls text.
pub fn timed_out() -> Response<Body> {
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    let status = "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not \
                  complete within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\
                  \"code\":504}\n";
    typed(StatusCode::GATEWAY_TIMEOUT, text, full(status))
}

/// A path that nothing serves, in upstream's plain text.
pub fn page_not_found() -> Response<Body> {
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut response = typed(StatusCode::NOT_FOUND, text, full("404 page not found\n"));
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// What a request says of its answer beside what is in it; kept while the request is worked on.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    accept: Option<HeaderValue>,
    audit_id: Option<HeaderValue>,
    pretty: bool,
    gzip: bool,
}

impl Wishes {
    pub fn of(request: &Parts) -> Self {
        let headers = &request.headers;
        Self {
            accept: headers.get(ACCEPT).cloned(),
            audit_id: headers.get(AUDIT_ID).cloned(),
            pretty: is_for_people(request),
            gzip: gzip::is_wanted(headers),
        }
    }

    /// The one place where a failure becomes an answer. No Accept header hides it: what cannot be
    /// met is answered in JSON.
    pub fn failure(&self, status: &Status) -> Response<Body> {
        let plain = Served {
            table: false,
            route: Route::One,
        };
        let accept = self.accept.as_ref().and_then(|value| value.to_str().ok());
        let accepted = best(accept.unwrap_or(""), plain).ok();
        // A transformed failure is none: only clauses without a target count.
        let shape = Shape {
            form: accepted.map_or(Form::Json, |accepted| accepted.form),
            pretty: self.pretty || accepted.is_none_or(|accepted| accepted.pretty),
            ..Shape::json()
        };
        shape.failure(status)
    }

    /// A request that came no further than the question of whether its user may.
    pub fn refusal(&self, status: &Status) -> Response<Body> {
        let mut response = self.failure(status);
        let nosniff = HeaderValue::from_static("nosniff");
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
        response
    }

    /// What every answer has.
    pub fn finish(&self, response: Response<Body>) -> Response<Body> {
        let mut response = if self.gzip {
            gzip::compress(response)
        } else {
            response
        };
        let headers = response.headers_mut();
        headers.entry(CACHE_CONTROL).or_insert(PRIVATE);
        let id = headers.entry(AUDIT_ID).or_insert_with(|| {
            self.audit_id.clone().unwrap_or_else(|| {
                let id = uuid::Uuid::new_v4().to_string();
                HeaderValue::from_str(&id).expect("an id is plain text")
            })
        });
        // So that HTTP/2 keeps it in no table of headers: no two answers have the same one.
        id.set_sensitive(true);
        response
    }
}

/// The Accept headers of a request as one.
pub fn accepted(request: &Parts) -> String {
    let values = request.headers.get_all(ACCEPT).iter();
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    texts.join(",")
}

/// True for a person at a browser or a command line, or one who asks to be taken for one.
fn is_for_people(request: &Parts) -> bool {
    let query = request.uri.query().unwrap_or("");
    if query.contains("pretty") {
        let query = crate::query::Query::parse(query);
        let asked = query.text("pretty");
        if !asked.is_empty() {
            return matches!(asked, "1" | "t" | "T" | "true" | "TRUE" | "True");
        }
    }
    let agent = request.headers.get(USER_AGENT);
    let agent = agent.map_or(&b""[..], HeaderValue::as_bytes);
    let people: [&[u8]; 3] = [b"curl", b"Wget", b"Mozilla/5.0"];
    people.iter().any(|one| agent.starts_with(one))
}

/// How objects of a request are to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub form: Form,
    pub target: Target,
    pub version: MetaVersion,
    pub pretty: bool,
    pub include: Include,
    /// Seconds since the epoch, for ages.
    pub now: i64,
}

impl Shape {
    fn json() -> Self {
        Self {
            form: Form::Json,
            target: Target::Object,
            version: MetaVersion::V1,
            pretty: false,
            include: Include::default(),
            now: 0,
        }
    }

    pub fn of(request: &Parts, served: Served, now: i64) -> Result<Self, Status> {
        Self::negotiated(request, served, now, negotiate)
    }

    /// The shape of a document about the API that has no route: nothing is asked of one.
    pub fn beside_routes(request: &Parts, served: Served) -> Result<Self, Status> {
        Self::negotiated(request, served, 0, best)
    }

    fn negotiated(
        request: &Parts,
        served: Served,
        now: i64,
        negotiate: fn(&str, Served) -> Result<Accepted, Status>,
    ) -> Result<Self, Status> {
        let accepted = negotiate(&accepted(request), served)?;
        let mut shape = Self {
            form: accepted.form,
            target: accepted.target,
            version: accepted.version,
            pretty: accepted.pretty || is_for_people(request),
            include: Include::default(),
            now,
        };
        if shape.target == Target::Table {
            let query = crate::query::Query::parse(request.uri.query().unwrap_or(""));
            shape.include = Include::parse(query.text("includeObject")).ok_or_else(|| {
                let text = query.text("includeObject");
                Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \
                     {text:?}: must be 'Metadata', 'Object', 'None', or empty"
                ))
            })?;
        }
        Ok(shape)
    }

    pub fn content_type(&self) -> HeaderValue {
        match self.form {
            Form::Json => JSON,
            Form::Yaml => YAML,
            Form::Protobuf => PROTOBUF,
        }
    }

    /// True when stored bytes can go out as they are.
    pub fn is_plain(&self) -> bool {
        self.form == Form::Json && self.target == Target::Object && !self.pretty
    }

    pub fn json_text(&self, code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
        if self.pretty {
            json_bytes(code, pretty::document(&bytes.into()))
        } else {
            json_bytes(code, bytes)
        }
    }

    /// Any document, by the kind that it names.
    pub fn document(&self, code: StatusCode, value: &Value) -> Response<Body> {
        match (self.form, value) {
            (Form::Yaml, _) => typed(code, YAML, full(yaml::document(value))),
            (Form::Protobuf, Value::Object(object)) => {
                self.protobuf_or(code, encoded(object), || value.to_string())
            }
            _ => self.json_text(code, value.to_string()),
        }
    }

    /// What has no protobuf form goes out as JSON: the client sees it by the Content-Type.
    pub fn protobuf_or<B: Into<Bytes>>(
        &self,
        code: StatusCode,
        encoded: Result<Vec<u8>, ProtobufError>,
        json: impl FnOnce() -> B,
    ) -> Response<Body> {
        match encoded {
            Ok(bytes) => typed(code, PROTOBUF, full(bytes)),
            Err(error) => {
                tracing::debug!(%error, "answered in JSON instead of protobuf");
                self.json_text(code, json())
            }
        }
    }

    pub fn failure(&self, status: &Status) -> Response<Body> {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = self.document(code, &status.to_value());
        if let Some(seconds) = status.details["retryAfterSeconds"].as_u64() {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// One object.
    pub fn object(&self, code: StatusCode, resource: &Resource, object: &Object) -> Response<Body> {
        match (self.target, self.form) {
            (Target::Object, Form::Json) => self.json_text(code, serialized(object)),
            (Target::Object, Form::Protobuf) => {
                self.protobuf_or(code, encoded(object.root()), || serialized(object))
            }
            (Target::Object, Form::Yaml) => self.document(code, &object.to_value()),
            (Target::Table, _) => self.document(code, &self.table(resource, object)),
            (Target::Metadata, _) => self.document(code, &self.partial(object)),
            (Target::MetadataList, _) => {
                let kind = go_type(resource, resource.kind);
                self.failure(&Status::not_acceptable(format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a \
                     list ({kind})"
                )))
            }
        }
    }

    /// One object from its stored bytes, which are not of a second view.
    pub fn stored(&self, resource: &Resource, value: &Bytes) -> Option<Response<Body>> {
        if self.is_plain() {
            return Some(json_bytes(StatusCode::OK, value.clone()));
        }
        match (self.target, self.form) {
            (Target::Object, Form::Json) => Some(self.json_text(StatusCode::OK, value.clone())),
            (Target::Metadata, Form::Json) => {
                let mut out = Vec::new();
                self.partial_bytes(glance::metadata_bytes(resource, value)?, &mut out);
                Some(self.json_text(StatusCode::OK, out))
            }
            _ => None,
        }
    }

    /// A PartialObjectMetadata around the bytes of metadata.
    pub fn partial_bytes(&self, metadata: &[u8], out: &mut Vec<u8>) {
        let version = self.version.api_version().as_bytes();
        out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
        out.extend_from_slice(version);
        out.extend_from_slice(b"\",\"metadata\":");
        out.extend_from_slice(metadata);
        out.push(b'}');
    }

    pub fn partial(&self, object: &Object) -> Value {
        let mut partial = table::partial_metadata(object);
        partial["apiVersion"] = self.version.api_version().into();
        partial
    }

    fn table(&self, resource: &Resource, object: &Object) -> Value {
        let metadata = json!({ "resourceVersion": object.resource_version() });
        let row = self.row(resource, object);
        let columns = table::column_definitions(resource.rules.columns());
        json!({
            "kind": "Table", "apiVersion": self.version.api_version(), "metadata": metadata,
            "columnDefinitions": columns, "rows": [row],
        })
    }

    /// The row of an object in a table.
    pub fn row(&self, resource: &Resource, object: &Object) -> Value {
        let mut row = table::row(resource, object, self.include, self.now);
        match self.include {
            Include::None => row["object"] = Value::Null,
            Include::Metadata => {
                row["object"]["apiVersion"] = self.version.api_version().into();
            }
            Include::Object => {}
        }
        row
    }
}

/// A document in protobuf, by the kind that it names, whichever version of meta.k8s.io that is in.
pub fn encoded(object: &Map<String, Value>) -> Result<Vec<u8>, ProtobufError> {
    const META_TYPES: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or("");
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if !api_version.starts_with("meta.k8s.io/") {
        return protobuf::encode_object(object);
    }
    let value = Value::Object(object.clone());
    protobuf::encode(&value, api_version, kind, &format!("{META_TYPES}{kind}"))
}

/// What Go calls the type of a resource's objects, for messages that name it.
pub fn go_type(resource: &Resource, kind: &str) -> String {
    let package = match resource.group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{kind}")
}

/// An object with its `resourceVersion`, as it would be stored.
pub fn serialized(object: &Object) -> Vec<u8> {
    let (mut bytes, place) = registry::encode(object);
    let version = object.resource_version();
    if version.is_empty() {
        return object.to_value().to_string().into_bytes();
    }
    bytes.splice(place..place, version.bytes());
    bytes
}
