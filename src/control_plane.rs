//! Store, API server, controllers and scheduler as one thing to start and to drain.
//!
//! Drains in the order in which they depend on each other: controllers and scheduler, then the
//! API server, then the store.

use crate::cli::ServerCommand;
use crate::settings::{self, ServerSettings, file};
use crate::{Failure, logging, notify, runtime};
use anyhow::Context;
use coracle_apiserver::{Server, authenticate::User};
use coracle_client::Client;
use coracle_store::Store;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Past this a component that does not stop is left behind, so that a stop always ends.
const DRAIN_MAX: Duration = Duration::from_secs(15);

pub struct ControlPlane {
    pub server: Arc<Server>,
    pub address: SocketAddr,
    store: Store,
    stop_loops: CancellationToken,
    stop_server: CancellationToken,
    loops: Vec<JoinHandle<()>>,
    serving: JoinHandle<()>,
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane").field("address", &self.address).finish_non_exhaustive()
    }
}

/// `coracle server`.
pub fn run(mut args: ServerCommand) -> Result<(), Failure> {
    file::merge(file::Targets {
        common: &mut args.common,
        server: Some(&mut args.server),
        agent: None,
    })?;
    let settings = settings::server(&args.common, &args.server)?;
    logging::start(args.common.log.as_deref(), "info")?;
    if args.restore_snapshot {
        restore(&settings.data_dir)?;
    }
    runtime()?.block_on(async {
        let plane = start(&settings).await?;
        notify::send("READY=1");
        until_signalled().await?;
        notify::send("STOPPING=1");
        plane.drain().await;
        Ok::<(), anyhow::Error>(())
    })?;
    Ok(())
}

/// Returns on SIGINT or SIGTERM.
pub async fn until_signalled() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

fn store_directory(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("server/store")
}
