//! Answers one request.

use super::answer::{Body, refuse};
use super::request::{Query, Route, route};
use super::{configz, dial, health, local_volumes, logs, node_logs, numbers, pods, sessions};
use crate::pods::state::Observed;
use crate::pods::{is_static, observe};
use crate::stats::Stats;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// The connection that the node dialled: a server of ours, which speaks frames.
    Tunnel,
    /// A connection to the node's own port: clients of the kubelet, who upgrade to streams.
    Port,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub stats: Arc<Stats>,
}

impl Server {
    pub async fn answer(&self, request: Request<Incoming>, way: Way) -> Response<Body> {
        if request.method() == Method::CONNECT && way == Way::Tunnel {
            return dial::answer(self, request).await;
        }
        let query = Query::parse(request.uri());
        let Some(route) = route(request.uri()) else {
            return refuse(StatusCode::NOT_FOUND, "404 page not found");
        };
        if !takes(&route, request.method(), way) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed");
        }
        match route {
            Route::Health(check) => {
                health::answer(self, &check, query.get("verbose").is_some()).await
            }
            Route::Pods => pods::bound(self),
            Route::RunningPods => pods::running(self).await,
            Route::Configz => configz::answer(self),
            Route::Summary => numbers::summary(self, &query).await,
            Route::Metrics(metrics) => numbers::metrics(self, metrics).await,
            Route::NodeLogs(path) => node_logs::answer(path).await,
            Route::LocalVolume(name) => local_volumes::remove(self, name).await,
            Route::Off(why) => refuse(StatusCode::METHOD_NOT_ALLOWED, format!("{why}\n")),
            Route::Run(command) => super::exec::run(self, &command, &query).await,
            Route::Logs {
                namespace,
                pod,
                container,
            } => logs::answer(self, &namespace, &pod, &container, &query).await,
            Route::Exec(_) | Route::Attach(_) | Route::PortForward { .. } => {
                let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
                sessions::answer(self, route, &query, request, way).await
            }
        }
    }

    /// The pod of a name, and of a uid if one is given, with what the runtime has of it.
    pub async fn find(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(Arc<Pod>, Observed), Response<Body>> {
        let pod = self.stats.pods.list().into_iter().find(|pod| {
            let meta = &pod.metadata;
            meta.namespace.as_deref() == Some(namespace)
                && meta.name.as_deref() == Some(name)
                && (uid.is_empty() || meta.uid.as_deref() == Some(uid) || is_static(pod))
        });
        let Some(pod) = pod else {
            let text = format!("pod {namespace}/{name} does not exist on this node");
            return Err(refuse(StatusCode::NOT_FOUND, text));
        };
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        match observe(self.stats.context.runtime.as_ref(), uid).await {
            Ok(observed) => Ok((pod, observed)),
            Err(error) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        }
    }
}

/// Commands are posted: whoever may only read must not run any. A WebSocket begins with a GET; who
/// may ask for one on the node's own port was decided by what it asks for, not by its method.
fn takes(route: &Route, method: &Method, way: Way) -> bool {
    match route {
        Route::Exec(_) | Route::Attach(_) | Route::PortForward { .. } if way == Way::Port => {
            [Method::GET, Method::POST].contains(method)
        }
        Route::Exec(_) | Route::Attach(_) | Route::Run(_) => *method == Method::POST,
        Route::Summary => [Method::GET, Method::POST].contains(method),
        Route::LocalVolume(_) => *method == Method::DELETE,
        Route::Off(_) => true,
        _ => [Method::GET, Method::HEAD].contains(method),
    }
}

#[cfg(test)]
mod tests;
