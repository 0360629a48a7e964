//! The cluster's own certificate authority and what it signs for this server.
//!
//! Only the CA pair is on disk; the server's certificate and the admin's are made at each start,
//! so nothing on the disk but the CA is worth stealing, and the server's is made anew in the
//! running process long before it ends. Certificates of nodes are signed elsewhere, by the
//! controller that is given the pair.

pub mod authority; // The CA pair: made once, read ever after.
pub mod front_proxy; // Who this server is to servers of other APIs.
pub mod kubeconfig; // A kubeconfig with a certificate of its own.
pub mod names; // The names that the server's certificate answers to.
pub mod peer; // Client certificates, as a command looks at them.
pub mod revoked; // Client certificates that were taken back.
pub mod serving; // The server's certificate, replaced while it serves.
pub mod tls; // rustls' configuration, and the check of client certificates.

use authority::Authority;
use front_proxy::FrontProxy;
use jiff::Timestamp;
use kubeconfig::{Kubeconfig, Order};
use names::ServerNames;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use serving::ServingCertificate;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub const ADMIN_USER: &str = "kubernetes-admin";

/// How often the server's certificate is looked at. Short, because a machine without a clock
/// battery starts in the past and jumps by years when it learns the time.
const RENEWAL_CHECK: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("cannot {doing} {path}")]
    File {
        doing: &'static str,
        path: String,
        source: std::io::Error,
    },
    #[error("{present} is there but {missing} is not: put it back, or remove both to start anew")]
    HalfAPair { present: String, missing: String },
    #[error("{path} does not hold a usable {what}: {why}")]
    Unusable {
        path: String,
        what: &'static str,
        why: String,
    },
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// All that TLS needs. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Pki {
    authority: Authority,
    names: ServerNames,
    serving: Arc<ServingCertificate>,
    clients: tls::ClientCertificates,
    pub front_proxy: Arc<FrontProxy>,
}

impl Pki {
    /// Reads the CA under `directory`, or makes it, and signs the server's certificate.
    pub fn open(directory: &Path, names: ServerNames, now: Timestamp) -> Result<Self, PkiError> {
        let authority = Authority::open(directory, now)?;
        let serving = ServingCertificate::new(&authority, &names, now)?;
        let clients = tls::ClientCertificates::new(authority.certificate())?;
        let front_proxy = Arc::new(FrontProxy::open(directory, now)?);
        Ok(Self {
            authority,
            names,
            serving: Arc::new(serving),
            clients,
            front_proxy,
        })
    }

    pub fn ca_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    pub fn ca_key_pem(&self) -> &str {
        self.authority.key_pem()
    }

    pub fn names(&self) -> &ServerNames {
        &self.names
    }

    pub fn ca_der(&self) -> &CertificateDer<'static> {
        self.authority.certificate()
    }

    /// For the listener: HTTP/2 and HTTP/1.1, client certificates asked for and not required.
    pub fn server_config(&self) -> Result<ServerConfig, PkiError> {
        tls::server_config(Arc::clone(&self.serving) as _)
    }

    /// Checks the chain that a client showed in its handshake.
    pub fn clients(&self) -> &tls::ClientCertificates {
        &self.clients
    }

    /// The admin's kubeconfig, with a fresh key and a client certificate in `system:masters`.
    pub fn admin_kubeconfig(
        &self,
        server_url: &str,
        now: Timestamp,
    ) -> Result<Kubeconfig, PkiError> {
        kubeconfig::issue(&self.authority, &Order::admin(server_url), now)
    }

    /// Replaces the server's certificate when its time has come; true when it did.
    pub fn renew_if_due(&self, now: Timestamp) -> Result<bool, PkiError> {
        self.serving.renew_if_due(&self.authority, &self.names, now)
    }

    /// Looks after the server's certificate until shutdown.
    pub async fn keep_fresh(
        self: Arc<Self>,
        clock: impl Fn() -> Timestamp + Send,
        shutdown: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(RENEWAL_CHECK);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            match self.renew_if_due(clock()) {
                Ok(true) => tracing::info!("renewed the server's certificate"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the server's certificate was not renewed"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
