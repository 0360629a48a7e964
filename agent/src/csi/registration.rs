//! Drivers come and go with their sockets below `plugins_registry`. The kernel tells of changes.
//!
//! One task a socket: it asks who is there, registers the driver, tells it so, and takes it off
//! the list when the socket goes or is made anew. Tries are repeated, ever more slowly.

use super::messages::{Nothing, PluginInfo, RegistrationStatus};
use super::{Csi, Registered, versions};
use crate::file_watch::FileWatch;
use crate::grpc::{Channel, Endpoint, Status};
use rustix::fs::inotify::WatchFlags;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Of the agent's own directory.
pub const REGISTRY: &str = "plugins_registry";
/// The one kind of plugin that is known here.
const KIND: &str = "CSIPlugin";

/// Upstream's bounds.
const DIAL_MAX: Duration = Duration::from_secs(10);
const INFO_MAX: Duration = Duration::from_secs(1);
const TELL_MAX: Duration = Duration::from_secs(5);
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(122);
/// Sockets and directories that are looked at; a registry has a handful.
const ENTRIES_MAX: usize = 1024;

/// A socket that was made anew is another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Identity {
    inode: u64,
    changed: (i64, i64),
}

/// What is below the registry.
#[derive(Debug, Default, Eq, PartialEq)]
struct Seen {
    directories: Vec<PathBuf>,
    sockets: BTreeMap<PathBuf, Identity>,
}

fn look(registry: &Path) -> Seen {
    let mut seen = Seen {
        directories: vec![registry.to_owned()],
        ..Seen::default()
    };
    let mut at = 0;
    while let Some(directory) = seen.directories.get(at).cloned() {
        at += 1;
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            let count = seen.directories.len() + seen.sockets.len();
            // Links are not followed: they may go round in circles.
            let Ok(meta) = entry.metadata() else { continue };
            if is_hidden || count > ENTRIES_MAX {
                continue;
            }
            if meta.is_dir() {
                seen.directories.push(entry.path());
            } else if meta.file_type().is_socket() {
                let identity = Identity {
                    inode: meta.ino(),
                    changed: (meta.ctime(), meta.ctime_nsec()),
                };
                seen.sockets.insert(entry.path(), identity);
            }
        }
    }
    seen
}

/// Somebody sees to a socket until it goes.
#[derive(Debug)]
struct Kept {
    identity: Identity,
    gone: CancellationToken,
    task: JoinHandle<()>,
}

