//! Answers one request.

use super::answer::{Body, refuse};
use super::request::{Query, Route, route};
use super::{configz, dial, exec, health, logs, node_logs, numbers, pods};
use crate::pods::state::Observed;
use crate::pods::{is_static, observe};
use crate::stats::Stats;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Server {
    pub stats: Arc<Stats>,
}

impl Server {
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.method() == Method::CONNECT {
            return dial::answer(self, request).await;
        }
        let query = Query::parse(request.uri());
        let Some(route) = route(request.uri()) else {
            return refuse(StatusCode::NOT_FOUND, "404 page not found");
        };
        if !takes(&route, request.method()) {
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
            Route::Off(why) => refuse(StatusCode::METHOD_NOT_ALLOWED, format!("{why}\n")),
            Route::Run(command) => exec::run(self, &command, &query).await,
            Route::Logs {
                namespace,
                pod,
                container,
            } => logs::answer(self, &namespace, &pod, &container, &query).await,
            Route::Exec(command) => exec::exec(self, &command, &query, request.into_body()).await,
            Route::Attach(command) => {
                exec::attach(self, &command, &query, request.into_body()).await
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

/// Commands are posted: whoever may only read must not run any.
fn takes(route: &Route, method: &Method) -> bool {
    match route {
        Route::Exec(_) | Route::Attach(_) | Route::Run(_) => *method == Method::POST,
        Route::Summary => [Method::GET, Method::POST].contains(method),
        Route::Off(_) => true,
        _ => [Method::GET, Method::HEAD].contains(method),
    }
}

#[cfg(test)]
mod tests;
