//! rustls' configuration, and the check of client certificates.
//!
//! As upstream, the handshake takes any client certificate whose key the client proves to hold;
//! whether our CA signed it is judged afterwards, so that a client with a certificate that ended
//! reads a clear 401 and not a broken connection. Certificates of X.509's first version count too:
//! `openssl x509 -req` makes them when it is told of no extensions. webpki knows the third alone.

use super::PkiError;
use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;
use x509_parser::oid_registry::OID_PKCS1_SHA1WITHRSA;
use x509_parser::x509::X509Version;

pub fn server_config(certificate: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, PkiError> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(AnyClient { provider }))
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Judges client certificates against the CA.
#[derive(Clone, Debug)]
pub struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
    ca: CertificateDer<'static>,
}

impl ClientCertificates {
    pub fn new(ca: &CertificateDer<'static>) -> Result<Self, PkiError> {
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone())?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self {
            verifier,
            ca: ca.clone(),
        })
    }

    /// True when the CA signed the first of `chain` for a client, and it is in force now.
    pub fn vouches(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> bool {
        let Some((own, intermediates)) = chain.split_first() else {
            return false;
        };
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let verified = self.verifier.verify_client_cert(own, intermediates, at);
        verified.is_ok() || self.vouches_for_first_version(own, now)
    }

    /// A certificate of the first version says nothing of its use: it is for any.
    fn vouches_for_first_version(&self, own: &CertificateDer<'_>, now: Timestamp) -> bool {
        let (Ok((_, own)), Ok((_, ca))) = (
            x509_parser::parse_x509_certificate(own),
            x509_parser::parse_x509_certificate(&self.ca),
        ) else {
            return false;
        };
        let validity = own.validity();
        let in_force = validity.not_before.timestamp()..=validity.not_after.timestamp();
        own.version() == X509Version::V1
            && own.issuer().as_raw() == ca.subject().as_raw()
            && in_force.contains(&now.as_second())
            && own.signature_algorithm.algorithm != OID_PKCS1_SHA1WITHRSA
            && own.verify_signature(Some(ca.public_key())).is_ok()
    }
}

/// Lets every certificate through the handshake, with its signature checked.
#[derive(Debug)]
struct AnyClient {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let read = x509_parser::parse_x509_certificate(cert);
        let (_, read) = read.map_err(|_| CertificateError::BadEncoding)?;
        let key = SubjectPublicKeyInfoDer::from(read.public_key().raw);
        verify_tls13_signature_with_raw_key(message, &key, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
