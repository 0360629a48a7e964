//! The cpu and memory that a pod was given. While it is being resized, its spec asks for other.
//!
//! What was given is kept in the pod's directory, so that it outlives the agent: the file names
//! what was given, and what containers still run with where that is something else.

use super::asked;
use super::state::{init_containers, spec};
use crate::atomic_file;
use crate::node::allocatable::{CPU, MEMORY};
use crate::runtime::record;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

const FILE: &str = "sizes.json";
/// All else in `resources` never changes.
pub const RESIZABLE: [&str; 2] = [CPU, MEMORY];

/// Resources by container, and the pod's own.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Sizes {
    pub pod: Option<ResourceRequirements>,
    pub containers: BTreeMap<String, ResourceRequirements>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Kept {
    pub allocated: Sizes,
    /// What containers still have, by name.
    pub behind: BTreeMap<String, ResourceRequirements>,
    /// The pod's own group still has former limits.
    pub is_pod_behind: bool,
}

/// What counts on a node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Amounts {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
}

impl Sizes {
    pub fn of(pod: &Pod) -> Self {
        let spec = spec(pod);
        let all = init_containers(spec).iter().chain(&spec.containers);
        let size = |container: &Container| {
            let resources = container.resources.clone().unwrap_or_default();
            (container.name.clone(), resources)
        };
        Self {
            pod: spec.resources.clone(),
            containers: all.map(size).collect(),
        }
    }

    /// True for a pod that can never be resized, since it has nothing to be changed.
    pub fn is_nothing(&self) -> bool {
        let nothing = ResourceRequirements::default();
        let mut all = self.pod.iter().chain(self.containers.values());
        all.all(|one| same(one, &nothing))
    }

    pub fn fits(&self, pod: &Pod) -> bool {
        let wanted = Self::of(pod);
        let nothing = ResourceRequirements::default();
        let own = |sizes: &Self| sizes.pod.clone().unwrap_or_default();
        same(&own(self), &own(&wanted))
            && wanted
                .containers
                .iter()
                .all(|(name, size)| same(self.containers.get(name).unwrap_or(&nothing), size))
    }

    /// The pod with these in the place of its own.
    pub fn applied_to(&self, pod: &Pod) -> Pod {
        let mut pod = pod.clone();
        let Some(spec) = &mut pod.spec else {
            return pod;
        };
        spec.resources.clone_from(&self.pod);
        let inits = spec.init_containers.iter_mut().flatten();
        for container in inits.chain(&mut spec.containers) {
            if let Some(size) = self.containers.get(&container.name) {
                container.resources = Some(size.clone());
            }
        }
        pod
    }
}

impl Kept {
    /// None when there is none, or none that can be read.
    pub fn load(directory: &Path) -> Option<Self> {
        let path = directory.join(FILE);
        let read = record::read_if_there(&path);
        let path = path.display();
        read.inspect_err(|error| tracing::warn!(%path, %error, "what a pod was given is forgotten"))
            .ok()
            .flatten()
    }

    pub fn save(&self, directory: &Path) -> io::Result<()> {
        if self.allocated.is_nothing() {
            return Ok(());
        }
        fs::create_dir_all(directory)?;
        atomic_file::write(&directory.join(FILE), &serde_json::to_vec(self)?, 0o644)
    }

    /// Takes the sizes of a pod for what it is to have from now on.
    pub fn allocate(&mut self, pod: &Pod) {
        let wanted = Sizes::of(pod);
        for (name, old) in &self.allocated.containers {
            let new = wanted.containers.get(name);
            if new.is_some_and(|new| !same(old, new)) {
                self.behind
                    .entry(name.clone())
                    .or_insert_with(|| old.clone());
            }
        }
        self.allocated = wanted;
        self.is_pod_behind = true;
        self.settle();
    }

    /// A container has this now.
    pub fn has(&mut self, name: &str, size: &ResourceRequirements) {
        self.behind.insert(name.to_owned(), size.clone());
        self.settle();
    }

    /// Forgets who is behind no more.
    fn settle(&mut self) {
        let allocated = &self.allocated.containers;
        self.behind
            .retain(|name, has| allocated.get(name).is_some_and(|wanted| !same(has, wanted)));
    }
}

pub fn amount(list: Option<&BTreeMap<String, Written>>, name: &str) -> Option<Quantity> {
    Quantity::parse(&list?.get(name)?.0).ok()
}

/// Whether both come to the same cpu and memory, however they are written.
pub fn same(left: &ResourceRequirements, right: &ResourceRequirements) -> bool {
    RESIZABLE.iter().all(|name| same_one(left, right, name))
}

pub fn same_one(left: &ResourceRequirements, right: &ResourceRequirements, name: &str) -> bool {
    let of = |list: Option<&BTreeMap<String, Written>>| {
        amount(list, name).filter(|amount| !amount.is_zero())
    };
    of(left.requests.as_ref()) == of(right.requests.as_ref())
        && of(left.limits.as_ref()) == of(right.limits.as_ref())
}

/// What a pod was given, by the file in its directory, or else what it asks for.
pub fn given(directory: &Path, pod: &Pod) -> Amounts {
    match Kept::load(directory) {
        Some(kept) => requests(&kept.allocated.applied_to(pod)),
        None => requests(pod),
    }
}

/// What a pod takes of its node.
pub fn requests(pod: &Pod) -> Amounts {
    Amounts {
        cpu_milli: asked::request(pod, CPU).milli_value(),
        memory_bytes: asked::request(pod, MEMORY).value(),
    }
}

#[cfg(test)]
mod tests;
