//! One import or pull under way: a directory of its own, locked as long as its process lives.
//!
//! What it unpacks and what it counts on is safe from `sweep` while the lock is held; what a
//! dead process left is removed by the next that looks.

use super::{ImageError, names_in, write_atomically};
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Session {
    pub directory: PathBuf,
    _lock: Flock<File>,
}

impl Session {
    /// Called with the store's lock held, so that no sweep sees the directory before its lock.
    pub fn begin(work: &Path) -> Result<Self, ImageError> {
        let directory = work.join(hex::encode(rand::random::<[u8; 8]>()));
        let layers = directory.join("layers");
        fs::create_dir_all(&layers).map_err(ImageError::io("cannot make", &layers))?;
        let path = directory.join("lock");
        let file = File::create(&path).map_err(ImageError::io("cannot make", &path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| ImageError::io("cannot lock", &path)(errno.into()))?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// Layers (chain ids) and blobs (digits) that no one may sweep away meanwhile.
    pub fn need(&self, layers: &[String], blobs: &[&str]) -> Result<(), ImageError> {
        let lines = layers.iter().map(|layer| format!("layer {layer}\n"));
        let text: String = lines
            .chain(blobs.iter().map(|blob| format!("blob {blob}\n")))
            .collect();
        write_atomically(&self.directory.join("needs"), text.as_bytes())
    }

    /// Where a layer is unpacked to, made empty.
    pub fn new_layer(&self, chain: &str) -> Result<PathBuf, ImageError> {
        let path = self.directory.join("layers").join(chain);
        let _ = crate::tree::remove(&path);
        fs::create_dir(&path).map_err(ImageError::io("cannot make", &path))?;
        Ok(path)
    }

    /// Everything unpacked is on disk after this, so that a published layer is always whole.
    pub fn sync(&self) -> Result<(), ImageError> {
        if names_in(&self.directory.join("layers"))?.is_empty() {
            return Ok(());
        }
        let file =
            File::open(&self.directory).map_err(ImageError::io("cannot open", &self.directory))?;
        rustix::fs::syncfs(&file)
            .map_err(|errno| ImageError::io("cannot sync", &self.directory)(errno.into()))
    }

    pub fn publish_layers(&self, layers: &Path) -> Result<(), ImageError> {
        let from = self.directory.join("layers");
        let names = names_in(&from)?;
        for name in &names {
            let target = layers.join(name);
            if target.exists() {
                continue; // Another process was faster.
            }
            fs::rename(from.join(name), &target).map_err(ImageError::io("cannot move", &target))?;
        }
        if names.is_empty() {
            return Ok(());
        }
        File::open(layers)
            .and_then(|directory| directory.sync_all())
            .map_err(ImageError::io("cannot sync", layers))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = crate::tree::remove(&self.directory);
    }
}

/// What live sessions need; removes dead ones.
pub fn needs(work: &Path) -> (BTreeSet<String>, BTreeSet<String>) {
    remove_stale(work);
    let (mut layers, mut blobs) = (BTreeSet::new(), BTreeSet::new());
    for name in names_in(work).unwrap_or_default() {
        let text = fs::read_to_string(work.join(name).join("needs")).unwrap_or_default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("layer", layer)) => layers.insert(layer.to_owned()),
                Some(("blob", blob)) => blobs.insert(blob.to_owned()),
                _ => false,
            };
        }
    }
    (layers, blobs)
}

pub fn remove_stale(work: &Path) {
    for name in names_in(work).unwrap_or_default() {
        let directory = work.join(name);
        let lock = File::open(directory.join("lock")).ok();
        let free = match lock {
            Some(file) => Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok(),
            None => true,
        };
        if free {
            let _ = crate::tree::remove(&directory);
        }
    }
}
