//! Limits of what runs, changed and read. What was asked for last is kept beside the record, since
//! the kernel keeps it rounded.

use super::super::record::{self, RESOURCES};
use super::super::{RuntimeError, contract::*};
use super::container::Container;
use super::sandbox::Sandbox;
use super::{Inner, io_error};
use parking_lot::Mutex;
use std::path::Path;

/// The last that was asked for: from the file, else from the record.
#[derive(Debug)]
pub struct Asked(Mutex<Resources>);

impl Asked {
    pub fn load(directory: &Path, first: &Resources) -> Self {
        let kept = record::read(&directory.join(RESOURCES)).ok();
        Self(Mutex::new(kept.unwrap_or_else(|| first.clone())))
    }

    pub fn get(&self) -> Resources {
        self.0.lock().clone()
    }

    fn set(&self, directory: &Path, to: Resources) -> Result<(), RuntimeError> {
        let path = directory.join(RESOURCES);
        record::write(&path, &to).map_err(io_error(format!("cannot write {}", path.display())))?;
        *self.0.lock() = to;
        Ok(())
    }
}

impl Inner {
    pub fn update_container(
        &self,
        container: &Container,
        to: &Resources,
    ) -> Result<(), RuntimeError> {
        let group = container.record.cgroup();
        self.change(&group, to)?;
        let to = to.over(&container.asked.get());
        container.asked.set(&container.directory, to)
    }

    pub fn update_sandbox(&self, sandbox: &Sandbox, to: &Resources) -> Result<(), RuntimeError> {
        self.change(&sandbox.record.cgroup, to)?;
        let to = to.over(&sandbox.asked.get());
        sandbox.asked.set(&sandbox.directory, to)
    }

    fn change(&self, group: &str, to: &Resources) -> Result<(), RuntimeError> {
        let changed = self.hierarchies.change(group, to);
        changed.map_err(io_error(format!("cannot change the limits of {group}")))
    }

    pub fn container_limits(&self, container: &Container) -> Limits {
        self.limits(&container.record.cgroup(), &container.asked.get())
    }

    pub fn sandbox_limits(&self, sandbox: &Sandbox) -> Limits {
        self.limits(&sandbox.record.cgroup, &sandbox.asked.get())
    }

    fn limits(&self, group: &str, asked: &Resources) -> Limits {
        Limits {
            resources: self.hierarchies.read(group, asked),
            memory_usage_bytes: self.hierarchies.memory_usage_bytes(group).unwrap_or(0),
        }
    }
}
