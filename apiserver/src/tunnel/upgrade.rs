//! From an HTTP/1.1 Upgrade request to a connection on which we send the requests.

use super::{Body, PING_INTERVAL, PING_TIMEOUT, Tunnels};
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use coracle_api::status::{Status, Subject};
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use hyper::client::conn::http2;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// What may wait for a stream's reader; a stream that is not read must not stop the others, so
/// the connection takes what many of them hold.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// Value of the Upgrade header.
pub const PROTOCOL: &str = "coracle-tunnel";

impl Tunnels {
    /// Answers `GET /coracle/v1/nodes/{node}/tunnel`. The connection counts from the moment on at
    /// which the 101 is sent and the agent speaks HTTP/2.
    pub fn accept(
        &self,
        mut request: Parts,
        user: &User,
        node: &str,
    ) -> Result<Response<()>, Status> {
        if user.node_name() != Some(node) && !user.in_group(MASTERS) {
            let subject = Subject {
                group: "",
                resource: "nodes",
                name: node,
            };
            let why = format!("User {:?} is not this node", user.name);
            return Err(Status::forbidden(subject, &why));
        }
        let asked = request
            .headers
            .get(UPGRADE)
            .and_then(|value| value.to_str().ok());
        if request.method != Method::GET || asked != Some(PROTOCOL) {
            let why = format!("the request must be a GET that asks to upgrade to {PROTOCOL}");
            return Err(Status::bad_request(why));
        }
        let Some(upgrade) = request.extensions.remove::<OnUpgrade>() else {
            let why = "this connection cannot be upgraded: HTTP/1.1 is needed";
            return Err(Status::bad_request(why));
        };
        tokio::spawn(self.clone().serve(node.to_owned(), upgrade));
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, "Upgrade".parse().expect("a plain word"));
        headers.insert(UPGRADE, PROTOCOL.parse().expect("a plain word"));
        Ok(response)
    }

    async fn serve(self, node: String, upgrade: OnUpgrade) {
        let upgraded = tokio::select! {
            () = self.shutdown.cancelled() => return,
            upgraded = upgrade => upgraded,
        };
        let ended = match upgraded {
            Ok(connection) => self.drive(&node, connection).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => tracing::info!(node, "the node's connection ended"),
            // An agent that stops or a link that breaks: the node dials again when it can.
            Err(error) => tracing::info!(node, %error, "the node's connection broke off"),
        }
    }

    async fn drive(&self, node: &str, connection: Upgraded) -> hyper::Result<()> {
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake::<_, Body>(connection)
            .await?;
        let id = self.add(node, sender);
        tracing::info!(node, "the node is connected");
        let ended = tokio::select! {
            () = self.shutdown.cancelled() => Ok(()),
            ended = driver => ended,
        };
        self.remove(node, id);
        ended
    }
}
