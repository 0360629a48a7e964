//! What is served beside resources: health, version, metrics, discovery, OpenAPI, the CA.

mod documents; // Discovery and OpenAPI.
mod health; // `/healthz`, `/livez`, `/readyz`.
mod openid; // How tokens are checked.
mod version; // `/version`.

use crate::fairness::{Fairness, dump};
use crate::metrics::{Metrics, TEXT_TYPE};
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond;
use crate::tokens::{CONFIGURATION_PATH, KEYS_PATH, Tokens};
use crate::tunnel::{Body, Tunnels};
use bytes::Bytes;
use coracle_api::status::Status;
use coracle_store::Store;
use health::Health;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;
use std::sync::Arc;

/// Where the CA is, for those who check it by its hash.
const CA_PATH: &str = "/coracle/v1/ca";
const PATHS: &[&str] = &[
    CONFIGURATION_PATH,
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    KEYS_PATH,
    "/readyz",
    "/version",
];

#[derive(Debug)]
pub struct Endpoints {
    store: Store,
    metrics: Arc<Metrics>,
    fairness: Arc<Fairness>,
    tunnels: Tunnels,
    tokens: Arc<Tokens>,
    health: Health,
    ca_pem: String,
    /// `host:port`, for the legacy discovery of `/api`.
    address: String,
}

impl Endpoints {
    pub fn new(
        store: Store,
        metrics: Arc<Metrics>,
        fairness: Arc<Fairness>,
        tunnels: Tunnels,
        tokens: Arc<Tokens>,
        ca_pem: String,
        address: String,
    ) -> Self {
        Self {
            store,
            metrics,
            fairness,
            tunnels,
            tokens,
            health: Health::default(),
            ca_pem,
            address,
        }
    }

    pub fn set_ready(&self) {
        self.health.set_ready();
    }

    pub fn set_shutting_down(&self) {
        self.health.set_shutting_down();
    }

    /// `None` for a path that is none of these.
    pub fn answer(&self, request: &Parts, info: &RequestInfo) -> Option<Response<Body>> {
        let path = info.path.as_str();
        let query = Query::parse(request.uri.query().unwrap_or(""));
        let response = match path.trim_end_matches('/') {
            "" => index(),
            "/version" => version::answer(),
            "/metrics" => text(
                StatusCode::OK,
                TEXT_TYPE,
                self.metrics
                    .text(&self.store, self.tunnels.connected(), &self.fairness),
            ),
            CA_PATH => text(
                StatusCode::OK,
                "application/x-pem-file",
                self.ca_pem.clone(),
            ),
            path if path.starts_with(dump::PATH) => self.dump(path, &query)?,
            path => self
                .health
                .answer(path, &query)
                .or_else(|| openid::answer(path, &self.tokens, &self.address))
                .or_else(|| documents::answer(path, &self.address, request, &query))?,
        };
        if matches!(request.method, Method::GET | Method::HEAD) {
            return Some(response);
        }
        let mut status = Status::method_not_supported("", "", &info.verb);
        status.message = "the server does not allow this method on the requested resource".into();
        Some(respond::failure(&status))
    }
}

impl Endpoints {
    fn dump(&self, path: &str, query: &Query) -> Option<Response<Body>> {
        let name = path.strip_prefix(dump::PATH)?;
        let with_details = !query.text("includeRequestDetails").is_empty();
        let dump = self
            .fairness
            .dump(name, with_details, self.metrics.started())?;
        Some(text(StatusCode::OK, "text/plain; charset=utf-8", dump))
    }
}

fn text(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(respond::full(body));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn index() -> Response<Body> {
    let mut paths: Vec<String> = PATHS.iter().map(|path| (*path).to_owned()).collect();
    paths.extend(documents::group_paths());
    paths.sort();
    respond::json_bytes(StatusCode::OK, json!({ "paths": paths }).to_string())
}

fn accept(request: &Parts) -> String {
    let values = request.headers.get_all(ACCEPT).iter();
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    texts.join(",")
}
