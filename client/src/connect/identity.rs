//! Who we are to a server: a client certificate, a bearer token, both, or nobody yet.
//!
//! An identity is a shared cell: setting a new certificate or token changes it for every client
//! that was made with it. Keys and tokens never show in `Debug`.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::RwLock;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::Instant;

/// How often a token file is read again; upstream rotates such tokens within the hour.
const TOKEN_FILE_PERIOD: Duration = Duration::from_secs(60);

/// Cheap to clone; clones are the same identity.
#[derive(Clone, Default)]
pub struct Identity {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    certificate: RwLock<Option<Arc<CertifiedKey>>>,
    token: RwLock<Token>,
    /// Counts certificates, so that connections made with an older one are replaced.
    generation: AtomicU64,
}

#[derive(Default)]
enum Token {
    #[default]
    None,
    Fixed(HeaderValue),
    File {
        path: PathBuf,
        read: Option<(HeaderValue, Instant)>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("the client certificate is not PEM")]
    Certificate(#[source] rustls_pki_types::pem::Error),
    #[error("the client certificate is empty")]
    Empty,
    #[error("the client key is not PEM")]
    Key(#[source] rustls_pki_types::pem::Error),
    #[error("the client key does not fit its certificate or is of an unknown kind")]
    Unfit(#[source] rustls::Error),
    #[error("the token has characters that a header cannot carry")]
    Token,
}

impl Identity {
    pub fn anonymous() -> Self {
        Self::default()
    }

    pub fn from_token(token: &str) -> Result<Self, IdentityError> {
        let identity = Self::default();
        identity.set_token(Some(token))?;
        Ok(identity)
    }

    /// A token that is read again from its file from time to time.
    pub fn from_token_file(path: PathBuf) -> Self {
        let identity = Self::default();
        *identity.shared.token.write() = Token::File { path, read: None };
        identity
    }

    pub fn from_certificate(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, IdentityError> {
        let identity = Self::default();
        identity.set_certificate(certificate_pem, key_pem)?;
        Ok(identity)
    }

    /// Uses this certificate (with its chain) and key from the next request on.
    pub fn set_certificate(
        &self,
        certificate_pem: &[u8],
        key_pem: &[u8],
    ) -> Result<(), IdentityError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate_pem)
            .collect::<Result<_, _>>()
            .map_err(IdentityError::Certificate)?;
        if chain.is_empty() {
            return Err(IdentityError::Empty);
        }
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(IdentityError::Key)?;
        let provider = rustls::crypto::ring::default_provider();
        let certified =
            CertifiedKey::from_der(chain, key, &provider).map_err(IdentityError::Unfit)?;
        *self.shared.certificate.write() = Some(Arc::new(certified));
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Uses this token, or none, from the next request on.
    pub fn set_token(&self, token: Option<&str>) -> Result<(), IdentityError> {
        let token = match token {
            None => Token::None,
            Some(token) => Token::Fixed(bearer(token)?),
        };
        *self.shared.token.write() = token;
        Ok(())
    }

    pub fn has_certificate(&self) -> bool {
        self.shared.certificate.read().is_some()
    }

    pub(super) fn resolver(&self) -> Arc<dyn rustls::client::ResolvesClientCert> {
        self.shared.clone()
    }

    pub(super) fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// The value of the `Authorization` header, if there is a token.
    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        match &*self.shared.token.read() {
            Token::None => return None,
            Token::Fixed(value) => return Some(value.clone()),
            Token::File {
                read: Some((value, at)),
                ..
            } if at.elapsed() < TOKEN_FILE_PERIOD => {
                return Some(value.clone());
            }
            Token::File { .. } => {}
        }
        self.read_token_file()
    }

    /// A file that cannot be read keeps the token it had.
    fn read_token_file(&self) -> Option<HeaderValue> {
        let mut token = self.shared.token.write();
        let Token::File { path, read } = &mut *token else {
            return None;
        };
        match std::fs::read_to_string(&*path) {
            Ok(text) => {
                if let Ok(value) = bearer(text.trim()) {
                    *read = Some((value, Instant::now()));
                }
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), error = %error, "cannot read the token");
            }
        }
        read.as_ref().map(|(value, _)| value.clone())
    }
}

fn bearer(token: &str) -> Result<HeaderValue, IdentityError> {
    let mut value =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| IdentityError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

impl Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("certificate", &self.has_certificate())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

impl Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl rustls::client::ResolvesClientCert for Shared {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _schemes: &[rustls::SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.certificate.read().clone()
    }

    fn has_certs(&self) -> bool {
        self.certificate.read().is_some()
    }
}
