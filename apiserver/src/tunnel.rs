//! The nodes' connections: each agent dials in, the connection is turned around, and requests for
//! its pods go back over it as HTTP/2.
//!
//! One connection a node; the newest wins, and what an older one still streams goes on until it
//! ends. Whether a caller may have what they ask of a node was decided before.

mod dial; // Connections that a node makes for us.
mod upgrade; // From an HTTP/1.1 request to a connection that is ours to send on.

use bytes::Bytes;
use coracle_api::status::Status;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub use dial::{DialError, Dialled, POD_HEADER};
pub use upgrade::PROTOCOL;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body that streams to or from a node.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A node whose pings stay unanswered this long is cut off. Together with the interval it is what
/// a request to a dead node waits at most.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Until the head of an answer: the agent answers before it starts to stream.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    #[error("node {0:?} is not connected")]
    NotConnected(String),
    #[error("node {0:?} did not answer in time")]
    Timeout(String),
    #[error("the connection to node {node:?} failed")]
    Failed { node: String, source: hyper::Error },
}

impl From<TunnelError> for Status {
    fn from(error: TunnelError) -> Self {
        let message = error.to_string();
        match error {
            TunnelError::Timeout(_) => Status::timeout(message, 0),
            _ => Status::service_unavailable(message),
        }
    }
}

#[derive(Debug)]
struct Connection {
    id: u64,
    sender: SendRequest<Body>,
}

/// Live connections by node name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tunnels {
    connections: Arc<RwLock<BTreeMap<String, Connection>>>,
    next_id: Arc<AtomicU64>,
    shutdown: CancellationToken,
}

impl Tunnels {
    /// All connections end with `shutdown`.
    pub fn new(shutdown: CancellationToken) -> Self {
        Self {
            connections: Arc::default(),
            next_id: Arc::default(),
            shutdown,
        }
    }

    pub fn is_connected(&self, node: &str) -> bool {
        let connections = self.connections.read();
        connections
            .get(node)
            .is_some_and(|connection| !connection.sender.is_closed())
    }

    pub fn connected(&self) -> usize {
        self.connections.read().len()
    }

    /// Sends a request to a node's agent. The path is all that counts of the URI.
    pub async fn request(
        &self,
        node: &str,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, TunnelError> {
        let sender = self
            .connections
            .read()
            .get(node)
            .map(|connection| connection.sender.clone());
        let Some(mut sender) = sender.filter(|sender| !sender.is_closed()) else {
            return Err(TunnelError::NotConnected(node.to_owned()));
        };
        let failed = |source| TunnelError::Failed {
            node: node.to_owned(),
            source,
        };
        let answer = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        match tokio::time::timeout(HEAD_TIMEOUT, answer).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(TunnelError::Timeout(node.to_owned())),
        }
    }

    pub(crate) fn add(&self, node: &str, sender: SendRequest<Body>) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let connection = Connection { id, sender };
        let mut connections = self.connections.write();
        connections.insert(node.to_owned(), connection);
        id
    }

    /// Unless a newer one has taken its place.
    fn remove(&self, node: &str, id: u64) {
        let mut connections = self.connections.write();
        if connections.get(node).is_some_and(|one| one.id == id) {
            connections.remove(node);
        }
    }
}

#[cfg(test)]
mod tests;
