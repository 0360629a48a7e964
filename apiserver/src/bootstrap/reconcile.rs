//! Brings the stored roles and bindings in line with the facts, as a client of the API.
//!
//! Runs at each start before the server serves others. Running twice is harmless; what another
//! server wrote in between is left to it.

use super::{Step, objects, path, plan};
use bytes::Bytes;
use coracle_api::object::Object;
use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tower::{Service, ServiceExt};

/// Requests under way at a time: enough that one flush of the store carries many of them, which
/// is what a first start waits for on a flash card.
const AT_ONCE: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error("{method} {path} was answered with {status}: {message}")]
    Refused {
        method: Method,
        path: String,
        status: StatusCode,
        message: String,
    },
    #[error("{method} {path} failed: {why}")]
    Failed {
        method: Method,
        path: String,
        why: String,
    },
}

/// Creates what is missing and mends what lacks something; returns how many were written.
/// `api` must act as somebody in `system:masters`. The namespaces kube-system and kube-public
/// must be there.
pub async fn reconcile<S, B>(api: S) -> Result<usize, ReconcileError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let answers = futures::stream::iter(objects())
        .map(|wanted| one(api.clone(), wanted))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let mut written = 0;
    for answer in answers {
        written += usize::from(answer?);
    }
    Ok(written)
}

/// True when it wrote.
async fn one<S, B>(api: S, wanted: Object) -> Result<bool, ReconcileError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let (own, all) = (path(&wanted, true), path(&wanted, false));
    let (status, found) = send(&api, Method::GET, &own, None).await?;
    if status == StatusCode::NOT_FOUND {
        write(&api, Method::POST, &all, Some(&wanted)).await?;
        return Ok(true);
    }
    let existing = serde_json::from_slice(&found)
        .ok()
        .and_then(Object::from_value)
        .filter(|_| status.is_success())
        .ok_or_else(|| refused(Method::GET, &own, status, &found))?;
    match plan(&existing, &wanted) {
        Step::Nothing => return Ok(false),
        Step::Update(merged) => write(&api, Method::PUT, &own, Some(&merged)).await?,
        Step::Recreate => {
            write(&api, Method::DELETE, &own, None).await?;
            write(&api, Method::POST, &all, Some(&wanted)).await?;
        }
    }
    Ok(true)
}

async fn write<S, B>(
    api: &S,
    method: Method,
    path: &str,
    object: Option<&Object>,
) -> Result<(), ReconcileError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let (status, answer) = send(api, method.clone(), path, object).await?;
    // Somebody else was faster.
    if status.is_success() || status == StatusCode::CONFLICT {
        return Ok(());
    }
    Err(refused(method, path, status, &answer))
}

/// One request; gives back the status and the body.
pub(crate) async fn send<S, B>(
    api: &S,
    method: Method,
    path: &str,
    object: Option<&Object>,
) -> Result<(StatusCode, Bytes), ReconcileError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let failed = |why: String| ReconcileError::Failed {
        method: method.clone(),
        path: path.to_owned(),
        why,
    };
    let body = match object {
        Some(object) => serde_json::to_vec(object.root()).map_err(|e| failed(e.to_string()))?,
        None => Vec::new(),
    };
    let request = Request::builder()
        .method(method.clone())
        .uri(path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|e| failed(e.to_string()))?;
    let response = api
        .clone()
        .oneshot(request)
        .await
        .map_err(|e| failed(e.to_string()))?;
    let status = response.status();
    let body = response.into_body().collect().await;
    Ok((status, body.map_err(|e| failed(e.to_string()))?.to_bytes()))
}

pub(crate) fn refused(
    method: Method,
    path: &str,
    status: StatusCode,
    answer: &[u8],
) -> ReconcileError {
    let message = serde_json::from_slice::<serde_json::Value>(answer)
        .ok()
        .and_then(|status| status["message"].as_str().map(str::to_owned))
        .unwrap_or_else(|| String::from_utf8_lossy(answer).into_owned());
    ReconcileError::Refused {
        method,
        path: path.to_owned(),
        status,
        message,
    }
}
