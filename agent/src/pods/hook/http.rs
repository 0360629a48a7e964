//! One HTTP request, or one TCP connection, as probes and hooks make them.
//!
//! Certificates are not checked: a pod vouches for itself. Redirects count as success.

use bytes::Bytes;
use coracle_client::connect::{Identity, Trust, tls_config};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Of an answer, as upstream bounds it.
const BODY_BYTES_MAX: usize = 10 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("Get {url:?}: not a URL")]
    Url { url: String },
    #[error("Get {url:?}: dial tcp {address}: connect: {}", words(source))]
    Dial {
        url: String,
        address: String,
        source: std::io::Error,
    },
    #[error("Get {url:?}: tls: {source}")]
    Tls { url: String, source: std::io::Error },
    #[error("Get {url:?}: {source}")]
    Http { url: String, source: hyper::Error },
}

/// The system's words, as Go has them: in lower case and without the number.
fn words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

/// Connects and hangs up. The error is fit for a probe's message.
pub async fn tcp(host: &str, port: u16) -> Result<(), String> {
    let connected = TcpStream::connect((host, port)).await;
    let error = |error| format!("dial tcp {host}:{port}: connect: {}", words(&error));
    connected.map(drop).map_err(error)
}

/// The status code and the first of the body.
pub async fn get(url: &str, action: &HTTPGetAction) -> Result<(u16, String), HttpError> {
    let not_a_url = || HttpError::Url {
        url: url.to_owned(),
    };
    let uri: http::Uri = url.parse().map_err(|_| not_a_url())?;
    let host = uri.host().ok_or_else(not_a_url)?;
    let bare = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = uri.port_u16().ok_or_else(not_a_url)?;
    let stream = TcpStream::connect((bare.as_str(), port)).await;
    let stream = stream.map_err(|source| HttpError::Dial {
        url: url.to_owned(),
        address: format!("{host}:{port}"),
        source,
    })?;
    if uri.scheme_str() != Some("https") {
        return ask(stream, &uri, url, action).await;
    }
    let name = ServerName::try_from(bare).map_err(|_| not_a_url())?;
    let config = tls_config(&Trust::Anybody, &Identity::anonymous(), &[b"http/1.1"]);
    let stream = TlsConnector::from(config).connect(name, stream).await;
    let stream = stream.map_err(|source| HttpError::Tls {
        url: url.to_owned(),
        source,
    })?;
    ask(stream, &uri, url, action).await
}

async fn ask<S>(
    stream: S,
    uri: &http::Uri,
    url: &str,
    action: &HTTPGetAction,
) -> Result<(u16, String), HttpError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let failed = |source| HttpError::Http {
        url: url.to_owned(),
        source,
    };
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(failed)?;
    // Ends with the answer, or with its receiver.
    let driving = tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::get(path);
    let headers = action.http_headers.as_deref().unwrap_or_default();
    let has = |name: &str| {
        headers
            .iter()
            .any(|header| header.name.eq_ignore_ascii_case(name))
    };
    if !has("host") {
        request = request.header("Host", uri.authority().map_or("", |all| all.as_str()));
    }
    if !has("user-agent") {
        request = request.header("User-Agent", "kube-probe/1.36");
    }
    if !has("accept") {
        request = request.header("Accept", "*/*");
    }
    for header in headers {
        request = request.header(&header.name, &header.value);
    }
    let request = request
        .header("Connection", "close")
        .body(Empty::<Bytes>::new())
        .map_err(|_| HttpError::Url {
            url: url.to_owned(),
        })?;
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(failed)?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    driving.abort();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
