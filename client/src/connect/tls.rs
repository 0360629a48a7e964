//! Why a server is believed, and the TLS configuration that follows from it.

use std::fmt::Debug;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::Identity;

/// Where distributions keep the public authorities, in the order in which they are tried.
const SYSTEM_BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Clone)]
pub enum Trust {
    /// The server's certificate must come from one of these authorities.
    Authorities(Arc<RootCertStore>),
    /// Any certificate is taken: kubeconfig's `insecure-skip-tls-verify`, asked for by the user.
    Anybody,
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("the certificate authority is not PEM")]
    Pem(#[source] rustls_pki_types::pem::Error),
    #[error("the certificate authority cannot be used")]
    Unfit(#[source] rustls::Error),
    #[error("there is no certificate in the certificate authority's file")]
    Empty,
    #[error("this machine has no bundle of public certificate authorities")]
    NoSystemBundle,
}

impl Trust {
    /// Pins the authorities in a PEM text and believes no others.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots
                .add(certificate.map_err(TrustError::Pem)?)
                .map_err(TrustError::Unfit)?;
        }
        if roots.is_empty() {
            return Err(TrustError::Empty);
        }
        Ok(Self::Authorities(Arc::new(roots)))
    }

    /// Believes the public authorities that this machine's distribution installed.
    pub fn system() -> Result<Self, TrustError> {
        let bundle = SYSTEM_BUNDLES
            .iter()
            .find_map(|path| std::fs::read(path).ok());
        let bundle = bundle.ok_or(TrustError::NoSystemBundle)?;
        let mut roots = RootCertStore::empty();
        // A bundle holds a few authorities that no current library takes.
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&bundle).flatten());
        if roots.is_empty() {
            return Err(TrustError::Empty);
        }
        Ok(Self::Authorities(Arc::new(roots)))
    }
}

impl Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Authorities(roots) => write!(f, "Authorities({})", roots.len()),
            Self::Anybody => f.write_str("Anybody"),
        }
    }
}

/// A TLS configuration with the client certificate that `identity` has at each handshake.
pub fn tls_config(trust: &Trust, identity: &Identity, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has the cipher suites of TLS 1.2 and 1.3");
    let builder = match trust {
        Trust::Authorities(roots) => {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots.clone(), provider).build();
            builder.with_webpki_verifier(verifier.expect("a trust has at least one authority"))
        }
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified { provider })),
    };
    finish(
        builder.with_client_cert_resolver(identity.resolver()),
        protocols,
    )
}

fn finish(mut config: ClientConfig, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    // A resumed session would go on under the certificate it began with.
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// Takes any certificate, but still checks that the server holds its key.
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl Debug for Unverified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unverified")
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
