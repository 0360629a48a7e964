//! `pods/portforward`: connections of a client to ports inside of a pod.
//!
//! Each connection is a pair of streams, for the bytes and for what went wrong. They come over
//! SPDY, itself over HTTP/1.1 or carried in a WebSocket, or over the older channels of a WebSocket,
//! where the ports are fixed in the request. The pod's node dials inside of the pod's network.

mod channels; // Fixed ports over WebSocket channels.
mod speech; // Channels in messages. Pure.
mod streams; // Any ports over SPDY.

use super::websocket::{self, Upgrade};
use super::{Place, Streams, spdy};
use crate::authenticate::User;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::tunnel::{Body, DialError, Dialled, Tunnels};
use coracle_api::status::Status;
use http::Response;
use http::request::Parts;
use hyper_util::rt::TokioIo;
use std::net::Ipv4Addr;

/// The subprotocol of streams, and of a WebSocket that carries SPDY.
const STREAMS: &str = "portforward.k8s.io";
const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";

/// The pod whose ports are forwarded.
#[derive(Clone, Debug)]
struct Pod {
    place: Place,
    tunnels: Tunnels,
}

impl Pod {
    async fn dial(&self, port: u16) -> Result<Dialled, DialError> {
        let place = &self.place;
        let name = format!("{}/{}/{}", place.namespace, place.pod, place.uid);
        let address = (Ipv4Addr::LOCALHOST, port).into();
        self.tunnels.dial(&place.node, address, Some(&name)).await
    }

    /// In the kubelet's words.
    fn failure(&self, port: u16, error: &dyn std::fmt::Display) -> String {
        let Place { pod, uid, .. } = &self.place;
        format!("error forwarding port {port} to pod {pod}, uid {uid}: {error}")
    }
}

impl Streams {
    pub(super) fn port_forward(
        &self,
        mut request: Parts,
        info: &RequestInfo,
        user: &User,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        self.check_create(user, info)?;
        let place = self.pod(info)?;
        if place.node.is_empty() {
            let why = format!("pod {} does not have a host assigned", info.name);
            return Err(Status::bad_request(why));
        }
        self.expect_connected(&place.node)?;
        let pod = Pod {
            place,
            tunnels: self.tunnels.clone(),
        };
        if websocket::is_asked(&request.headers) {
            if websocket::offers(&request.headers, TUNNELLED) {
                let upgrade = Upgrade::negotiate(&mut request, &[TUNNELLED])?;
                let response = upgrade.response();
                tokio::spawn(streams::in_websocket(upgrade, pod));
                return Ok(response);
            }
            let ports = channels::ports(query)?;
            let upgrade = Upgrade::negotiate(&mut request, channels::PROTOCOLS)?;
            let response = upgrade.response();
            tokio::spawn(channels::run(upgrade, pod, ports));
            return Ok(response);
        }
        if !spdy::is_asked(&request.headers) {
            return Err(Status::bad_request("Upgrade request required"));
        }
        let upgrade = match spdy::negotiate(&mut request, &[STREAMS]) {
            Ok(upgrade) => upgrade,
            Err(refused) => return Ok(*refused),
        };
        let response = upgrade.response();
        tokio::spawn(async move {
            if let Ok(connection) = upgrade.connection.await {
                streams::run(TokioIo::new(connection), pod).await;
            }
        });
        Ok(response)
    }
}
