//! The plugins of a network, one after the other: forwards for ADD, backwards for DEL.

use super::attachment::{Attachment, LINK};
use super::capabilities;
use super::configuration::{Network, Plugin, Version};
use super::outcome::{self, Outcome};
use super::plugin::{self, Invocation, PluginError};
use crate::runtime::SandboxId;
use nix::sys::statfs::{NSFS_MAGIC, statfs};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Plugins that run at one time: each has its megabytes, and a node may start all its pods at once.
const RUNNING_MAX: usize = 4;

#[derive(Debug, thiserror::Error)]
#[error("plugin {plugin} failed ({verb})")]
pub struct ChainError {
    plugin: String,
    verb: &'static str,
    source: PluginError,
}

impl ChainError {
    /// Of something that is not there any more, as containerd guesses it.
    fn is_gone(&self, has_namespace: bool) -> bool {
        let said = match &self.source {
            PluginError::Failed(said) => said,
            _ => return false,
        };
        said.contains("not found") || (!has_namespace && said.contains("no such file or directory"))
    }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Add,
    Check,
    Delete,
    Collect,
    Status,
}

impl Verb {
    /// `CNI_COMMAND`, and libcni's word in errors.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Add => ("ADD", "add"),
            Self::Check => ("CHECK", "check"),
            Self::Delete => ("DEL", "delete"),
            Self::Collect => ("GC", "gc"),
            Self::Status => ("STATUS", "status"),
        }
    }
}

/// Runs plugins.
#[derive(Debug)]
pub struct Runner {
    pub directories: Vec<PathBuf>,
    /// Of one plugin.
    pub time_max: Duration,
    permits: Semaphore,
}

impl Runner {
    pub fn new(directories: Vec<PathBuf>, time_max: Duration) -> Self {
        Self {
            directories,
            time_max,
            permits: Semaphore::new(RUNNING_MAX),
        }
    }

