//! Parts of volumes (`subPath`), bound to places that only the agent writes to, where the runtime
//! takes them from. A sandbox has a directory of them, which goes with it.

use super::super::{RuntimeError, contract::*};
use crate::beneath;
use crate::mounts::unmount_below;
use nix::mount::{MsFlags, mount};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Parts {
    directory: PathBuf,
}

impl Parts {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The mounts of a container that show a part are turned into mounts of all of that part.
    pub fn bind(
        &self,
        sandbox: &SandboxId,
        config: &mut ContainerConfig,
    ) -> Result<(), RuntimeError> {
        let is_part =
            |mount: &Mount| mount.image.is_empty() && !mount.sub_path.as_os_str().is_empty();
        let name = format!("{}-{}", config.name, config.attempt);
        let directory = self.directory.join(&sandbox.0).join(name);
        for (number, mount) in config.mounts.iter_mut().enumerate() {
            if is_part(mount) {
                let place = directory.join(number.to_string());
                bind_one(mount, &place).map_err(|source| RuntimeError::Io {
                    action: format!(
                        "failed to prepare subPath for {}",
                        mount.container_path.display()
                    ),
                    source,
                })?;
                mount.host_path = place;
                mount.sub_path = PathBuf::new();
            }
        }
        Ok(())
    }

    pub fn remove(&self, sandbox: &SandboxId) -> Result<(), RuntimeError> {
        remove(&self.directory.join(&sandbox.0))
    }

    /// Of sandboxes that went while no agent looked.
    pub fn sweep<'a>(
        &self,
        alive: impl Iterator<Item = &'a SandboxId>,
    ) -> Result<(), RuntimeError> {
        let alive: BTreeSet<&str> = alive.map(|id| id.0.as_str()).collect();
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            if !alive.contains(entry.file_name().to_string_lossy().as_ref()) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn bind_one(shown: &Mount, place: &Path) -> io::Result<()> {
    let opened = beneath::open(&shown.host_path, &shown.sub_path).map_err(io::Error::other)?;
    let source = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    // Left by a try before this one.
    unmount_below(place)?;
    if fs::metadata(&source)?.is_dir() {
        fs::create_dir_all(place)?;
    } else {
        File::options().create(true).append(true).open(place)?;
    }
    let none = None::<&str>;
    mount(Some(&source), place, none, MsFlags::MS_BIND, none)?;
    Ok(())
}

fn remove(directory: &Path) -> Result<(), RuntimeError> {
    let removed = unmount_below(directory).and_then(|()| crate::tree::remove(directory));
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RuntimeError::Io {
            action: format!("cannot remove {}", directory.display()),
            source,
        }),
        _ => Ok(()),
    }
}
