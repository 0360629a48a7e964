//! The port of a scheduler, or of controllers, that are a process of their own: health, metrics and
//! configuration over HTTPS, as upstream's have it.
//!
//! Who asks and whether they may is said by an API server, but for health, which everybody may ask
//! for. Changes nothing, and never reads a body.

pub mod health; // What is answered about checks.

use crate::leading::Watchdog;
use crate::settings::secure_port::PortSettings;
use anyhow::Context;
use bytes::Bytes;
use coracle_api::exposition::checks::Results;
use coracle_api::exposition::{Format, Text};
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::connect::{self, kubeconfig};
use coracle_client::port::{Access, Asked, Caller, Fresh, Guest, Parts, Port, Service};
use coracle_client::port::{Serving, Source};
use coracle_streams::serving;
use health::Check;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::Timestamp;
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// For as long as upstream's components keep them.
const FRESH: Fresh = Fresh {
    token: Duration::from_secs(10),
    allowed: Duration::from_secs(10),
    refused: Duration::from_secs(10),
};
/// Prometheus' format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const MASTERS: &str = "system:masters";

/// Asks an API server.
pub type Resources = Box<dyn Fn() -> Telling + Send + Sync>;
type Telling = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// What is told of a process.
pub struct Pages {
    /// The name under which it leads.
    pub component: &'static str,
    pub watchdog: Watchdog,
    /// The path of each and its checks; without checks a ping.
    pub health: Vec<(&'static str, Vec<Check>)>,
    pub metrics: Box<dyn Fn(&mut Text) + Send + Sync>,
    /// What pods ask for, or why it cannot be told: upstream's `/metrics/resources`.
    pub resources: Option<Resources>,
    /// As JSON.
    pub configuration: String,
}

impl Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages")
            .field("component", &self.component)
            .finish_non_exhaustive()
    }
}

/// Listens, so that a port in use is found out first, and serves until `stop`. Nothing is done
/// without settings.
pub async fn open(
    settings: Option<&PortSettings>,
    pages: Pages,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let Some(settings) = settings else {
        return Ok(());
    };
    let address = settings.address;
    let tcp = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; --secure-port names another port, 0 none")
    })?;
    let serving = serving(settings).context("cannot serve HTTPS")?;
    let clock = Clock::system();
    let authentication = client(settings.authentication.as_deref())?;
    let authorization = client(settings.authorization.as_deref())?;
    let clients = match (&settings.client_ca, &authentication) {
        (Some(file), _) => Some(Source::File(file.clone())),
        (None, Some(client)) => Some(Source::Server(client.clone())),
        (None, None) => None,
    };
    let access = |client| Access::new(client, clock.clone(), FRESH);
    let parts = Parts {
        tcp,
        http: serving::builder(),
        clients,
        serving: Arc::new(serving),
        clock: clock.clone(),
        service: Door {
            authentication: authentication.map(access),
            authorization: authorization.map(access),
            always_allowed: settings.always_allowed.clone(),
            pages,
            results: Results::default(),
            started: clock.now(),
        },
    };
    let port = Port::new(parts).context("cannot serve HTTPS")?;
    tracing::info!(%address, "health and metrics are served");
    tokio::spawn(port.run(stop.clone()));
    Ok(())
}

fn client(file: Option<&Path>) -> anyhow::Result<Option<Client>> {
    let Some(path) = file else {
        return Ok(None);
    };
    let loaded = kubeconfig::load(path, None)
        .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?;
    Ok(Some(connect::client(&loaded.endpoint)))
}

fn serving(settings: &PortSettings) -> anyhow::Result<Serving> {
    let Some((certificate, key)) = &settings.shown else {
        let own = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        return Ok(Serving::self_signed("localhost", own)?);
    };
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Serving::new(&read(certificate)?, &read(key)?)
        .with_context(|| format!("{} is of no use", certificate.display()))
}

/// Lets in who may, and answers.
struct Door {
    authentication: Option<Access>,
    authorization: Option<Access>,
    always_allowed: Vec<String>,
    pages: Pages,
    /// What the checks of health said.
    results: Results,
    started: Timestamp,
}

impl Service for Door {
    type Body = Full<Bytes>;