    /// All of them: no plugin runs meanwhile.
    #[cfg(test)]
    pub async fn permits(&self) -> tokio::sync::SemaphorePermit<'_> {
        let all = u32::try_from(RUNNING_MAX).unwrap();
        self.permits.acquire_many(all).await.unwrap()
    }

    /// What the last plugin says.
    pub async fn add(
        &self,
        attachment: &Attachment,
        stop: &CancellationToken,
    ) -> Result<Outcome, ChainError> {
        let network = &attachment.network;
        let mut before: Option<Outcome> = None;
        for plugin in &network.plugins {
            let said = self
                .attach(Verb::Add, attachment, plugin, before.as_ref(), stop)
                .await?;
            let read = outcome::read(&said, network.version);
            let read = read.map_err(|error| PluginError::Failed(error.to_string()));
            before = Some(read.map_err(failed(Verb::Add, plugin))?);
        }
        Ok(before.unwrap_or_default())
    }

    /// Nothing is asked where the network cannot answer.
    pub async fn check(
        &self,
        attachment: &Attachment,
        stop: &CancellationToken,
    ) -> Result<(), ChainError> {
        let network = &attachment.network;
        if network.version < Version::V0_4_0 || network.disable_check {
            return Ok(());
        }
        for plugin in &network.plugins {
            let before = attachment.outcome.as_ref();
            self.attach(Verb::Check, attachment, plugin, before, stop)
                .await?;
        }
        Ok(())
    }

    pub async fn delete(
        &self,
        attachment: &Attachment,
        stop: &CancellationToken,
    ) -> Result<(), ChainError> {
        let network = &attachment.network;
        let has_outcome = network.version >= Version::V0_4_0;
        let before = attachment.outcome.as_ref().filter(|_| has_outcome);
        for plugin in network.plugins.iter().rev() {
            let deleted = self
                .attach(Verb::Delete, attachment, plugin, before, stop)
                .await;
            match deleted {
                Err(error) if error.is_gone(has_namespace(attachment)) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(error, sandbox = %attachment.sandbox, "nothing to take away");
                }
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }

    /// The first plugin that complains.
    pub async fn status(
        &self,
        network: &Network,
        stop: &CancellationToken,
    ) -> Result<(), ChainError> {
        for plugin in &network.plugins {
            let input = request(network, plugin, Map::new());
            self.run(Verb::Status, plugin, input, Vec::new(), stop)
                .await?;
        }
        Ok(())
    }

    /// `valid` are the sandboxes that are on the network. All plugins are asked; the last error.
    pub async fn collect(
        &self,
        network: &Network,
        valid: &[SandboxId],
        stop: &CancellationToken,
    ) -> Result<(), ChainError> {
        let valid = valid.iter().map(|one| {
            json!({
                "containerID": one.0,
                "ifname": LINK,
            })
        });
        let valid: Value = valid.collect();
        let mut collected = Ok(());
        for plugin in &network.plugins {
            // The first name stood in the specification for a while.
            let more = ["cni.dev/attachments", "cni.dev/valid-attachments"];
            let more = more.map(|name| (name.to_owned(), valid.clone()));
            let input = request(network, plugin, Map::from_iter(more));
            let done = self.run(Verb::Collect, plugin, input, Vec::new(), stop);
            if let Err(error) = done.await {
                collected = Err(error);
            }
        }
        collected
    }

    async fn attach(
        &self,
        verb: Verb,
        attachment: &Attachment,
        plugin: &Plugin,
        before: Option<&Outcome>,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, ChainError> {
        let mut more = Map::new();
        if let Some(before) = before {
            more.insert("prevResult".to_owned(), before.clone().into());
        }
        let taken = capabilities::taken(plugin, &attachment.capabilities);
        if !taken.is_empty() {
            more.insert("runtimeConfig".to_owned(), taken.into());
        }
        let namespace = match has_namespace(attachment) {
            true => attachment.namespace.clone().into_os_string(),
            false => OsString::new(),
        };
        let environment = vec![
            ("CNI_CONTAINERID", attachment.sandbox.0.clone().into()),
            ("CNI_NETNS", namespace),
            ("CNI_IFNAME", LINK.into()),
            ("CNI_ARGS", attachment.arguments.clone().into()),
        ];
        let input = request(&attachment.network, plugin, more);
        self.run(verb, plugin, input, environment, stop).await
    }

    async fn run(
        &self,
        verb: Verb,
        plugin: &Plugin,
        input: Vec<u8>,
        mut environment: Vec<(&'static str, OsString)>,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, ChainError> {
        let _permit = tokio::select! {
            permit = self.permits.acquire() => permit,
            () = stop.cancelled() => return Err(failed(verb, plugin)(PluginError::Stopped)),
        };
        let program = plugin::find(plugin.program(), &self.directories);
        environment.push(("CNI_COMMAND", verb.names().0.into()));
        environment.push(("CNI_PATH", plugin::joined(&self.directories)));
        let invocation = Invocation {
            program: program.map_err(failed(verb, plugin))?,
            environment,
            input,
            time_max: self.time_max,
        };
        let ran = plugin::run(&invocation, stop).await;
        ran.map_err(failed(verb, plugin))
    }
}

fn failed(verb: Verb, plugin: &Plugin) -> impl FnOnce(PluginError) -> ChainError {
    let plugin = plugin.description();
    move |source| ChainError {
        plugin,
        verb: verb.names().1,
        source,
    }
}

/// The configuration of one plugin, with what the runtime adds. Its capabilities stay, as libcni
/// leaves them: plugins that run others look at them.
fn request(network: &Network, plugin: &Plugin, more: Map<String, Value>) -> Vec<u8> {
    let mut fields = plugin.0.clone();
    fields.insert("name".to_owned(), network.name.as_str().into());
    fields.insert("cniVersion".to_owned(), network.version.text().into());
    fields.extend(more);
    Value::from(fields).to_string().into_bytes()
}

/// It is gone after a reboot.
fn has_namespace(attachment: &Attachment) -> bool {
    let found = statfs(&attachment.namespace);
    found.is_ok_and(|found| found.filesystem_type() == NSFS_MAGIC)
}
