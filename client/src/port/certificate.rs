//! The certificate that the port shows: the newest that the node has, from the next connection on.
//! Until the cluster has signed one, which in many clusters waits for a person, the node's own.

use crate::enrol::Pair;
use crate::families::Families;
use parking_lot::RwLock;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
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
    #[error("its key cannot be used")]
    Key(#[from] rustls::Error),
    #[error("it cannot be made")]
    Make(#[from] rcgen::Error),
}

impl Serving {
    pub fn self_signed(
        node_name: &str,
        addresses: Families<IpAddr>,
    ) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(vec![node_name.to_owned()])?;
        let addresses = addresses.iter().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, node_name);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let pair = Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        };
        Ok(Self(RwLock::new(certified(&pair)?)))
    }

    pub fn set(&self, pair: &Pair) -> Result<(), CertificateError> {
        *self.0.write() = certified(pair)?;
        Ok(())
    }
}

fn certified(pair: &Pair) -> Result<Arc<CertifiedKey>, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    Ok(Arc::new(CertifiedKey::new(
        chain,
        any_supported_type(&key)?,
    )))
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}
