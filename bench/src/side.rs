//! An API server to be measured.

use crate::patience::within;
use anyhow::Context;
use coracle_client::connect::{self as server, Endpoint};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

const VERSION_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Side {
    /// For people.
    pub name: String,
    kubeconfig: PathBuf,
    version: OnceLock<String>,
}

impl Side {
    pub fn new(kubeconfig: &Path, name: Option<&String>) -> Self {
        let path = || kubeconfig.display().to_string();
        Self {
            name: name.cloned().unwrap_or_else(path),
            kubeconfig: kubeconfig.to_owned(),
            version: OnceLock::new(),
        }
    }

    pub fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let loaded = server::kubeconfig::load(&self.kubeconfig, None);
        Ok(loaded
            .with_context(|| format!("kubeconfig {}", self.kubeconfig.display()))?
            .endpoint)
    }

    /// Asks which version this is, once; one that does not answer has none.
    pub async fn meet(&self) {
        if self.version.get().is_some() {
            return;
        }
        let version = async {
            let client = server::client(&self.endpoint()?);
            Ok(client.apiserver_version().await?.git_version)
        };
        if let Ok(version) = within(VERSION_MAX, version).await {
            self.version.get_or_init(|| version);
        }
    }

    /// What it said when it was met.
    pub fn version(&self) -> Option<&str> {
        self.version.get().map(String::as_str)
    }
}
