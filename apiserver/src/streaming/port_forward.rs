//! `pods/portforward`: connections of a client to ports inside of a pod. The pod's node dials inside
//! of the pod's network.

use super::{Place, Streams};
use crate::authenticate::User;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::tunnel::{Body, Tunnels};
use coracle_api::status::Status;
use coracle_streams::ports::{self, Connection, Dial, Pod};
use futures::future::BoxFuture;
use http::Response;
use http::request::Parts;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A pod's network, as its node reaches it.
struct Network {
    place: Place,
    tunnels: Tunnels,
}

impl Dial for Network {
    fn dial(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Connection>, String>> {
        Box::pin(async move {
            let place = &self.place;
            let name = format!("{}/{}/{}", place.namespace, place.pod, place.uid);
            let address = (Ipv4Addr::LOCALHOST, port).into();
            match self.tunnels.dial(&place.node, address, Some(&name)).await {
                Ok(connection) => Ok(Box::new(connection) as Box<dyn Connection>),
                Err(error) => Err(error.to_string()),
            }
        })
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
        let asked: Vec<String> = query.all("ports").map(str::to_owned).collect();
        let pod = Pod {
            name: place.pod.clone(),
            uid: place.uid.clone(),
            network: Arc::new(Network {
                place,
                tunnels: self.tunnels.clone(),
            }),
        };
        ports::answer(&mut request, &asked, pod)
    }
}
