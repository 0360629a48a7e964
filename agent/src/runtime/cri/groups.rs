//! The control groups of pods whose containers another runtime makes: names as its driver wants
//! them, and limits that are set here.
//!
//! With systemd's driver a pod is a slice, whose name says where it is; without, a directory.

use super::super::cgroups::Hierarchies;
use super::super::embedded::own_cgroup;
use super::super::{RuntimeError, contract::*};
use std::path::Path;

#[derive(Debug)]
pub struct Groups {
    hierarchies: Hierarchies,
    /// `/coracle-1a2b3c4d`, or the first part of the slices' names.
    root: String,
    is_systemd: bool,
}

impl Groups {
    pub fn open(data_dir: &Path, is_systemd: bool) -> Result<Self, RuntimeError> {
        let io = |action: &str| {
            let action = action.to_owned();
            move |source| RuntimeError::Io { action, source }
        };
        let data_dir = std::fs::canonicalize(data_dir).map_err(io("cannot find the data"))?;
        let hierarchies = Hierarchies::of_host();
        let hierarchies = hierarchies.map_err(io("cannot read the mounted cgroups"))?;
        let mut root = own_cgroup(&data_dir);
        if is_systemd {
            root = root.replace(['/', '-'], "");
        } else {
            let made = hierarchies.make_root(&root);
            made.map_err(io(&format!("cannot make the cgroup {root}")))?;
        }
        Ok(Self {
            hierarchies,
            root,
            is_systemd,
        })
    }

    /// Of a pod, from the root of each hierarchy.
    pub fn pod(&self, cgroup: &str) -> String {
        let name = cgroup.trim_matches('/');
        if !self.is_systemd {
            return format!("{}/{name}", self.root);
        }
        slices(&self.root, name).fold(String::new(), |path, slice| path + "/" + &slice)
    }

    /// What the runtime is told.
    pub fn parent(&self, cgroup: &str) -> String {
        if !self.is_systemd {
            return self.pod(cgroup);
        }
        slices(&self.root, cgroup.trim_matches('/'))
            .last()
            .unwrap_or_default()
    }

    /// None where the runtime chooses the name.
    pub fn container(&self, cgroup: &str, id: &ContainerId) -> Option<String> {
        (!self.is_systemd).then(|| format!("{}/{id}", self.pod(cgroup)))
    }

    pub fn make_pod(&self, cgroup: &str, resources: &Resources) -> Result<(), RuntimeError> {
        let group = self.pod(cgroup);
        let made = self.hierarchies.make_pod(&group, resources);
        made.map_err(|source| RuntimeError::Io {
            action: format!("cannot make the cgroup {group}"),
            source,
        })
    }

    /// When nothing is in it.
    pub fn remove_pod(&self, cgroup: &str) {
        self.hierarchies.remove(&self.pod(cgroup));
    }

    pub async fn clear_pod(&self, cgroup: &str) {
        // A sandbox that is not ours has none.
        if !cgroup.is_empty() {
            self.hierarchies.clear(&self.pod(cgroup)).await;
        }
    }

    /// Of all pods.
    fn root(&self) -> String {
        match self.is_systemd {
            true => format!("/{}.slice", self.root),
            false => self.root.clone(),
        }
    }

    /// All pods.
    pub async fn clear(&self) {
        self.hierarchies.clear(&self.root()).await;
    }

    pub fn total_usage(&self) -> Option<TotalUsage> {
        let root = self.root();
        Some(TotalUsage {
            usage: self.hierarchies.usage(&root)?,
            memory_limit_bytes: self.hierarchies.memory_limit_bytes(&root),
        })
    }

    pub fn limit_total(&self, resources: &Resources) -> Result<(), RuntimeError> {
        let limited = self.hierarchies.limit_all(&self.root(), resources);
        limited.map_err(|error| RuntimeError::Failed(error.to_string()))
    }

    pub fn limits_swap(&self) -> bool {
        !self.is_systemd && self.hierarchies.limits_swap(&self.root)
    }

    pub fn usage(&self, group: &str) -> Option<Usage> {
        self.hierarchies.usage(group)
    }

    pub fn change(&self, group: &str, to: &Resources) -> Result<(), RuntimeError> {
        let changed = self.hierarchies.change(group, to);
        changed.map_err(|source| RuntimeError::Io {
            action: format!("cannot change the limits of {group}"),
            source,
        })
    }

    pub fn limits(&self, group: &str, asked: &Resources) -> Limits {
        Limits {
            resources: self.hierarchies.read(group, asked),
            memory_usage_bytes: self.hierarchies.memory_usage_bytes(group).unwrap_or(0),
        }
    }
}

/// `a.slice`, `a-b.slice`, `a-b-c.slice`: the dash is what separates, so names have none.
fn slices<'a>(root: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let parts = name.split('/').map(|part| part.replace('-', "_"));
    let all = std::iter::once(root.to_owned()).chain(parts);
    all.scan(String::new(), |whole, part| {
        if !whole.is_empty() {
            whole.push('-');
        }
        whole.push_str(&part);
        Some(format!("{whole}.slice"))
    })
}
