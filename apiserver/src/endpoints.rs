//! What is served beside resources: health, version, metrics, discovery, OpenAPI, the CA.

mod documents; // Discovery and OpenAPI.
mod health; // `/healthz`, `/livez`, `/readyz`.
mod openid; // How tokens are checked.
mod version; // `/version`.

use crate::aggregation::{Aggregation, Remote};
use crate::fairness::{Fairness, dump};
use crate::metrics::Metrics;
use crate::metrics::text::{Format, negotiate};
use crate::query::Query;
use crate::registry::Registry;
use crate::request_info::RequestInfo;
use crate::respond::{self, Wishes};
use crate::routes;
use crate::tokens::{CONFIGURATION_PATH, KEYS_PATH, Tokens};
use crate::tunnel::{Body, Tunnels};
use bytes::Bytes;
use health::Health;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
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
    "/apis/",
    "/healthz",
    "/livez",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    KEYS_PATH,
    "/readyz",
    "/version",
];

#[derive(Debug)]
pub struct Endpoints {
    registry: Registry,
    metrics: Arc<Metrics>,
    fairness: Arc<Fairness>,
    tunnels: Tunnels,
    tokens: Arc<Tokens>,
    health: Health,
    ca_pem: String,
    /// `host:port`, for the legacy discovery of `/api`.
    address: String,
    /// A group of the catalogue that is not served here.
    left_out: Option<&'static str>,
    /// Whose groups are shown as well.
    aggregation: Option<Arc<Aggregation>>,
}

impl Endpoints {
    pub fn new(
        registry: Registry,
        metrics: Arc<Metrics>,
        fairness: Arc<Fairness>,
        tunnels: Tunnels,
        tokens: Arc<Tokens>,
        ca_pem: String,
        address: String,
    ) -> Self {
        Self {
            registry,
            metrics,
            fairness,
            tunnels,
            tokens,
            health: Health::default(),
            ca_pem,
            address,
            left_out: None,
            aggregation: None,
        }
    }

    /// Without a group of the catalogue that somebody else is to serve.
    #[must_use]
    pub fn without(mut self, group: Option<&'static str>) -> Self {
        self.left_out = group;
        self
    }

    /// With the groups of other servers.
    #[must_use]
    pub fn beside(mut self, aggregation: Arc<Aggregation>) -> Self {
        self.aggregation = Some(aggregation);
        self
    }

    fn trouble(&self) -> Option<String> {
        let trouble = self.registry.store.trouble();
        trouble.map(|trouble| trouble.to_string())
    }

    fn remotes(&self) -> Arc<[Arc<Remote>]> {
        let aggregation = self.aggregation.as_ref();
        aggregation.map_or_else(|| Arc::from([]), |aggregation| aggregation.all())
    }

    pub fn set_ready(&self) {
        self.health.set_ready();
    }

    pub fn set_shutting_down(&self) {
        self.health.set_shutting_down();
    }

    /// `None` for a path that is none of these.
    pub fn answer(
        &self,
        request: &Parts,
        query: &Query,
        info: &RequestInfo,
    ) -> Option<Response<Body>> {
        let path = info.path.as_str();
        if let Some(response) = self.of_any_method(path, request, query) {
            return Some(response);
        }
        // The rest has routes as resources have: for one method, and slashes behind do not count.
        let response = self.routed(path.trim_end_matches('/'), request)?;
        if request.method == Method::GET {
            return Some(response);
        }
        // Before what the client accepts is looked at.
        Some(Wishes::of(request).failure(&routes::not_supported()))
    }

    /// What upstream serves beside its router, under these paths alone.
    fn of_any_method(&self, path: &str, request: &Parts, query: &Query) -> Option<Response<Body>> {
        Some(match path {
            "/" | "/index.html" => self.index(),
            "/metrics" => counted(request, |format| {
                let connected = self.tunnels.connected();
                self.metrics
                    .text(format, &self.registry.store, connected, &self.fairness)
            }),
            "/metrics/slis" => counted(request, |format| {
                self.health.results(format, self.metrics.started())
            }),
            CA_PATH => {
                let ca = self.ca_pem.clone();
                text(StatusCode::OK, "application/x-pem-file", ca)
            }
            _ if path.starts_with(dump::PATH) => self.dump(path, query)?,
            _ if path.starts_with("/openapi/") => {
                let kinds = self.registry.kinds();
                let remotes = self.remotes();
                documents::open_api(&kinds, path, self.left_out, &remotes, request, query)?
            }
            _ => self
                .health
                .answer(path, query, self.trouble())
                .or_else(|| {
                    documents::groups(
                        &self.registry.kinds(),
                        path,
                        self.left_out,
                        &self.remotes(),
                        request,
                    )
                })?,
        })
    }

    /// All paths that are worth a look, for people.
    fn index(&self) -> Response<Body> {
        let mut paths: Vec<String> = PATHS.iter().map(|path| (*path).to_owned()).collect();
        paths.extend(documents::group_paths(
            &self.registry.kinds(),
            self.left_out,
        ));
        paths.extend(self.health.paths());
        paths.sort();
        let text = format!("{:#}", json!({ "paths": paths }));
        respond::json_bytes(StatusCode::OK, text)
    }

    fn routed(&self, path: &str, request: &Parts) -> Option<Response<Body>> {
        match path {
            "/version" => Some(
                match respond::check_produced(&respond::accepted(request), &["application/json"]) {
                    Ok(()) => version::answer(),
                    Err(status) => Wishes::of(request).failure(&status),
                },
            ),
            _ => openid::answer(path, &self.tokens, &self.address, request).or_else(|| {
                let kinds = self.registry.kinds();
                documents::resources(&kinds, path, &self.address, self.left_out, request)
            }),
        }
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

/// Metrics in the format that the client takes.
fn counted(request: &Parts, write: impl FnOnce(Format) -> String) -> Response<Body> {
    let (format, content_type) = negotiate(&respond::accepted(request));
    let mut response = Response::new(respond::full(write(format)));
    if let Ok(value) = HeaderValue::from_str(&content_type) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}
