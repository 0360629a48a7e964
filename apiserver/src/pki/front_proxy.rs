//! Who this server is to servers of other APIs: a certificate of its own small authority, which
//! signs nothing else. They take users' names from whoever shows it, so that neither the cluster's
//! authority nor anybody whom that has certified can give them.

use super::PkiError;
use super::authority::{Authority, Issued, LEAF_LIFE, Leaf, Usage};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// As kubeadm has it.
pub const NAME: &str = "front-proxy-client";
const DIRECTORY: &str = "front-proxy";
/// A certificate is made anew so long before it ends.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);

#[derive(Debug)]
pub struct FrontProxy {
    authority: Authority,
    current: Mutex<Arc<Issued>>,
}

impl FrontProxy {
    /// Reads the authority below the directory of the cluster's, or makes it.
    pub fn open(directory: &Path, now: Timestamp) -> Result<Self, PkiError> {
        let authority = Authority::open(&directory.join(DIRECTORY), now)?;
        let current = Mutex::new(Arc::new(issue(&authority, now)?));
        Ok(Self { authority, current })
    }

    pub fn ca_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    #[cfg(test)]
    pub fn ca_der(&self) -> &rustls::pki_types::CertificateDer<'static> {
        self.authority.certificate()
    }

    /// The certificate with its key, made anew when its time has come.
    pub fn identity(&self, now: Timestamp) -> Result<Arc<Issued>, PkiError> {
        let mut current = self.current.lock();
        if now.saturating_add(RENEW_BEFORE).unwrap_or(now) > current.not_after {
            *current = Arc::new(issue(&self.authority, now)?);
        }
        Ok(Arc::clone(&current))
    }
}

fn issue(authority: &Authority, now: Timestamp) -> Result<Issued, PkiError> {
    let leaf = Leaf {
        common_name: NAME,
        organizations: &[],
        names: &[],
        usage: Usage::Client,
        life: LEAF_LIFE,
    };
    authority.issue(&leaf, now)
}
