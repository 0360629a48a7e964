//! The certificate that the port shows: the newest that there is, from the next connection on.
//! Until the cluster has signed one, which in many clusters waits for a person, its own.

use parking_lot::RwLock;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use rustls::InconsistentKeys;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::IpAddr;
use std::sync::Arc;

#[derive(Debug)]
pub struct Serving(RwLock<Arc<CertifiedKey>>);

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("it is not PEM")]
    Pem(#[from] rustls_pki_types::pem::Error),
    #[error("there is none")]
    Empty,
    #[error("its key cannot be used")]
    Key(#[from] rustls::Error),
    #[error("it cannot be made")]
    Make(#[from] rcgen::Error),
}

impl Serving {
    /// Both in PEM.
    pub fn new(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        Ok(Self(RwLock::new(certified(certificate, key)?)))
    }

    /// The name is one of a host, too.
    pub fn self_signed(
        name: &str,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        let addresses = addresses.into_iter().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Self::new(&certificate.pem(), &key.serialize_pem())
    }

    /// From the next connection on.
    pub fn set(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        *self.0.write() = certified(certificate, key)?;
        Ok(())
    }
}

fn certified(certificate: &str, key: &str) -> Result<Arc<CertifiedKey>, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    if chain.is_empty() {
        return Err(CertificateError::Empty);
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let key = any_supported_type(&key)?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        // An unknown kind of key may still fit.
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
            Ok(Arc::new(certified))
        }
        Err(error) => Err(error.into()),
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}