    async fn answer(
        &self,
        request: Request<Incoming>,
        certified: Option<Caller>,
        guest: &Guest,
    ) -> Response<Self::Body> {
        let answer = match self.caller(&request, certified).await {
            None => status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"),
            Some(caller) => match self.refusal(&request, &caller).await {
                Some(refusal) => refusal,
                None => {
                    guest.let_in();
                    let uri = request.uri();
                    self.page(uri.path(), uri.query().unwrap_or("")).await
                }
            },
        };
        answer.into_response()
    }
}

impl Door {
    async fn page(&self, path: &str, query: &str) -> Answer {
        match (path, &self.pages.resources) {
            ("/metrics/slis", _) => {
                Answer::figures(self.results.text(Format::Prometheus, self.started))
            }
            ("/metrics/resources", Some(resources)) => match resources().await {
                Ok(text) => Answer::figures(text),
                Err(why) => {
                    tracing::warn!(why, "the API server does not list pods");
                    Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n"))
                }
            },
            _ => self.pages.answer(path, query, &self.results),
        }
    }

    /// Somebody without a token is anonymous, somebody with one that nobody knows is none.
    async fn caller<B>(&self, request: &Request<B>, certified: Option<Caller>) -> Option<Caller> {
        if certified.is_some() {
            return certified;
        }
        let shown = match &self.authentication {
            Some(access) => access.authenticate(request.headers()).await.ok()?,
            None => None,
        };
        Some(shown.unwrap_or_else(|| Caller {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Caller::default()
        }))
    }

    async fn refusal<B>(&self, request: &Request<B>, caller: &Caller) -> Option<Answer> {
        let path = request.uri().path();
        let is_master = caller.groups.iter().any(|group| group == MASTERS);
        if is_master || always(&self.always_allowed, path) {
            return None;
        }
        let verb = request.method().as_str().to_ascii_lowercase();
        let asked = Asked::Path {
            verb: verb.clone(),
            path: path.to_owned(),
        };
        let allowed = match &self.authorization {
            Some(access) => access.allows(caller, asked).await,
            None => Ok(false),
        };
        match allowed {
            Ok(true) => None,
            Ok(false) => {
                let user = &caller.name;
                let text = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
                Some(status(StatusCode::FORBIDDEN, "Forbidden", &text))
            }
            Err(error) => {
                tracing::warn!(%error, user = caller.name, "the API server does not authorize");
                let text = format!("Internal Server Error: {path:?}: cannot authorize\n");
                Some(Answer::text(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
        }
    }
}

fn always(patterns: &[String], path: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == pattern,
        })
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    kind: &'static str,
    text: String,
}

impl Answer {
    fn text(status: StatusCode, text: String) -> Self {
        let kind = "text/plain; charset=utf-8";
        Self { status, kind, text }
    }

    fn figures(text: String) -> Self {
        Self {
            status: StatusCode::OK,
            kind: EXPOSITION,
            text,
        }
    }

    fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.text)));
        *response.status_mut() = self.status;
        let headers: [(HeaderName, &'static str); 3] = [
            (CONTENT_TYPE, self.kind),
            (CACHE_CONTROL, "no-cache, private"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        for (name, value) in headers {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// A Status of Kubernetes.
fn status(code: StatusCode, reason: &str, message: &str) -> Answer {
    let status = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    Answer {
        status: code,
        kind: "application/json",
        text: status.to_string(),
    }
}

impl Pages {
    fn answer(&self, path: &str, query: &str, results: &Results) -> Answer {
        for (top, checks) in &self.health {
            let Some(below) = path.strip_prefix(top) else {
                continue;
            };
            let told = match below.strip_prefix('/') {
                None if below.is_empty() => {
                    let endpoint = top.trim_start_matches('/');
                    Some(health::all(endpoint, checks, query, results))
                }
                None => None,
                Some(name) => health::one(checks, name),
            };
            if let Some((status, text)) = told {
                return Answer::text(status, text);
            }
        }
        match path {
            "/metrics" => {
                let mut text = Text::new(Format::Prometheus);
                self.watchdog.metrics(&mut text, self.component);
                (self.metrics)(&mut text);
                Answer::figures(text.into_string())
            }
            "/configz" => Answer {
                status: StatusCode::OK,
                kind: "application/json",
                text: self.configuration.clone(),
            },
            _ => Answer::text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
