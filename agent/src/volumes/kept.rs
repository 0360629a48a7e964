//! What came of a pod's claims and drivers' volumes, in the pod's directory: `claims.json`.
//!
//! Written before anything is asked of a driver and removed after all of it was undone, so that
//! whoever comes next knows what is to be undone, and where containers find their volumes.

use super::{VolumeError, disk};
use crate::atomic_file;
use crate::runtime::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FILE: &str = "claims.json";

/// By the pod's own names of its volumes.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Kept(pub BTreeMap<String, Found>);

/// A volume as this node has it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Found {
    /// The PersistentVolume's name; the pod's own for one that a driver makes with the pod.
    pub name: String,
    /// What containers see: a directory, or a device's file.
    pub path: PathBuf,
    pub is_device: bool,
    pub read_only: bool,
    /// Processes of the pod are in it, beside their own groups.
    pub group: Option<i64>,
    /// None for a volume of the node's own.
    pub driver: Option<OfDriver>,
    /// The pod has it no more; what all pods of the node share is not undone yet.
    pub is_let_go: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct OfDriver {
    pub driver: String,
    pub handle: String,
    /// It lives as long as the pod, and is never staged.
    pub is_ephemeral: bool,
    /// A controller attaches it to the node.
    pub is_attached: bool,
}

impl Found {
    /// Whether it is the PersistentVolume of that name: one that lives with its pod may have the
    /// same.
    pub fn is_of(&self, volume: &str) -> bool {
        let driver = self.driver.as_ref();
        self.name == volume && !driver.is_some_and(|driver| driver.is_ephemeral)
    }
}

impl OfDriver {
    /// As the node's status names it.
    pub fn unique_name(&self) -> String {
        format!("kubernetes.io/csi/{}^{}", self.driver, self.handle)
    }
}

impl Kept {
    /// Nothing for a pod without such volumes.
    pub fn load(pod_directory: &Path) -> Result<Self, VolumeError> {
        let path = pod_directory.join(FILE);
        let kept = record::read_if_there(&path).map_err(disk("read", &path))?;
        Ok(kept.unwrap_or_default())
    }

    pub fn save(&self, pod_directory: &Path) -> Result<(), VolumeError> {
        let path = pod_directory.join(FILE);
        fs::create_dir_all(pod_directory).map_err(disk("make", pod_directory))?;
        let text = serde_json::to_vec(self).map_err(io::Error::other);
        text.and_then(|text| atomic_file::write(&path, &text, 0o600))
            .map_err(disk("write", &path))
    }

    /// Once nothing of it is left.
    pub fn forget(pod_directory: &Path) -> Result<(), VolumeError> {
        let path = pod_directory.join(FILE);
        atomic_file::remove(&path).map_err(disk("remove", &path))
    }

    pub fn let_go(&mut self) {
        for found in self.0.values_mut() {
            found.is_let_go = true;
        }
    }

    /// The name of two different volumes that have one place: a driver's, which lives with the pod,
    /// and the one of a claim.
    pub fn collision(&self) -> Option<&str> {
        let id = |found: &Found| {
            let driver = found.driver.as_ref();
            driver.map(|driver| (driver.driver.clone(), driver.handle.clone()))
        };
        let mut all = self.0.values().enumerate();
        let collides = |(number, found): &(usize, &Found)| {
            let before = self.0.values().take(*number);
            let mut same = before.filter(|other| other.path == found.path);
            same.any(|other| id(other) != id(found))
        };
        all.find(collides).map(|(_, found)| found.name.as_str())
    }

    pub fn groups(&self) -> impl Iterator<Item = i64> {
        self.0.values().filter_map(|found| found.group)
    }
}

/// Whether another pod of the node has what `is_it` says. What cannot be read may be it.
pub fn others_have(pods: &Path, own_uid: &str, is_it: impl Fn(&Found) -> bool) -> bool {
    let entries = fs::read_dir(pods).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy() != own_uid)
        .any(|entry| match Kept::load(&entry.path()) {
            Ok(kept) => kept.0.values().any(|one| !one.is_let_go && is_it(one)),
            Err(error) => {
                tracing::warn!(%error, "what volumes a pod has is not known");
                true
            }
        })
}

#[cfg(test)]
mod tests;
