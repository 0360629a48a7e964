//! Connections of a client to ports inside of a pod.
//!
//! Each connection is a pair of streams, for the bytes and for what went wrong. They come over
//! SPDY, itself over HTTP/1.1 or carried in a WebSocket, or over the older channels of a WebSocket,
//! where the ports are fixed in the request. Who makes the connection is the pod's own matter.

mod channels; // Fixed ports over WebSocket channels.
mod speech; // Channels in messages. Pure.
mod streams; // Any ports over SPDY.

use crate::Body;
use crate::spdy::{self, Negotiated};
use crate::websocket::{self, Upgrade};
use coracle_api::status::Status;
use futures::future::BoxFuture;
use http::Response;
use http::request::Parts;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// The subprotocol of streams, and of a WebSocket that carries SPDY.
const STREAMS: &str = "portforward.k8s.io";
const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";

/// A connection to a port of a pod.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Connects to a port inside of a pod's network, or says why not.
pub trait Dial: Send + Sync + 'static {
    fn dial(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Connection>, String>>;
}

/// The pod whose ports are forwarded.
#[derive(Clone)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub network: Arc<dyn Dial>,
}

impl std::fmt::Debug for Pod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pod")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Pod {
    /// In the kubelet's words when it fails.
    async fn dial(&self, port: u16) -> Result<Box<dyn Connection>, String> {
        let Self { name, uid, network } = self;
        let dialled = network.dial(port).await;
        dialled.map_err(|error| {
            format!("error forwarding port {port} to pod {name}, uid {uid}: {error}")
        })
    }
}

/// Answers a request that upgrades to forwarded ports. `ports` are those of the query, which the
/// older channels need.
pub fn answer(request: &mut Parts, ports: &[String], pod: Pod) -> Result<Response<Body>, Status> {
    if websocket::is_asked(&request.headers) {
        if websocket::offers(&request.headers, TUNNELLED) {
            let upgrade = Upgrade::negotiate(request, &[TUNNELLED])?;
            let response = upgrade.response();
            tokio::spawn(streams::in_websocket(upgrade, pod));
            return Ok(response);
        }
        let ports = channels::ports(ports)?;
        let upgrade = Upgrade::negotiate(request, channels::PROTOCOLS)?;
        let response = upgrade.response();
        tokio::spawn(channels::run(upgrade, pod, ports));
        return Ok(response);
    }
    if !spdy::is_asked(&request.headers) {
        return Err(Status::bad_request("Upgrade request required"));
    }
    let upgrade = match spdy::negotiate(request, &[STREAMS])? {
        Negotiated::Agreed(upgrade) => upgrade,
        Negotiated::Refused(response) => return Ok(*response),
    };
    let response = upgrade.response();
    tokio::spawn(async move {
        if let Ok(connection) = upgrade.connection.await {
            streams::run(TokioIo::new(connection), pod).await;
        }
    });
    Ok(response)
}
