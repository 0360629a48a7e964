//! Pods' networks made by plugins of the Container Network Interface, where a configuration asks
//! for them (docs/cni.md).
//!
//! Knows no link and no address: plugins do. Invariants: of one sandbox one thing is done at a time;
//! what plugins were told at ADD is on disk before they are told, and until their DEL is done; what
//! was begun is undone or goes on, whoever waited for it.

mod attachment; // What is kept of a sandbox.
mod capabilities; // Pure.
mod chain; // All plugins of a network.
mod configuration; // Which network. Start reading here.
mod former; // What agents before this one left.
mod outcome; // Pure.
mod plugin; // One run of one.
mod stray; // Runs that outlived their agent.
mod tend; // The state of the node, and what is lost.
#[cfg(test)]
pub mod testing; // Plugins that are scripts.

pub use capabilities::Resolvers;

use crate::runtime::{SandboxId, SandboxStatus};
use attachment::{Attachment, Attachments, Found};
use capabilities::CapabilityError;
use chain::{ChainError, Runner};
use configuration::{ConfigurationError, Network};
use former::Former;
use futures::StreamExt;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tend::State;
use tokio::sync::{Notify, OwnedMutexGuard, RwLockReadGuard, watch};
use tokio_util::sync::CancellationToken;

/// Where configurations and plugins are, and how long one plugin may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub configurations: PathBuf,
    pub plugins: Vec<PathBuf>,
    pub time_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            configurations: "/etc/cni/net.d".into(),
            plugins: vec!["/opt/cni/bin".into(), "/usr/lib/cni".into()],
            time_max: Duration::from_secs(60),
        }
    }
}

/// Sandboxes that a wipe takes off their networks at one time: a plugin may hang at each.
const WIPES_MAX: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum CniError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Capability(#[from] CapabilityError),
    #[error("the sandbox has no network namespace")]
    NoNamespace,
    #[error("failed to setup network for sandbox {sandbox:?}")]
    Add { sandbox: String, source: ChainError },
    #[error("failed to destroy network for sandbox {sandbox:?}")]
    Delete { sandbox: String, source: ChainError },
    #[error("failed to find network info for sandbox {0:?}")]
    NoAddress(String),
    #[error("cannot {action} what network plugins were told of sandbox {sandbox:?}")]
    Disk {
        action: &'static str,
        sandbox: String,
        source: io::Error,
    },
    #[error("network plugins that a former agent started for sandbox {sandbox:?} do not end")]
    Stray { sandbox: String, source: io::Error },
    #[error("the agent does not wait for it any more")]
    Stopped,
}

/// A cheap handle; all share.
#[derive(Clone, Debug)]
pub struct Cni(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    configurations: PathBuf,
    runner: Runner,
    attachments: Attachments,
    pod_cidrs: RwLock<Vec<String>>,
    busy: Mutex<HashMap<SandboxId, Arc<tokio::sync::Mutex<()>>>>,
    /// Held by all but GC, which is for itself.
    exclusion: tokio::sync::RwLock<()>,
    state: watch::Sender<State>,
    former: Mutex<Former>,
    /// Sandboxes that were gone when this agent began.
    lost: Mutex<BTreeSet<SandboxId>>,
    has_lost: Notify,
}

impl Cni {
    /// `directory` keeps what is known of sandboxes.
    pub fn open(settings: Settings, directory: PathBuf) -> Self {
        let attachments = Attachments::new(directory);
        let mut former = Former::default();
        match attachments.sandboxes() {
            Ok(found) => former.list(found),
            Err(error) => tracing::error!(%error, "{UNLISTED}: it is tried again"),
        }
        let inner = Inner {
            runner: Runner::new(settings.plugins, settings.time_max),
            former: Mutex::new(former),
            attachments,
            pod_cidrs: RwLock::default(),
            busy: Mutex::default(),
            exclusion: tokio::sync::RwLock::default(),
            state: watch::Sender::new(State::of(&configuration::find(&settings.configurations))),
            configurations: settings.configurations,
            lost: Mutex::default(),
            has_lost: Notify::new(),
        };
        Self(Arc::new(inner))
    }

    /// Of this node's pods; plugins may be told.
    pub fn use_cidrs(&self, cidrs: Vec<String>) {
        *self.0.pod_cidrs.write() = cidrs;
    }

    /// A configuration is there, be it one that cannot be used.
    pub fn is_used(&self) -> bool {
        *self.0.state.borrow() != State::Unused
    }

    /// Why no pod can have a network.
    pub fn problem(&self) -> Option<String> {
        match &*self.0.state.borrow() {
            State::Problem(problem) => Some(problem.clone()),
            State::Unused | State::Ready => None,
        }
    }

