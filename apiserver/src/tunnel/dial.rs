//! Connections that a node makes for the server, to a pod or to anything that the node reaches:
//! `CONNECT` over the node's tunnel.

use super::{Body, TunnelError, Tunnels};
use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;

/// Names the pod in whose network the node dials, as `namespace/name/uid`.
pub const POD_HEADER: &str = "coracle-pod";
/// What a node may say about a failure; the rest is cut off.
const ERROR_BYTES_MAX: usize = 4 * 1024;

/// A connection that a node made: reads and writes go through its tunnel.
pub type Dialled = TokioIo<Upgraded>;

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// In the node's words.
    #[error("{0}")]
    Refused(String),
    #[error("the node's connection broke off")]
    Broken(#[from] hyper::Error),
    #[error("the request cannot be made")]
    Request(#[from] http::Error),
}

impl Tunnels {
    /// Has a node connect to an address; with a pod, to a port of it inside its own network.
    pub async fn dial(
        &self,
        node: &str,
        address: SocketAddr,
        pod: Option<&str>,
    ) -> Result<Dialled, DialError> {
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .version(Version::HTTP_2)
            .uri(address.to_string());
        if let Some(pod) = pod {
            request = request.header(POD_HEADER, pod);
        }
        let nothing: Body = Empty::<Bytes>::new()
            .map_err(|never| match never {})
            .boxed_unsync();
        let answer = self.request(node, request.body(nothing)?).await?;
        if answer.status().is_success() {
            return Ok(TokioIo::new(hyper::upgrade::on(answer).await?));
        }
        let body = Limited::new(answer.into_body(), ERROR_BYTES_MAX).collect();
        let text = match body.await {
            Ok(body) => String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        Err(DialError::Refused(text))
    }
}
