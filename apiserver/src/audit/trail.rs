//! The record of one request, from its arrival to the last byte of its answer.
//!
//! Rides along as an extension of the request. What is learnt on the way is noted here; each stage
//! that the policy wants becomes one line of the log.

use super::Audit;
use super::capture::{self, Kept};
use super::event::{Event, UserInfo, without_managed_fields};
use super::policy::{Level, Stage, Verdict};
use crate::authenticate::User;
use crate::authenticate::impersonate::Mode;
use crate::authorize::Decision;
use crate::body::{self, Content, Encoded};
use crate::fairness;
use crate::request_info::RequestInfo;
use crate::tunnel::Body;
use coracle_api::timestamp::format_micro_time;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::io::Read;
use std::sync::Arc;

#[derive(Debug)]
pub struct Trail {
    audit: Arc<Audit>,
    info: Arc<RequestInfo>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    verdict: Verdict,
    event: Event,
    request: Option<(Content, Arc<Mutex<Kept>>)>,
    /// Nobody was recognized: recorded in a way of its own.
    is_unknown: bool,
}

/// The record of a request, if it is recorded.
pub fn of(parts: &Parts) -> Option<&Arc<Trail>> {
    parts.extensions.get::<Arc<Trail>>()
}

impl Trail {
    pub fn new(audit: Arc<Audit>, info: Arc<RequestInfo>, event: Event) -> Self {
        Self {
            audit,
            info,
            inside: Mutex::new(Inside {
                verdict: Verdict::default(),
                event,
                request: None,
                is_unknown: false,
            }),
        }
    }

    /// It is known who asks: the policy decides, and the first stage is recorded.
    pub fn identified(&self, user: &User) {
        let verdict = self.audit.policy().verdict(Some(user), &self.info);
        self.begin(verdict, UserInfo::of(user));
        self.record(Stage::RequestReceived);
    }

    /// What the client showed was not good.
    pub fn unrecognized(&self, headers: &HeaderMap, has_certificate: bool) {
        let verdict = self.audit.policy().verdict(None, &self.info);
        self.begin(verdict, UserInfo::default());
        let authorization = headers.get(http::header::AUTHORIZATION);
        let scheme = authorization.and_then(|value| value.to_str().ok());
        let scheme = scheme.and_then(|text| text.split_once(' '));
        let shown: Vec<&str> = [
            (
                scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")),
                "basic",
            ),
            (
                scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")),
                "bearer",
            ),
            (has_certificate, "x509"),
        ]
        .into_iter()
        .filter_map(|(is_shown, name)| is_shown.then_some(name))
        .collect();
        let message = match shown.as_slice() {
            [] => "Authentication failed, no credentials provided".to_owned(),
            shown => format!("Authentication failed, attempted: {}", shown.join(", ")),
        };
        let mut inside = self.inside.lock();
        inside.is_unknown = true;
        inside.event.response_status = Some(json!({ "metadata": {}, "message": message }));
    }

    fn begin(&self, verdict: Verdict, user: UserInfo) {
        self.audit.count(verdict.level);
        let mut inside = self.inside.lock();
        inside.event.level = verdict.level.name();
        inside.event.user = user;
        inside.verdict = verdict;
    }

    pub fn impersonated(&self, user: &User, mode: Mode) {
        let event = &mut self.inside.lock().event;
        event.impersonated_user = Some(UserInfo::of(user));
        let constraint = mode.constraint();
        event.authentication_metadata =
            constraint.map(|verb| json!({ "impersonationConstraint": verb }));
    }

    pub fn decided(&self, decision: &Decision) {
        let word = if decision.is_allowed() {
            "allow"
        } else {
            "forbid"
        };
        self.annotate("authorization.k8s.io/decision", word);
        self.annotate("authorization.k8s.io/reason", decision.reason());
    }

    pub fn annotate(&self, key: &'static str, value: &str) {
        let mut inside = self.inside.lock();
        if inside.verdict.level > Level::None {
            let annotations = &mut inside.event.annotations;
            annotations.insert(key.into(), value.to_owned());
        }
    }

    /// Recorded by a policy that asks for so much at least. What stands there already stays.
    pub fn annotate_at(&self, least: Level, key: String, value: &str) {
        let mut inside = self.inside.lock();
        if inside.verdict.level >= least && inside.verdict.level > Level::None {
            let annotations = &mut inside.event.annotations;
            annotations
                .entry(key.into())
                .or_insert_with(|| value.to_owned());
        }
    }

    /// Keeps the body of a write while it is read, for what the policy wants to know of it.
    pub fn keep_request(&self, headers: &HeaderMap, body: Body) -> Body {
        let mut inside = self.inside.lock();
        let is_write = !matches!(self.info.verb.as_str(), "get" | "list" | "watch");
        let is_wanted = self.info.is_resource_request && is_write;
        if !is_wanted || inside.verdict.level == Level::None || fairness::is_stream(&self.info) {
            return body;
        }
        let kept = Arc::<Mutex<Kept>>::default();
        inside.request = Some((body::content(headers), Arc::clone(&kept)));
        capture::keep(body, kept)
    }

