//! Whose certificates a client may show: the authority in a file, or the one that the API server
//! tells of itself. Looked at again all the while, since authorities are replaced.

use crate::Client;
use crate::connect::{Trust, TrustError};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use rustls::RootCertStore;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Upstream looks at the file once a minute.
const FILE_EVERY: Duration = Duration::from_secs(60);
const SERVER_EVERY: Duration = Duration::from_secs(10 * 60);

pub enum Source {
    File(PathBuf),
    /// `extension-apiserver-authentication` in `kube-system`. Not everybody may read it.
    Server(Client),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Server(#[from] kube::Error),
    #[error("the config map has no client-ca-file")]
    Missing,
    #[error("{origin}")]
    Unfit { origin: String, source: TrustError },
}

/// As they were read, to see whether they have changed.
#[derive(Clone)]
pub(super) struct Authorities {
    pub pem: String,
    pub roots: Arc<RootCertStore>,
}

impl Source {
    pub(super) async fn read(&self) -> Result<Authorities, SourceError> {
        let pem = match self {
            Self::File(path) => tokio::fs::read_to_string(path).await.map_err(|source| {
                let path = path.clone();
                SourceError::Read { path, source }
            })?,
            Self::Server(client) => {
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
                let map = api.get("extension-apiserver-authentication").await?;
                let found = map.data.and_then(|mut data| data.remove("client-ca-file"));
                found.ok_or(SourceError::Missing)?
            }
        };
        let unfit = |source| SourceError::Unfit {
            origin: self.to_string(),
            source,
        };
        match Trust::from_pem(pem.as_bytes()).map_err(unfit)? {
            Trust::Authorities(roots) => Ok(Authorities { pem, roots }),
            Trust::Anybody => Err(SourceError::Missing),
        }
    }

    pub(super) fn every(&self) -> Duration {
        match self {
            Self::File(_) => FILE_EVERY,
            Self::Server(_) => SERVER_EVERY,
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({self})")
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(_) => f.write_str("extension-apiserver-authentication"),
        }
    }
}