    /// Tells when `is_used` may have changed.
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    /// Gives the sandbox its network, or finds it again. None when no configuration is there.
    pub async fn attach(
        &self,
        sandbox: &SandboxStatus,
        resolvers: &Resolvers,
    ) -> Result<Option<Vec<IpAddr>>, CniError> {
        let (inner, sandbox, resolvers) = (self.0.clone(), sandbox.clone(), resolvers.clone());
        supervised(|stop| async move { inner.attach(&sandbox, &resolvers, &stop).await }).await
    }

    /// Takes the sandbox off its network. False when it is on none.
    pub async fn detach(&self, sandbox: &SandboxId) -> Result<bool, CniError> {
        let (inner, sandbox) = (self.0.clone(), sandbox.clone());
        supervised(|stop| async move { inner.detach(&sandbox, &stop).await }).await
    }

    /// None for a sandbox that is on no network of plugins, or not yet.
    pub fn addresses_of(&self, sandbox: &SandboxId) -> Option<Vec<IpAddr>> {
        match self.0.attachments.find(sandbox).ok()? {
            Found::Known(known) => known.addresses(),
            Found::Nothing | Found::Unreadable => None,
        }
    }

    /// What a crash left without a sandbox is taken off its network.
    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) {
        let mut former = self.0.former.lock();
        former.alive(alive.clone());
        self.0.lost.lock().extend(former.lost());
        self.0.has_lost.notify_one();
    }

    /// Takes all sandboxes off their networks, for a node that goes, as far as their plugins do it:
    /// what they do not is told. An error when it is not known which sandboxes there are.
    pub async fn wipe(directory: PathBuf) -> io::Result<()> {
        let time_max = Settings::default().time_max;
        let attachments = Attachments::new(directory);
        let attachments = &attachments;
        let wipe = |sandbox| async move {
            let known = match attachments.find(&sandbox) {
                Ok(Found::Known(known)) => known,
                Ok(Found::Nothing) => return,
                Ok(Found::Unreadable) => {
                    tracing::warn!(%sandbox, "{KEPT}: what they were told is unreadable");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, %sandbox, "{KEPT}");
                    return;
                }
            };
            if let Err(error) = stray::end(&sandbox, &known.directories).await {
                tracing::warn!(%error, %sandbox, "a network plugin cannot be ended");
            }
            let runner = Runner::new(known.directories.clone(), time_max);
            let stop = CancellationToken::new();
            if let Err(error) = runner.delete(&known, &stop).await {
                let error = crate::error::chain(&error);
                tracing::warn!(error, %sandbox, "{KEPT}");
            }
        };
        let all = futures::stream::iter(attachments.sandboxes()?);
        all.for_each_concurrent(WIPES_MAX, wipe).await;
        Ok(())
    }
}

const UNLISTED: &str = "cannot list the sandboxes on networks of plugins";
const KEPT: &str = "network plugins keep something of a sandbox";

/// Work that is not broken off with whoever waits for it: it is told, and comes to an end.
async fn supervised<T: Send + 'static, Running>(
    work: impl FnOnce(CancellationToken) -> Running,
) -> Result<T, CniError>
where
    Running: Future<Output = Result<T, CniError>> + Send + 'static,
{
    let stop = CancellationToken::new();
    let waited_for = stop.clone().drop_guard();
    let done = tokio::spawn(work(stop)).await;
    drop(waited_for);
    match done {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(CniError::Stopped),
    }
}

fn disk(action: &'static str, sandbox: &SandboxId) -> impl FnOnce(io::Error) -> CniError {
    let sandbox = sandbox.0.clone();
    move |source| CniError::Disk {
        action,
        sandbox,
        source,
    }
}

