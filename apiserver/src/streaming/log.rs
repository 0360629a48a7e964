//! `pods/log`: the options checked as upstream checks them, the text passed through as it comes.

use super::{Streams, full, refusal};
use crate::query::{Query, encode};
use crate::request_info::RequestInfo;
use crate::tunnel::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::status::{Status, Subject};
use coracle_api::timestamp;
use coracle_streams::websocket::{self, Upgrade};
use futures::{SinkExt, StreamExt};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use tokio_tungstenite::tungstenite::Message;

/// Subprotocols of logs over WebSocket; the first is what an empty offer gets.
const PROTOCOLS: &[&str] = &["binary.k8s.io", "base64.binary.k8s.io"];
const STREAMS: &[&str] = &["All", "Stderr", "Stdout"];

/// `PodLogOptions` of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    container: String,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<String>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    stream: Option<String>,
}

impl Options {
    /// A value that cannot be read is 400; a value out of range is 422.
    pub fn read(query: &Query, pod: &str) -> Result<Self, Status> {
        let since_time = match query.text("sinceTime") {
            "" => None,
            text => Some(text.to_owned()),
        };
        if let Some(text) = &since_time
            && timestamp::parse(text).is_none()
        {
            let why = format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\" failed");
            return Err(Status::bad_request(why));
        }
        let options = Self {
            container: query.text("container").to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since_seconds: query.int("sinceSeconds")?,
            since_time,
            tail_lines: query.int("tailLines")?,
            limit_bytes: query.int("limitBytes")?,
            stream: query.get("stream").map(str::to_owned),
        };
        let errors = options.errors();
        if errors.is_empty() {
            return Ok(options);
        }
        let subject = Subject {
            group: "",
            resource: "PodLogOptions",
            name: pod,
        };
        Err(Status::invalid(subject, &errors))
    }

    fn errors(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let positive = "must be greater than 0";
        let mut check = |name: &str, value: Option<i64>, least: i64, why: &str| {
            if let Some(value) = value.filter(|value| *value < least) {
                errors.push(FieldError::invalid(&Path::root(name), value, why));
            }
        };
        let not_negative = "must be greater than or equal to 0";
        check("tailLines", self.tail_lines, 0, not_negative);
        check("limitBytes", self.limit_bytes, 1, positive);
        if self.since_time.is_none() {
            check("sinceSeconds", self.since_seconds, 1, positive);
        } else if self.since_seconds.is_some() {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden(&Path::root(""), why));
        }
        if let Some(stream) = &self.stream {
            if !STREAMS.contains(&stream.as_str()) {
                let path = Path::root("stream");
                errors.push(FieldError::not_supported(&path, stream.as_str(), STREAMS));
            }
            if stream != "All" && self.tail_lines.is_some() {
                let why = "`tailLines` and specific `stream` are mutually exclusive for now";
                errors.push(FieldError::forbidden(&Path::root(""), why));
            }
        }
        errors
    }

    /// The query for the agent.
    fn query(&self) -> Query {
        let mut query = Query::default();
        let flags = [
            ("follow", self.follow),
            ("previous", self.previous),
            ("timestamps", self.timestamps),
        ];
        for (name, set) in flags {
            if set {
                query.push(name, "true");
            }
        }
        let numbers = [
            ("sinceSeconds", self.since_seconds),
            ("tailLines", self.tail_lines),
            ("limitBytes", self.limit_bytes),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                query.push(name, value.to_string());
            }
        }
        if let Some(time) = &self.since_time {
            query.push("sinceTime", time.as_str());
        }
        if let Some(stream) = self.stream.as_deref().filter(|stream| *stream != "All") {
            query.push("stream", stream);
        }
        query
    }
}

impl Streams {
    pub(super) async fn log(
        &self,
        mut request: Parts,
        info: &RequestInfo,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        let options = Options::read(query, &info.name)?;
        let place = self.place(info, &options.container)?;
        if place.node.is_empty() {
            return Ok(text(full("")));
        }
        let uri = format!(
            "http://node/containerLogs/{}/{}/{}?{}",
            encode(&place.namespace),
            encode(&place.pod),
            encode(&place.container),
            options.query()
        );
        let asked = Request::get(uri).body(full("")).map_err(Status::internal)?;
        let answer = self.tunnels.request(&place.node, asked).await?;
        if !answer.status().is_success() {
            return Err(refusal(answer, "log", &info.name).await);
        }
        let body = answer.into_body().map_err(Into::into).boxed_unsync();
        if !websocket::is_asked(&request.headers) {
            return Ok(text(body));
        }
        let upgrade = Upgrade::negotiate(&mut request, PROTOCOLS)?;
        let response = upgrade.response();
        tokio::spawn(send(upgrade, body));
        Ok(response)
    }
}

fn text(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// One message a chunk; ends with the log or with the client.
async fn send(upgrade: Upgrade, mut body: Body) {
    let encoded = upgrade.protocol().starts_with("base64.");
    let Ok(socket) = upgrade.open().await else {
        return;
    };
    let (mut sink, mut messages) = socket.split();
    // A client says nothing but that it is there, or goes.
    let reading = async {
        while let Some(Ok(message)) = messages.next().await {
            if matches!(message, Message::Close(_)) {
                return;
            }
        }
    };
    let sending = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let message = if encoded {
                Message::text(STANDARD.encode(&data))
            } else {
                Message::binary(data)
            };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        // The client may be gone already; there is nobody left to tell.
        let _ = sink.send(websocket::goodbye()).await;
    };
    let mut reading = std::pin::pin!(reading);
    tokio::select! {
        () = &mut reading => return,
        () = sending => {}
    }
    let _ = tokio::time::timeout(websocket::FAREWELL_MAX, reading).await;
}