    /// The answer is made; the last stage comes when its body has ended.
    pub fn answered(self: &Arc<Self>, response: Response<Body>) -> Response<Body> {
        let code = response.status().as_u16();
        let mut inside = self.inside.lock();
        if inside.verdict.level == Level::None {
            return response;
        }
        let status = inside
            .event
            .response_status
            .get_or_insert_with(|| json!({ "metadata": {} }));
        status["code"] = code.into();
        let is_unknown = inside.is_unknown;
        inside.take_request();
        let wants_body = inside.verdict.level == Level::RequestResponse
            || code >= 400
            || self.info.verb.starts_with("delete");
        drop(inside);
        if is_unknown {
            self.record(Stage::ResponseStarted);
            return response;
        }
        let is_long = self.info.verb == "watch" || fairness::is_stream(&self.info);
        if is_long {
            self.record(Stage::ResponseStarted);
        }
        let wants_body = wants_body && self.info.is_resource_request && !(is_long && code < 400);
        let kept = wants_body.then(Arc::<Mutex<Kept>>::default);
        let (parts, body) = response.into_parts();
        let (this, own, headers) = (Arc::clone(self), kept.clone(), parts.headers.clone());
        let on_end = Box::new(move || {
            if let Some(kept) = own {
                this.take_response(&headers, &kept.lock());
            }
            this.record(Stage::ResponseComplete);
        });
        Response::from_parts(parts, capture::until_end(body, kept, on_end))
    }

    pub fn panicked(&self) {
        self.inside.lock().event.response_status = Some(json!({
            "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
            "message": "APIServer panic'd: the request panicked",
        }));
        self.record(Stage::Panic);
    }

    fn take_response(&self, headers: &HeaderMap, kept: &Kept) {
        let mut inside = self.inside.lock();
        if kept.is_cut {
            inside.note_cut();
            return;
        }
        let Some(mut object) = response_object(headers, &kept.bytes) else {
            return;
        };
        if object["kind"] == "Status" {
            let mut status = object.clone();
            if let Some(status) = status.as_object_mut() {
                status.remove("kind");
                status.remove("apiVersion");
            }
            let code = inside
                .event
                .response_status
                .as_ref()
                .map(|own| own["code"].clone());
            status["code"] = code.unwrap_or_default();
            inside.event.response_status = Some(status);
        }
        if inside.verdict.level == Level::RequestResponse {
            if inside.verdict.omit_managed_fields {
                without_managed_fields(&mut object);
            }
            inside.event.response_object = Some(object);
        }
    }

    fn record(&self, stage: Stage) {
        let mut inside = self.inside.lock();
        if inside.verdict.level == Level::None || inside.verdict.omitted.contains(&stage) {
            return;
        }
        inside.event.stage = stage.name();
        inside.event.stage_timestamp = format_micro_time(self.audit.now());
        let line = inside.event.line();
        drop(inside);
        self.audit.write(line);
    }
}

impl Inside {
    fn take_request(&mut self) {
        let Some((content, kept)) = self.request.take() else {
            return;
        };
        let kept = std::mem::take(&mut *kept.lock());
        if kept.is_cut {
            self.note_cut();
            return;
        }
        let Some(mut object) = request_object(content, kept.bytes) else {
            return;
        };
        let is_patch = !matches!(content, Content::Json | Content::Yaml | Content::Protobuf);
        if let Some(own) = self.event.object_ref.as_mut().filter(|_| !is_patch) {
            own.complete(&object);
        }
        if self.verdict.level >= Level::Request {
            if self.verdict.omit_managed_fields && !is_patch {
                without_managed_fields(&mut object);
            }
            self.event.request_object = Some(object);
        }
    }

    fn note_cut(&mut self) {
        let annotations = &mut self.event.annotations;
        annotations.insert("audit.k8s.io/truncated".into(), "true".to_owned());
    }
}

fn request_object(content: Content, bytes: Vec<u8>) -> Option<Value> {
    if bytes.is_empty() {
        return None;
    }
    let content = match content {
        Content::Yaml | Content::ApplyPatch => Content::Yaml,
        Content::Protobuf => Content::Protobuf,
        _ => Content::Json,
    };
    let bytes = bytes.into();
    let json = Encoded { content, bytes }.to_json().ok()?;
    serde_json::from_slice(&json).ok()
}

fn response_object(headers: &HeaderMap, bytes: &[u8]) -> Option<Value> {
    let is_gzip = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| value == "gzip");
    let plain = if is_gzip {
        let mut plain = Vec::new();
        let decoder = flate2::read::GzDecoder::new(bytes);
        let limit = capture::KEPT_MAX as u64;
        decoder.take(limit).read_to_end(&mut plain).ok()?;
        plain
    } else {
        bytes.to_vec()
    };
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let content = match kind.unwrap_or("").split(';').next() {
        Some(kind) if kind.ends_with("json") => Content::Json,
        Some(kind) if kind.ends_with("yaml") => Content::Yaml,
        Some(kind) if kind.ends_with("protobuf") => Content::Protobuf,
        _ => return None,
    };
    let bytes = plain.into();
    let json = Encoded { content, bytes }.to_json().ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests;
