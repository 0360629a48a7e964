//! A client certificate as somebody who does not serve looks at it: whose it is, which one, and
//! whether the CA made it.

use super::revoked::Subject;
use crate::authenticate::certificate::subject_of;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

#[derive(Debug)]
pub struct ClientCertificate {
    pub subject: Subject,
    pub not_after: Timestamp,
    der: CertificateDer<'static>,
}

impl ClientCertificate {
    /// The first certificate of a PEM text.
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        let der = CertificateDer::from_pem_slice(pem).ok()?;
        let (_, read) = x509_parser::parse_x509_certificate(&der).ok()?;
        let name = read.subject().iter_common_name().last();
        let name = name.and_then(|name| name.as_str().ok()).unwrap_or("");
        let subject = subject_of(&read, name);
        let not_after = Timestamp::from_second(read.validity().not_after.timestamp()).ok()?;
        Some(Self {
            subject,
            not_after,
            der,
        })
    }

    pub fn is_signed_by(&self, ca: &CertificateDer<'_>) -> bool {
        let Ok((_, ca)) = x509_parser::parse_x509_certificate(ca) else {
            return false;
        };
        let own = x509_parser::parse_x509_certificate(&self.der);
        own.is_ok_and(|(_, own)| own.verify_signature(Some(ca.public_key())).is_ok())
    }
}
