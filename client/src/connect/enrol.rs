//! The first contact of a node: fetches the server's CA and checks it against the token's hash.
//!
//! Nothing secret is sent, and nothing that comes back is believed but the one certificate whose
//! hash was known before. Afterwards that certificate is pinned.

use bytes::Bytes;
use coracle_api::der;
use http::header::{HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::dial::{DialError, dial};
use super::{Endpoint, Identity, Trust};

/// A chain of a few certificates; more than this is not one.
const BODY_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the server broke off")]
    Http(#[from] hyper::Error),
    #[error("the request cannot be made")]
    Request(#[from] http::Error),
    #[error("the server answered {0} when asked for its certificate authority")]
    Refused(StatusCode),
    #[error("the server's answer is cut off or too long")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the server's certificate authority is not the one that the token names")]
    OtherAuthority,
}

/// Gets `path` from the server, whoever that is, and returns in PEM the certificate of which
/// `sha256` is the hash of the DER form.
pub async fn fetch_pinned_ca(
    endpoint: &Endpoint,
    path: &str,
    sha256: &[u8; 32],
) -> Result<String, EnrolError> {
    let mut stranger = endpoint.clone().with_identity(Identity::anonymous());
    stranger.trust = Trust::Anybody;
    let work = fetch(&stranger, path);
    let body = tokio::time::timeout(stranger.timeouts.response, work)
        .await
        .unwrap_or(Err(EnrolError::Timeout))?;
    let matches = |certificate: &CertificateDer<'_>| {
        ring::digest::digest(&ring::digest::SHA256, certificate).as_ref() == sha256
    };
    CertificateDer::pem_slice_iter(&body)
        .flatten()
        .find(matches)
        .map(|certificate| der::certificate_pem(&certificate))
        .ok_or(EnrolError::OtherAuthority)
}

async fn fetch(endpoint: &Endpoint, path: &str) -> Result<Bytes, EnrolError> {
    let stream = dial(endpoint, &[b"http/1.1"]).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the response; its errors reach us through the response too.
    tokio::spawn(connection);
    let request = Request::get(path)
        .header(
            HOST,
            endpoint
                .url
                .authority()
                .map_or("", |authority| authority.as_str()),
        )
        .header(USER_AGENT, super::USER_AGENT)
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    if response.status() != StatusCode::OK {
        return Err(EnrolError::Refused(response.status()));
    }
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    Ok(body.map_err(EnrolError::Body)?.to_bytes())
}
