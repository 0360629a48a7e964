//! Takes away what a node made on its machine: containers, mounts, sandboxes, bridge and links.

use crate::WipeError;
use crate::atomic_file;
use crate::kubelet_dir;
use crate::mounts::unmount_below;
use crate::network;
use crate::runtime;
use std::fs;
use std::io;
use std::path::Path;

/// What goes; the images stay.
const DIRECTORIES: [&str; 11] = [
    "containers",
    "sandboxes",
    "parts",
    "pods",
    "plugins",
    "plugins_registry",
    "network",
    "network.cni",
    "logs",
    "pki",
    "pki-joined",
];

const FILES: [&str; 6] = [
    "network.cidr",
    "network.peers",
    "network.encryption",
    "network.wireguard",
    network::view::FILE,
    "network.policy",
];

/// `data_dir` is the agent's own directory. A node that never was is wiped too.
pub async fn wipe(data_dir: &Path) -> Result<(), WipeError> {
    if !data_dir.exists() {
        return Ok(());
    }
    {
        // While sandboxes have their namespaces.
        let _no_agent = runtime::embedded::lock(data_dir)?;
        let directory = data_dir.join("network");
        let detached = network::detach_from_plugins(&directory).await;
        detached.map_err(|source| WipeError::Disk {
            action: "list the sandboxes on networks of plugins beside",
            path: directory,
            source,
        })?;
    }
    runtime::wipe(data_dir).await?;
    let network = network::remove_all().await;
    network.map_err(|error| WipeError::Network(Box::new(error)))?;
    let disk = |action: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| WipeError::Disk {
            action,
            path,
            source,
        }
    };
    let whole = fs::canonicalize(data_dir).map_err(disk("read", data_dir))?;
    for file in FILES.map(|name| whole.join(name)) {
        atomic_file::remove(&file).map_err(disk("remove", &file))?;
    }
    kubelet_dir::unlink(&whole).map_err(disk("forget", &whole))?;
    for name in DIRECTORIES {
        let directory = whole.join(name);
        unmount_below(&directory).map_err(disk("unmount what is below", &directory))?;
        match crate::tree::remove(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(disk("remove", &directory)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
