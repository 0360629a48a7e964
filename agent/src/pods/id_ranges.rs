//! Which ids of the node a pod with a user namespace has: a range of its own, never shared.
//!
//! A range is written in the pod's directory before it is used, and is free again when that
//! directory is gone. Nothing of it is kept in memory.

use crate::atomic_file;
use crate::runtime::IdRange;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

const FILE: &str = "userns";
const IDS_PER_POD: u32 = 65_536;
/// As far as 32 bits go, without the node's own ids.
const RANGES_MAX: u32 = u32::MAX / IDS_PER_POD - 1;

#[derive(Debug, thiserror::Error)]
pub enum IdRangeError {
    #[error("could not find an empty slot to allocate a user namespace")]
    Full,
    #[error("invalid user namespace mappings file: {0}")]
    Malformed(String),
    #[error("cannot keep the ids of a user namespace: {0}")]
    Disk(#[from] io::Error),
}

/// As upstream's kubelet writes it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    #[serde(rename = "uidMappings")]
    users: [Mapping; 1],
    #[serde(rename = "gidMappings")]
    groups: [Mapping; 1],
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Mapping {
    host_id: u32,
    container_id: u32,
    length: u32,
}

/// One allocation at a time.
#[derive(Debug, Default)]
pub struct IdRanges(Mutex<()>);

impl IdRanges {
    /// The pod's range: the one it has, or a new one. `pods` is the directory of all pods. Begins
    /// to look where `random` says, so that agents on one machine hardly ever meet. Reads all of
    /// it and waits for the disk: not for a thread that must not block.
    pub fn of_pod(&self, pods: &Path, uid: &str, random: u32) -> Result<IdRange, IdRangeError> {
        let _one = self.0.lock();
        let directory = pods.join(uid);
        if let Some(range) = read(&directory)? {
            return Ok(range);
        }
        let mut taken = BTreeSet::new();
        for entry in fs::read_dir(pods)? {
            // A file that cannot be read may be of any range: none is given out then.
            taken.extend(read(&entry?.path())?.map(|range| range.first));
        }
        let start = random % RANGES_MAX;
        let mut all = (0..RANGES_MAX)
            .map(|number| (start + number) % RANGES_MAX + 1)
            .map(|number| number * IDS_PER_POD);
        let first = all.find(|first| !taken.contains(first));
        let range = IdRange {
            first: first.ok_or(IdRangeError::Full)?,
            count: IDS_PER_POD,
        };
        write(&directory, range)?;
        Ok(range)
    }
}

fn read(directory: &Path) -> Result<Option<IdRange>, IdRangeError> {
    let text = match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let malformed = |why: &str| IdRangeError::Malformed(why.to_owned());
    let kept: Kept = serde_json::from_str(&text).map_err(|error| malformed(&error.to_string()))?;
    let mapping = kept.users[0];
    if mapping != kept.groups[0] || mapping.container_id != 0 {
        return Err(malformed(
            "users and groups differ, or root is not among them",
        ));
    }
    let is_ours = mapping.length == IDS_PER_POD
        && mapping.host_id >= IDS_PER_POD
        && mapping.host_id.is_multiple_of(IDS_PER_POD);
    if !is_ours {
        return Err(malformed("the range is not one that is given out"));
    }
    Ok(Some(IdRange {
        first: mapping.host_id,
        count: mapping.length,
    }))
}

fn write(directory: &Path, range: IdRange) -> io::Result<()> {
    let mapping = Mapping {
        host_id: range.first,
        container_id: 0,
        length: range.count,
    };
    let kept = Kept {
        users: [mapping],
        groups: [mapping],
    };
    fs::create_dir_all(directory)?;
    // After a power cut the range must still be taken.
    atomic_file::write(&directory.join(FILE), &serde_json::to_vec(&kept)?, 0o644)
}

#[cfg(test)]
mod tests;
