//! The kubelet's own port, for an API server that dials its nodes: TLS, and every request
//! authenticated and authorized by that server before it is answered as those of the tunnel are.
//!
//! Not there in the usual mode: a node of ours listens nowhere. Knows nothing of the endpoints but
//! the right that each asks for. Who shows neither a certificate nor a token gets 401 and nothing
//! else.

mod rights; // What a path asks for. Pure.

use crate::stream::{Body, Server, Way, refuse};
use crate::{AgentError, Config};
use coracle_client::port::{Access, Asked, Caller, Fresh, Guest, Parts, Service};
pub use coracle_client::port::{Serving, Source};
use coracle_streams::serving;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use rights::Right;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// For as long as upstream's kubelet keeps them.
const FRESH: Fresh = Fresh {
    token: Duration::from_secs(2 * 60),
    allowed: Duration::from_secs(5 * 60),
    refused: Duration::from_secs(30),
};

pub type Port = coracle_client::port::Port<Node>;

/// Taken before the node is told of anywhere, so that a port in use is found out first. None in the
/// usual mode.
pub async fn bind(config: &Config) -> Result<Option<TcpListener>, AgentError> {
    let Some(joining) = &config.joining else {
        return Ok(None);
    };
    let any = match config.node_ips.first() {
        Some(IpAddr::V6(_)) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    let address = SocketAddr::new(any, joining.port);
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(source) => Err(AgentError::Listen { address, source }),
    }
}

pub fn new(
    tcp: TcpListener,
    clients: Source,
    serving: Arc<Serving>,
    server: Server,
) -> Result<Port, AgentError> {
    let context = &server.stats.context;
    let clock = context.clock.clone();
    let parts = Parts {
        tcp,
        http: serving::builder(),
        clients: Some(clients),
        serving,
        clock: clock.clone(),
        service: Node {
            access: Access::new(context.client.clone(), clock, FRESH),
            server,
        },
    };
    Port::new(parts).map_err(AgentError::Tls)
}

/// What is served on the port.
pub struct Node {
    server: Server,
    access: Access,
}

impl Service for Node {
    type Body = Body;

    async fn answer(
        &self,
        request: Request<Incoming>,
        certified: Option<Caller>,
        guest: &Guest,
    ) -> Response<Body> {
        let caller = match certified {
            Some(caller) => Some(caller),
            None => self
                .access
                .authenticate(request.headers())
                .await
                .ok()
                .flatten(),
        };
        let Some(caller) = caller else {
            return refuse(StatusCode::UNAUTHORIZED, "Unauthorized");
        };
        let right = Right::of(request.method(), request.uri().path());
        match self.allows(&caller, right).await {
            Ok(true) => {
                guest.let_in();
                self.server.answer(request, Way::Port).await
            }
            Ok(false) => {
                let text = format!(
                    "Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])\n",
                    caller.name,
                    right.verb,
                    right.subresources.join(" ")
                );
                refuse(StatusCode::FORBIDDEN, text)
            }
            Err(error) => {
                tracing::warn!(%error, user = caller.name, "the server does not authorize");
                let text = format!(
                    "Authorization error (user={}, verb={}, resource=nodes, subresource={})",
                    caller.name, right.verb, right.subresources[0]
                );
                refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        }
    }
}

impl Node {
    /// Whether the verb is allowed on one of the subresources of this node.
    async fn allows(&self, caller: &Caller, right: Right) -> Result<bool, kube::Error> {
        for subresource in right.subresources {
            let asked = Asked::Node {
                name: self.server.stats.node_name.clone(),
                verb: right.verb,
                subresource,
            };
            if self.access.allows(caller, asked).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
