//! The server's certificate, replaced while it serves: new connections get the new one, open ones
//! go on undisturbed.

use super::PkiError;
use super::authority::{Authority, LEAF_LIFE, Leaf, Usage};
use super::names::ServerNames;
use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// A third of its life before its end, as the kubelet renews.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(LEAF_LIFE.as_secs() as i64 / 3);

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    not_after: Timestamp,
}

#[derive(Debug)]
pub struct ServingCertificate {
    current: RwLock<Current>,
}

impl ServingCertificate {
    pub fn new(
        authority: &Authority,
        names: &ServerNames,
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let current = RwLock::new(make(authority, names, now)?);
        Ok(Self { current })
    }

    pub fn renew_if_due(
        &self,
        authority: &Authority,
        names: &ServerNames,
        now: Timestamp,
    ) -> Result<bool, PkiError> {
        if self.not_after().duration_since(now) > RENEW_BEFORE {
            return Ok(false);
        }
        *self.current.write() = make(authority, names, now)?;
        Ok(true)
    }

    pub fn not_after(&self) -> Timestamp {
        self.current.read().not_after
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().key))
    }
}

fn make(authority: &Authority, names: &ServerNames, now: Timestamp) -> Result<Current, PkiError> {
    let leaf = Leaf {
        common_name: "kube-apiserver",
        organizations: &[],
        names: &names.alternative_names(),
        usage: Usage::Server,
        life: LEAF_LIFE,
    };
    let issued = authority.issue(&leaf, now)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.key_der));
    let chain = vec![issued.certificate, authority.certificate().clone()];
    Ok(Current {
        key: Arc::new(CertifiedKey::new(chain, any_ecdsa_type(&key)?)),
        not_after: issued.not_after,
    })
}
