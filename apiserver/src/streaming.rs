//! What streams between a client and a container: logs, exec, attach, forwarded ports.
//!
//! Finds the pod, its container and its node, and passes bytes through the node's tunnel. How
//! clients speak is in `coracle-streams`. Knows nothing of containers: the agent answers. Bounds every buffer; either end may stop at any time
//! and the other learns of it.

pub mod exec; // Exec and attach.
pub mod log; // Logs, over plain HTTP or WebSocket.
pub mod port_forward; // Connections to ports of a pod.

use crate::authenticate::User;
use crate::authorize::Authorizer;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::tunnel::{Body, TunnelError, Tunnels};
use crate::view::View;
use bytes::Bytes;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use http::Response;
use http::request::Parts;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use std::sync::Arc;

pub const LOG: &str = "log";
/// What a log comes as, or else what is wrong with it.
pub const LOG_TYPES: [&str; 4] = [
    "text/plain",
    "application/json",
    "application/yaml",
    coracle_api::protobuf::MEDIA_TYPE,
];

/// What an agent may say about a failure; the rest is cut off.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Subresources of pods that stream.
pub struct Streams {
    view: Arc<dyn View>,
    authorizer: Arc<Authorizer>,
    tunnels: Tunnels,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

/// A container and where it runs.
#[derive(Clone, Debug)]
struct Place {
    namespace: String,
    pod: String,
    uid: String,
    container: String,
    /// Empty for a pod that has no node yet.
    node: String,
}

impl Place {
    fn of(pod: &Object, container: String) -> Self {
        Self {
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
            container,
            node: pod.str(&["spec", "nodeName"]).to_owned(),
        }
    }
}

impl Streams {
    pub fn new(view: Arc<dyn View>, authorizer: Arc<Authorizer>, tunnels: Tunnels) -> Self {
        Self {
            view,
            authorizer,
            tunnels,
        }
    }

    /// Answers an authorized request for `pods/log`, `exec`, `attach` or `portforward`.
    pub async fn connect(
        &self,
        request: Parts,
        query: &Query,
        info: &RequestInfo,
        user: &User,
    ) -> Result<Response<Body>, Status> {
        match info.subresource.as_str() {
            LOG => self.log(request, info, query).await,
            "exec" => self.exec("exec", request, info, user, query),
            "attach" => self.exec("attach", request, info, user, query),
            "portforward" => self.port_forward(request, info, user, query),
            _ => Err(Status::path_not_found()),
        }
    }

    /// A stream may begin with a GET, which must not be a way around the right to create.
    fn check_create(&self, user: &User, info: &RequestInfo) -> Result<(), Status> {
        let create = RequestInfo {
            verb: "create".to_owned(),
            ..info.clone()
        };
        self.authorizer.check(user, &create)
    }

    fn get(&self, info: &RequestInfo) -> Result<Object, Status> {
        let (namespace, name) = (info.namespace.as_str(), info.name.as_str());
        self.view.get("", "pods", namespace, name).ok_or_else(|| {
            Status::not_found(Subject {
                group: "",
                resource: "pods",
                name,
            })
        })
    }

    /// A pod and its node, whatever the container.
    fn pod(&self, info: &RequestInfo) -> Result<Place, Status> {
        Ok(Place::of(&self.get(info)?, String::new()))
    }

    fn place(&self, info: &RequestInfo, container: &str) -> Result<Place, Status> {
        let pod = self.get(info)?;
        let container = container_of(&pod, container)?;
        Ok(Place::of(&pod, container))
    }

    fn expect_connected(&self, node: &str) -> Result<(), Status> {
        if self.tunnels.is_connected(node) {
            return Ok(());
        }
        Err(TunnelError::NotConnected(node.to_owned()).into())
    }
}

/// The container asked for, or the only one.
fn container_of(pod: &Object, asked: &str) -> Result<String, Status> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let names: Vec<&str> = lists
        .iter()
        .flat_map(|list| pod.list(&["spec", list]))
        .map(|container| json::text(container, "name"))
        .collect();
    if !asked.is_empty() {
        if names.contains(&asked) {
            return Ok(asked.to_owned());
        }
        return Err(Status::bad_request(format!(
            "container {asked} is not valid for pod {}",
            pod.name()
        )));
    }
    match pod.list(&["spec", "containers"]) {
        [only] => Ok(json::text(only, "name").to_owned()),
        [] => Err(Status::bad_request(format!(
            "a container name must be specified for pod {}",
            pod.name()
        ))),
        _ => Err(Status::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            pod.name(),
            names.join(" ")
        ))),
    }
}

/// An agent's refusal as the Status that upstream makes of the kubelet's.
async fn refusal(response: Response<Incoming>, subresource: &str, name: &str) -> Status {
    let code = response.status().as_u16();
    let body = Limited::new(response.into_body(), ERROR_BYTES_MAX);
    let text = match body.collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let resource = format!("pods/{subresource}");
    let details = serde_json::json!({ "name": name, "kind": resource });
    let about = |reason: &'static str, message: &str| Status {
        code,
        reason: reason.into(),
        message: format!("{message} ( {resource} {name})"),
        details: details.clone(),
    };
    match code {
        400 => Status::bad_request(text),
        404 => about(
            "NotFound",
            "the server could not find the requested resource",
        ),
        500 => Status::internal(text),
        503 => about(
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        code if code > 500 => about(
            "InternalError",
            &format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        ),
        code => about(
            "",
            &format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            ),
        ),
    }
}

fn full(bytes: impl Into<Bytes>) -> Body {
    http_body_util::Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

#[cfg(test)]
mod tests;
