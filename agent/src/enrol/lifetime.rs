//! When a certificate is valid and when it is renewed. Pure.

use crate::families::Families;
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::net::IpAddr;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lifetime {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Empty where the subject has none.
    pub common_name: String,
}

/// Whether a certificate is for TLS servers of this node at these addresses.
pub fn serves(certificate_pem: &str, node_name: &str, addresses: Families<IpAddr>) -> bool {
    let Ok(der) = CertificateDer::from_pem_slice(certificate_pem.as_bytes()) else {
        return false;
    };
    let Ok((_, certificate)) = X509Certificate::from_der(&der) else {
        return false;
    };
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return false;
    };
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let has = |wanted: &GeneralName<'_>| names.value.general_names.contains(wanted);
    let mut addresses = addresses.iter();
    has(&GeneralName::DNSName(node_name))
        && addresses.all(|address| has(&GeneralName::IPAddress(&octets(address))))
}

impl Lifetime {
    /// Of the first certificate in a PEM text.
    pub fn of(certificate_pem: &str) -> Option<Self> {
        let der = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).ok()?;
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        let validity = certificate.validity();
        let name = certificate
            .subject()
            .iter_common_name()
            .next()
            .map_or(Ok(""), |name| name.as_str())
            .ok()?;
        Some(Self {
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
            common_name: name.to_owned(),
        })
    }

    /// `position` from 0 to 1 chooses within 70% to 90% of the life, so that nodes that enrolled
    /// together do not renew together.
    pub fn renew_at(&self, position: f64) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before).as_secs_f64();
        let after = SignedDuration::from_secs_f64(life * (0.7 + 0.2 * position));
        self.not_before
            .saturating_add(after)
            .unwrap_or(self.not_after)
    }
}

#[cfg(test)]
mod tests;
