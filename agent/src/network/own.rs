//! The network that is made on this node without a runtime's doing: by plugins where a configuration
//! asks for them, else the agent's own.
//!
//! Each sandbox keeps the one it was made with. What the agent made for its own goes once plugins
//! are asked for and no sandbox is left on it, and comes again when they are no longer.

use super::NetworkError;
use super::bridged::Bridged;
use super::cni::{Cni, Resolvers, Settings};
use super::link;
use crate::families::Families;
use crate::runtime::{SandboxId, SandboxStatus};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// For what failed, and for a podCIDR that has come.
const LOOK_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Own {
    pub bridged: Arc<Bridged>,
    pub cni: Cni,
}

impl Own {
    pub fn open(directory: PathBuf, plugins: Settings) -> Result<Self, NetworkError> {
        let cni = Cni::open(plugins, directory.with_extension("cni"));
        Ok(Self {
            bridged: Arc::new(Bridged::open(directory)?),
            cni,
        })
    }

    pub async fn use_cidrs(&self, cidrs: &str) -> Result<(), NetworkError> {
        self.cni
            .use_cidrs(cidrs.split(',').map(str::to_owned).collect());
        match self.is_of_plugins() {
            true => self.bridged.keep_cidrs(cidrs),
            false => self.bridged.use_cidrs(cidrs).await,
        }
    }

    pub async fn use_kept_cidrs(&self) -> Result<(), NetworkError> {
        match self.bridged.kept_cidrs() {
            Some(cidrs) => self.use_cidrs(&cidrs).await,
            None => Ok(()),
        }
    }

    /// No sandbox is, or comes to be, on the agent's own.
    fn is_of_plugins(&self) -> bool {
        self.cni.is_used() && !self.bridged.has_pods()
    }

    pub fn problem(&self) -> Option<String> {
        match self.cni.is_used() {
            true => self.cni.problem(),
            false => (!self.bridged.is_ready())
                .then(|| "no podCIDR was given to this node yet".to_owned()),
        }
    }

    pub async fn attach(
        &self,
        sandbox: &SandboxStatus,
        resolvers: &Resolvers,
    ) -> Result<Families<IpAddr>, NetworkError> {
        if !self.bridged.addresses_of(&sandbox.id).is_empty() {
            return self.bridged.attach(sandbox).await;
        }
        let Some(addresses) = self.cni.attach(sandbox, resolvers).await? else {
            return self.bridged.attach(sandbox).await;
        };
        let namespace = sandbox.network_namespace.as_ref();
        link::bring_up_loopback(namespace.ok_or(NetworkError::NoNamespace)?).await?;
        Ok(addresses.into_iter().collect())
    }

    pub async fn detach(&self, sandbox: &SandboxId) -> Result<(), NetworkError> {
        match self.cni.detach(sandbox).await? {
            true => Ok(()),
            false => self.bridged.detach(sandbox).await,
        }
    }

    pub fn addresses_of(&self, sandbox: &SandboxId) -> Families<IpAddr> {
        let of_own = self.bridged.addresses_of(sandbox);
        if !of_own.is_empty() {
            return of_own;
        }
        let of_plugins = self.cni.addresses_of(sandbox);
        of_plugins.into_iter().flatten().collect()
    }

    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) -> Result<(), NetworkError> {
        self.cni.reclaim(alive);
        self.bridged.reclaim(alive)
    }

    /// Makes the agent's own network, or takes it away, as it is wanted, until `stop`.
    pub async fn settle(self: Arc<Self>, stop: CancellationToken) {
        let mut states = self.cni.subscribe();
        let mut was_used = false;
        loop {
            states.mark_unchanged();
            let is_used = self.cni.is_used();
            if is_used && !was_used {
                tracing::info!("pods' networks are made by plugins");
                link::serve_plugins().await;
            }
            was_used = is_used;
            let settled = match (is_used, self.bridged.is_ready()) {
                (true, _) => self.bridged.stand_down().await,
                (false, false) => self.use_kept_cidrs().await,
                // Which podCIDR it is by now, the Node says.
                (false, true) => Ok(()),
            };
            if let Err(error) = settled {
                let error = crate::error::chain(&error);
                tracing::warn!(error, "the pods' network is not as it should be");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = states.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
