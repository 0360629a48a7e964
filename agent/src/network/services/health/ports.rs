//! Listens on the health check node ports of Services, and on the node's own.
//!
//! A port that another process has is tried again, and told of by an event on the Service.

use super::{Answer, Health, of_proxy};
use crate::network::view::{Key, View, parts};
use bytes::Bytes;
use coracle_client::events::{EventType, Recorder};
use coracle_streams::serving;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Of one port at one time; more of them wait to be accepted.
const CONNECTIONS_MAX: usize = 32;
/// A check asks once and goes; who is slow makes room for others.
const CONNECTION_MAX: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Before trying a port again that could not be had.
const RETRY: Duration = Duration::from_secs(10);

type Ask = Arc<dyn Fn(&str) -> Option<Answer> + Send + Sync>;

#[derive(Debug)]
pub struct HealthPorts {
    pub health: Arc<Health>,
    /// Told when a Service has another port.
    pub changed: Arc<Notify>,
    pub view: View,
    pub recorder: Recorder,
    pub node_name: String,
}

/// A listener, which ends when it is dropped.
struct Open {
    port: u16,
    serving: AbortOnDropHandle<()>,
}

impl HealthPorts {
    /// Keeps the ports of Services open until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut open: BTreeMap<Key, Open> = BTreeMap::new();
        let mut told: BTreeMap<Key, u16> = BTreeMap::new();
        loop {
            let wanted = self.health.ports();
            let gone = open.extract_if(.., |key, of| wanted.get(key) != Some(&of.port));
            for (_, of) in gone.collect::<Vec<_>>() {
                // Another Service may want the same port.
                of.serving.abort();
                let _ = of.serving.await;
            }
            told.retain(|key, port| wanted.get(key) == Some(port));
            for (key, port) in &wanted {
                if open.contains_key(key) {
                    continue;
                }
                match self.open(key, *port).await {
                    Ok(of) => {
                        told.remove(key);
                        open.insert(key.clone(), of);
                    }
                    Err(error) if told.insert(key.clone(), *port).is_none() => {
                        self.tell(key, *port, &error);
                    }
                    Err(_) => {}
                }
            }
            let retry = async {
                if told.is_empty() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(RETRY).await;
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = retry => {}
            }
        }
    }

    async fn open(&self, key: &Key, port: u16) -> io::Result<Open> {
        let listener = bind_any(port).await?;
        let (health, key) = (self.health.clone(), key.clone());
        let ask: Ask = Arc::new(move |_| health.of_service(&key));
        let serving = AbortOnDropHandle::new(tokio::spawn(accept(listener, ask)));
        Ok(Open { port, serving })
    }

    fn tell(&self, key: &Key, port: u16, error: &io::Error) {
        let (namespace, name) = parts(key);
        let node = &self.node_name;
        let text =
            format!("node {node} failed to start healthcheck \"{key}\" on port {port}: {error}");
        tracing::warn!(service = %key, port, %error, "load balancers cannot check a Service here");
        let service = self.view.read(key, |entry| entry.service.clone()).flatten();
        let object = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Service".to_owned()),
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: service.map(|service| service.uid.to_string()),
            ..ObjectReference::default()
        };
        let reason = "FailedToStartServiceHealthcheck";
        self.recorder
            .event(&object, EventType::Warning, reason, text);
    }
}

/// Both families, where the machine has both.
async fn bind_any(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
        }
        bound => bound,
    }
}

/// Answers for the node itself, until `stop`.
pub async fn bind(health: Arc<Health>, address: SocketAddr, stop: CancellationToken) {
    let ask: Ask = Arc::new(move |path| health.of_node(path));
    let without = "load balancers cannot check this node";
    answer(address, ask, without, stop).await;
}

/// Says how Services are routed, until `stop`.
pub async fn bind_local(address: SocketAddr, stop: CancellationToken) {
    let without = "nobody can ask how Services are routed here";
    answer(address, Arc::new(of_proxy), without, stop).await;
}

/// A port that another process has, such as a kube-proxy of a node that was another's before, is
/// tried again.
async fn answer(address: SocketAddr, ask: Ask, without: &str, stop: CancellationToken) {
    let mut is_told = false;
    let listener = loop {
        let bound = if address.ip() == Ipv4Addr::UNSPECIFIED {
            bind_any(address.port()).await
        } else {
            TcpListener::bind(address).await
        };
        match bound {
            Ok(listener) => break listener,
            Err(error) if !std::mem::replace(&mut is_told, true) => {
                tracing::warn!(%address, %error, "{without}");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY) => {}
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = accept(listener, ask) => {}
    }
}

async fn accept(listener: TcpListener, ask: Ask) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let ask = ask.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = ask(request.uri().path());
                async move { Ok::<_, Infallible>(respond(answer)) }
            });
            let mut builder = serving::builder().http1_only();
            builder.http1().keep_alive(false);
            let served = builder.serve_connection(TokioIo::new(stream), service);
            // How it ends concerns nobody.
            let _ = tokio::time::timeout(CONNECTION_MAX, served).await;
            drop(place);
        });
    }
}

fn respond(answer: Option<Answer>) -> Response<Full<Bytes>> {
    let Some(answer) = answer else {
        let mut response = Response::new(Full::new(Bytes::from_static(b"404 page not found\n")));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response = Response::new(Full::new(answer.body.into()));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static(answer.content_type);
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    if let Some(weight) = answer.weight {
        headers.insert("x-load-balancing-endpoint-weight", weight.into());
    }
    response
}

#[cfg(test)]
mod tests;
