//! Whom to trust at the other end of a connection: the certificates that somebody named, or the
//! machine's own authorities.
//!
//! A certificate that was named is trusted as a server's own too, when its name and time are right.
//! One that is signed by itself is often marked as an authority, which webpki takes for no server.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    NoCertificates,
    #[error(
        "this machine has no certificate authorities of its own: name the issuer's in \
         certificateAuthority"
    )]
    NoneHere,
}

/// TLS that trusts the certificates of a PEM text, or those of the machine without one.
pub fn trusting(authority_pem: Option<&str>) -> Result<Arc<ClientConfig>, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions of TLS")
        .dangerous()
        .with_custom_certificate_verifier(verifier(authority_pem)?)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The trust alone.
pub fn verifier(authority_pem: Option<&str>) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let Some(text) = authority_pem else {
        let roots = roots(rustls_native_certs::load_native_certs().certs);
        let roots = Arc::new(roots.ok_or(TrustError::NoneHere)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider);
        return Ok(verifier.build().map_err(|_| TrustError::NoneHere)?);
    };
    let read = CertificateDer::pem_slice_iter(text.as_bytes());
    let certificates: Vec<CertificateDer<'static>> = read.filter_map(Result::ok).collect();
    let roots = roots(certificates.clone()).ok_or(TrustError::NoCertificates)?;
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|_| TrustError::NoCertificates)?;
    Ok(Arc::new(Named {
        certificates,
        authorities,
    }))
}

fn roots(certificates: Vec<CertificateDer<'static>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    (!roots.is_empty()).then_some(roots)
}

/// Certificates that somebody named, as authorities and as servers' own.
#[derive(Debug)]
struct Named {
    certificates: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.certificates.iter().any(|one| one == own) {
            return self.authorities.verify_server_cert(
                own,
                intermediates,
                name,
                ocsp_response,
                now,
            );
        }
        in_force(own, now)?;
        verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let authorities = &self.authorities;
        authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let authorities = &self.authorities;
        authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

fn in_force(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let read = x509_parser::parse_x509_certificate(certificate);
    let (_, read) = read.map_err(|_| CertificateError::BadEncoding)?;
    let at = |seconds: i64| {
        let seconds = u64::try_from(seconds).unwrap_or(0);
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    };
    let not_before = at(read.validity().not_before.timestamp());
    let not_after = at(read.validity().not_after.timestamp());
    if now < not_before {
        let time = now;
        return Err(CertificateError::NotValidYetContext { time, not_before });
    }
    if now > not_after {
        let time = now;
        return Err(CertificateError::ExpiredContext { time, not_after });
    }
    Ok(())
}
