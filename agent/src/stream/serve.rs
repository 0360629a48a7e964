//! Answers one request.

use super::answer::{Body, full, refuse};
use super::request::{Query, Route, route};
use super::{dial, exec, logs};
use crate::pods::state::Observed;
use crate::pods::{Context, Pods, is_static, observe};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Server {
    pub context: Arc<Context>,
    pub pods: Pods,
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
        let is_session = matches!(route, Route::Exec(_) | Route::Attach(_));
        if !is_session && request.method() != Method::GET {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed");
        }
        match route {
            Route::Health => Response::new(full("ok")),
            Route::Pods => self.list(),
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

    fn list(&self) -> Response<Body> {
        let pods = self.pods.list();
        let items: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items});
        let mut response = Response::new(full(list.to_string()));
        let kind = http::HeaderValue::from_static("application/json");
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, kind);
        response
    }

    /// The pod of a name, and of a uid if one is given, with what the runtime has of it.
    pub async fn find(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(Arc<Pod>, Observed), Response<Body>> {
        let pod = self.pods.list().into_iter().find(|pod| {
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
        match observe(self.context.runtime.as_ref(), uid).await {
            Ok(observed) => Ok((pod, observed)),
            Err(error) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
