//! Documents from elsewhere: one GET over TLS, bounded in time, size and redirects.
//!
//! For what an issuer of tokens publishes. Whom to trust is the caller's to say.

mod dial; // Names to addresses, connections over TLS.
mod trust; // Whose certificates are taken.

use bytes::Bytes;
use http::header::{CONNECTION, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

pub use dial::{DialError, dial};
pub use trust::{TrustError, trusting, verifier};

/// Upstream's bound on all of it.
const TIME_MAX: Duration = Duration::from_secs(30);
/// A set of keys is some kilobytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;
const REDIRECTS_MAX: usize = 5;
const AGENT: &str = concat!("coracle/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{0:?} is no https URL")]
    Url(String),
    #[error("Get {url:?}: {source}")]
    Dial { url: String, source: DialError },
    #[error("Get {url:?}: {source}")]
    Http { url: String, source: hyper::Error },
    #[error("Get {url:?}: {status}")]
    Status { url: String, status: StatusCode },
    #[error("Get {url:?}: the answer cannot be read or is larger than {BODY_BYTES_MAX} bytes")]
    Body { url: String },
    #[error("Get {url:?}: stopped after {REDIRECTS_MAX} redirects")]
    Redirects { url: String },
    #[error("Get {url:?}: no answer within {} seconds", TIME_MAX.as_secs())]
    Timeout { url: String },
}

pub async fn get(tls: &Arc<ClientConfig>, url: &str) -> Result<Bytes, FetchError> {
    let following = Box::pin(follow(tls, url));
    let timeout = |_| FetchError::Timeout {
        url: url.to_owned(),
    };
    tokio::time::timeout(TIME_MAX, following)
        .await
        .map_err(timeout)?
}

async fn follow(tls: &Arc<ClientConfig>, url: &str) -> Result<Bytes, FetchError> {
    let mut at = url.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        match once(tls, &at).await? {
            Answer::Body(body) => return Ok(body),
            Answer::Elsewhere(next) => at = next,
        }
    }
    let url = url.to_owned();
    Err(FetchError::Redirects { url })
}

enum Answer {
    Body(Bytes),
    Elsewhere(String),
}

async fn once(tls: &Arc<ClientConfig>, url: &str) -> Result<Answer, FetchError> {
    let bad = || FetchError::Url(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let authority = uri.authority().ok_or_else(bad)?;
    if uri.scheme_str() != Some("https") {
        return Err(bad());
    }
    let dialled = dial::dial(tls, authority.host(), authority.port_u16().unwrap_or(443));
    let stream = dialled.await.map_err(|source| FetchError::Dial {
        url: url.to_owned(),
        source,
    })?;
    let http = |source| FetchError::Http {
        url: url.to_owned(),
        source,
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(http)?;
    let driving = tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, authority.as_str())
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|_| bad())?;
    let response = sender.send_request(request).await.map_err(http)?;
    let (head, body) = response.into_parts();
    if head.status.is_redirection()
        && let Some(next) = location(&head.headers, url)
    {
        driving.abort();
        return Ok(Answer::Elsewhere(next));
    }
    if head.status != StatusCode::OK {
        driving.abort();
        return Err(FetchError::Status {
            url: url.to_owned(),
            status: head.status,
        });
    }
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    driving.abort();
    let body = body.map_err(|_| FetchError::Body {
        url: url.to_owned(),
    })?;
    Ok(Answer::Body(body.to_bytes()))
}

/// Where a redirect leads, seen from where it is (RFC 3986, 5).
fn location(headers: &HeaderMap, from: &str) -> Option<String> {
    let next = headers.get(LOCATION)?.to_str().ok()?;
    if next.is_empty() {
        return None;
    }
    let next = Url::parse(from).ok()?.join(next).ok()?;
    Some(next.into())
}

#[cfg(test)]
pub mod tests;