impl Inner {
    async fn attach(
        &self,
        sandbox: &SandboxStatus,
        resolvers: &Resolvers,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<IpAddr>>, CniError> {
        let id = &sandbox.id;
        let _turn = self.turn(id, stop).await?;
        let found = self.find(id).await?;
        if let Found::Known(known) = &found {
            if let Some(addresses) = self.checked(known, stop).await {
                return Ok(Some(addresses));
            }
            self.delete(known, stop).await?;
        }
        let Some(network) = configuration::find(&self.configurations)? else {
            return Ok(None);
        };
        let mut attachment = self.attachment(sandbox, network, resolvers)?;
        if found == Found::Unreadable {
            // Whatever came of the ADD before: what can still be told takes it back.
            self.delete(&attachment, stop).await?;
        }
        self.keep(&attachment).await?;
        match self.add(&mut attachment, stop).await {
            Ok(addresses) => Ok(Some(addresses)),
            Err(error) => {
                // As the specification wants it. What fails here is tried again with the pod.
                if let Err(error) = self.delete(&attachment, stop).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "a network that was begun is not taken back");
                }
                Err(error)
            }
        }
    }

    async fn add(
        &self,
        attachment: &mut Attachment,
        stop: &CancellationToken,
    ) -> Result<Vec<IpAddr>, CniError> {
        let sandbox = attachment.sandbox.0.clone();
        match self.runner.add(attachment, stop).await {
            Ok(outcome) => attachment.outcome = Some(outcome),
            Err(source) => return Err(CniError::Add { sandbox, source }),
        }
        self.keep(attachment).await?;
        attachment.addresses().ok_or(CniError::NoAddress(sandbox))
    }

    fn attachment(
        &self,
        sandbox: &SandboxStatus,
        network: Network,
        resolvers: &Resolvers,
    ) -> Result<Attachment, CniError> {
        let namespace = sandbox.network_namespace.clone();
        let pod_cidrs = self.pod_cidrs.read().clone();
        Ok(Attachment {
            sandbox: sandbox.id.clone(),
            network,
            namespace: namespace.ok_or(CniError::NoNamespace)?,
            arguments: capabilities::arguments(&sandbox.id, &sandbox.config),
            capabilities: capabilities::offered(&sandbox.config, resolvers, &pod_cidrs)?,
            directories: self.runner.directories.clone(),
            outcome: None,
        })
    }

    /// Of a sandbox that was attached before, if its network is as it should be.
    async fn checked(&self, known: &Attachment, stop: &CancellationToken) -> Option<Vec<IpAddr>> {
        let addresses = known.addresses()?;
        match self.runner.check(known, stop).await {
            Ok(()) => Some(addresses),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::info!(error, sandbox = %known.sandbox, "makes a sandbox's network again");
                None
            }
        }
    }

    async fn detach(&self, id: &SandboxId, stop: &CancellationToken) -> Result<bool, CniError> {
        let _turn = self.turn(id, stop).await?;
        let known = match self.find(id).await? {
            Found::Known(known) => known,
            // What was unreadable of it need not be told at GC any more.
            Found::Nothing | Found::Unreadable => {
                self.forget(id).await?;
                return Ok(false);
            }
        };
        self.delete(&known, stop).await?;
        Ok(true)
    }

    /// What is kept of the sandbox. No plugin of a former agent runs for it any more.
    async fn find(&self, id: &SandboxId) -> Result<Found, CniError> {
        let sandbox = id.clone();
        let found = self.on_disk("read", id, move |all| all.find(&sandbox));
        let found = found.await?;
        if self.former.lock().may_run(id) {
            let directories = match &found {
                Found::Known(known) => &known.directories,
                Found::Nothing | Found::Unreadable => &self.runner.directories,
            };
            let ended = stray::end(id, directories).await;
            ended.map_err(|source| CniError::Stray {
                sandbox: id.0.clone(),
                source,
            })?;
            self.former.lock().met(id);
        }
        Ok(found)
    }

    async fn delete(&self, known: &Attachment, stop: &CancellationToken) -> Result<(), CniError> {
        let id = &known.sandbox;
        let deleted = self.runner.delete(known, stop).await;
        deleted.map_err(|source| CniError::Delete {
            sandbox: id.0.clone(),
            source,
        })?;
        self.forget(id).await
    }

    async fn forget(&self, id: &SandboxId) -> Result<(), CniError> {
        let sandbox = id.clone();
        let forgotten = self.on_disk("forget", id, move |all| all.forget(&sandbox));
        forgotten.await
    }

    async fn keep(&self, attachment: &Attachment) -> Result<(), CniError> {
        let kept = attachment.clone();
        self.on_disk("keep", &attachment.sandbox, move |all| all.keep(&kept))
            .await
    }

    /// On a thread that may wait for the disk.
    async fn on_disk<T: Send + 'static>(
        &self,
        action: &'static str,
        sandbox: &SandboxId,
        work: impl FnOnce(&Attachments) -> io::Result<T> + Send + 'static,
    ) -> Result<T, CniError> {
        let attachments = self.attachments.clone();
        let done = tokio::task::spawn_blocking(move || work(&attachments)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(disk(action, sandbox))
    }

    /// For something to be done with the sandbox by nobody else, unless nobody waits for it any more.
    async fn turn(
        &self,
        sandbox: &SandboxId,
        stop: &CancellationToken,
    ) -> Result<(OwnedMutexGuard<()>, RwLockReadGuard<'_, ()>), CniError> {
        let turn = async { (self.alone(sandbox).await, self.exclusion.read().await) };
        let turn = stop.run_until_cancelled(turn).await;
        turn.ok_or(CniError::Stopped)
    }

    /// Until what is returned is dropped, nobody else does anything with the sandbox.
    async fn alone(&self, sandbox: &SandboxId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut busy = self.busy.lock();
            busy.retain(|_, lock| Arc::strong_count(lock) > 1);
            busy.entry(sandbox.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests;