impl Csi {
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut pause = PAUSE_FIRST;
        while let Err(error) = self.introduce().await {
            tracing::warn!(error, "the node's CSINode object is not made");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let mut kept = BTreeMap::new();
        loop {
            let followed = self.follow(&mut kept, &stop).await;
            if stop.is_cancelled() {
                return;
            }
            if let Err(error) = followed {
                tracing::error!(%error, "drivers' sockets are not watched");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(PAUSE_MAX) => {}
                }
            }
        }
    }

    /// Ends with each change of the directories, which are then watched anew.
    async fn follow(
        self: &Arc<Self>,
        kept: &mut BTreeMap<PathBuf, Kept>,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let registry = self.root.join(REGISTRY);
        fs::create_dir_all(&registry)?;
        let directories = look(&registry).directories;
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE_SELF;
        let watched: Vec<_> = directories
            .iter()
            .map(|path| (path.as_path(), flags))
            .collect();
        let watch = FileWatch::open(&watched)?;
        loop {
            // Only now: what came before the watch is seen, what comes later is told.
            let seen = look(&registry);
            if seen.directories != directories {
                return Ok(());
            }
            self.reconcile(kept, seen.sockets, stop);
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                changed = watch.changed() => changed?,
            }
        }
    }

    fn reconcile(
        self: &Arc<Self>,
        kept: &mut BTreeMap<PathBuf, Kept>,
        sockets: BTreeMap<PathBuf, Identity>,
        stop: &CancellationToken,
    ) {
        kept.retain(|path, one| {
            let stays = sockets.contains_key(path);
            if !stays {
                one.gone.cancel();
            }
            stays
        });
        for (path, identity) in sockets {
            let before = match kept.remove(&path) {
                Some(same) if same.identity == identity => {
                    kept.insert(path, same);
                    continue;
                }
                other => other,
            };
            let before = before.map(|before| {
                before.gone.cancel();
                before.task
            });
            let gone = CancellationToken::new();
            let tend = self
                .clone()
                .tend(path.clone(), before, gone.clone(), stop.clone());
            let task = tokio::spawn(tend);
            let one = Kept {
                identity,
                gone,
                task,
            };
            kept.insert(path, one);
        }
    }

    /// `before` sees to the socket that had this name before.
    async fn tend(
        self: Arc<Self>,
        socket: PathBuf,
        before: Option<JoinHandle<()>>,
        gone: CancellationToken,
        stop: CancellationToken,
    ) {
        if let Some(before) = before {
            drop(before.await);
        }
        let mut pause = PAUSE_FIRST;
        let driver = loop {
            // A registration goes to its end, for what it began is undone by its name.
            let registered = tokio::select! {
                () = stop.cancelled() => return,
                registered = self.register(&socket) => registered,
            };
            match registered {
                Ok(driver) => break driver,
                Err(error) => {
                    tracing::warn!(socket = %socket.display(), error, "a plugin is not registered");
                }
            }
            tokio::select! {
                () = gone.cancelled() => return,
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        };
        let (driver, channel) = driver;
        tracing::info!(driver, "a driver of volumes is registered");
        tokio::select! {
            () = gone.cancelled() => {}
            () = stop.cancelled() => return, // It stays registered for the next agent.
        }
        tracing::info!(driver, "a driver of volumes is gone");
        self.drop_driver(&driver, &channel).await;
    }

    /// Nothing when another one has the name meanwhile, as an update of a driver leaves it.
    async fn drop_driver(&self, driver: &str, channel: &Arc<Channel>) {
        let _turn = self.registrations.hold(driver).await;
        self.uninstall_own(driver, channel).await;
    }

    /// In the name's turn.
    async fn uninstall_own(&self, driver: &str, channel: &Arc<Channel>) {
        if !self.forget(driver, channel) {
            return;
        }
        if let Err(error) = self.uninstall(driver).await {
            tracing::warn!(
                driver,
                error,
                "a driver that is gone stays in the node's objects"
            );
        }
    }

    /// False when it was not the one of that name.
    pub(super) fn forget(&self, driver: &str, channel: &Arc<Channel>) -> bool {
        let mut drivers = self.drivers.lock();
        let known = drivers.get(driver);
        let is_it = known.is_some_and(|known| Arc::ptr_eq(&known.channel, channel));
        if is_it {
            drivers.remove(driver);
        }
        is_it
    }

    /// The name of the driver and the way to it; errors are told to it too.
    async fn register(&self, socket: &Path) -> Result<(String, Arc<Channel>), String> {
        let plugin = Channel::new(Endpoint::Unix(socket.to_owned()), super::MESSAGE_BYTES_MAX);
        let shown = socket.display();
        let dialed = tokio::time::timeout(DIAL_MAX, plugin.connect()).await;
        dialed
            .map_err(|_| format!("dial failed at socket {shown}, err: context deadline exceeded"))?
            .map_err(|error| format!("dial failed at socket {shown}, err: {error}"))?;
        let path = "/pluginregistration.Registration/GetInfo";
        let info: Result<PluginInfo, Status> = plugin.unary(path, &Nothing {}, INFO_MAX).await;
        let info = info.map_err(|error| {
            format!("failed to get plugin info using RPC GetInfo at socket {shown}, err: {error}")
        })?;
        match self.admit(socket, &info).await {
            Ok(channel) => {
                if let Err(error) = tell(&plugin, None).await {
                    self.drop_driver(&info.name, &channel).await;
                    return Err(format!(
                        "failed to send registration status at socket {shown}, err: {error}"
                    ));
                }
                Ok((info.name, channel))
            }
            Err(error) => {
                let error = format!("RegisterPlugin error -- {error}");
                if let Err(status) = tell(&plugin, Some(&error)).await {
                    tracing::debug!(%status, "a plugin does not hear why it is not registered");
                }
                Err(error)
            }
        }
    }

    async fn admit(&self, socket: &Path, info: &PluginInfo) -> Result<Arc<Channel>, String> {
        let (kind, name) = (&info.kind, &info.name);
        if kind != KIND {
            let socket = socket.display();
            return Err(format!(
                "no handler registered for plugin type: {kind} at socket {socket}"
            ));
        }
        let endpoint = match info.endpoint.as_str() {
            "" => Endpoint::Unix(socket.to_owned()),
            path => Endpoint::parse(path)?,
        };
        let _turn = self.registrations.hold(name).await;
        let known = self.drivers.lock().get(name).cloned();
        let known = known.as_ref().map(|known| &known.version);
        let version = versions::check("ValidatePlugin", name, &info.supported_versions, known);
        let version = version.map_err(|error| {
            let endpoint = &info.endpoint;
            format!(
                "plugin validation failed with err: validation failed for CSI Driver {name} at \
                 endpoint {endpoint}: {error}"
            )
        })?;
        let channel = Self::channel(endpoint);
        let registered = Registered {
            channel: channel.clone(),
            version,
        };
        self.drivers.lock().insert(name.clone(), registered);
        let installed = async {
            let node = self.node(name)?;
            let info = node.info().await.map_err(|status| status.to_string())?;
            self.install(name, &info).await
        };
        if let Err(error) = installed.await {
            self.uninstall_own(name, &channel).await;
            return Err(format!("plugin registration failed with err: {error}"));
        }
        Ok(channel)
    }
}

async fn tell(plugin: &Channel, error: Option<&str>) -> Result<(), Status> {
    let status = RegistrationStatus {
        plugin_registered: error.is_none(),
        error: error.unwrap_or_default().to_owned(),
    };
    let path = "/pluginregistration.Registration/NotifyRegistrationStatus";
    let told: Result<Nothing, Status> = plugin.unary(path, &status, TELL_MAX).await;
    told.map(drop)
}
