//! Which sandbox has which addresses: one small file an address, named by it.
//!
//! Invariants: no address is with two sandboxes; an address is not given again while its file is
//! there; a file without a sandbox is taken back at the next start. Nothing is flushed: after a
//! power cut there is no sandbox left that could hold an address.

use super::subnet::Subnet;
use crate::families::Families;
use crate::runtime::SandboxId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("no address is left in the node's podCIDR")]
    Exhausted,
    #[error("cannot {action} {path}")]
    Disk {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

#[derive(Debug)]
pub struct Addresses {
    directory: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    by_address: BTreeMap<IpAddr, SandboxId>,
    /// Where the search goes on, so that an address rests before it is given again: of IPv4, of IPv6.
    cursors: [u64; 2],
}

impl Held {
    fn of(&self, sandbox: &SandboxId) -> Families<IpAddr> {
        let known = self.by_address.iter();
        let known = known.filter(|(_, owner)| *owner == sandbox);
        known.map(|(address, _)| *address).collect()
    }
}

impl Addresses {
    pub fn open(directory: PathBuf) -> Result<Self, AddressError> {
        let failed = |action, source| AddressError::Disk {
            action,
            path: directory.clone(),
            source,
        };
        fs::create_dir_all(&directory).map_err(|source| failed("make", source))?;
        let mut held = Held::default();
        let entries = fs::read_dir(&directory).map_err(|source| failed("read", source))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(address) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let owner = fs::read_to_string(entry.path()).unwrap_or_default();
            held.by_address.insert(address, SandboxId(owner));
        }
        Ok(Self {
            directory,
            held: Mutex::new(held),
        })
    }

    /// The sandbox's addresses, one of each network; the same ones when it has some.
    pub fn allocate(
        &self,
        sandbox: &SandboxId,
        subnets: Families<Subnet>,
    ) -> Result<Families<IpAddr>, AddressError> {
        let mut held = self.held.lock();
        let known = held.of(sandbox);
        subnets
            .iter()
            .map(|subnet| match known.of(subnet.is_ipv4()) {
                Some(address) => Ok(address),
                None => self.take(&mut held, sandbox, subnet),
            })
            .collect()
    }

    fn take(
        &self,
        held: &mut Held,
        sandbox: &SandboxId,
        subnet: Subnet,
    ) -> Result<IpAddr, AddressError> {
        let count = subnet.pod_count();
        let family = usize::from(!subnet.is_ipv4());
        let start = held.cursors[family];
        let free = (0..count)
            .map(|step| (start + step) % count)
            .find(|index| !held.by_address.contains_key(&subnet.pod(*index)));
        let index = free.ok_or(AddressError::Exhausted)?;
        let address = subnet.pod(index);
        let path = self.directory.join(address.to_string());
        fs::write(&path, &sandbox.0).map_err(|source| AddressError::Disk {
            action: "write",
            path,
            source,
        })?;
        held.cursors[family] = (index + 1) % count;
        held.by_address.insert(address, sandbox.clone());
        Ok(address)
    }

    pub fn release(&self, sandbox: &SandboxId) -> Result<(), AddressError> {
        let known = self.of(sandbox);
        known.iter().try_for_each(|address| self.forget(address))
    }

    /// That of IPv4 first.
    pub fn of(&self, sandbox: &SandboxId) -> Families<IpAddr> {
        self.held.lock().of(sandbox)
    }

    pub fn has_any(&self) -> bool {
        !self.held.lock().by_address.is_empty()
    }

    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) -> Result<(), AddressError> {
        let lost: Vec<_> = {
            let held = self.held.lock();
            let lost = held
                .by_address
                .iter()
                .filter(|(_, owner)| !alive.contains(owner));
            lost.map(|(address, _)| *address).collect()
        };
        for address in lost {
            self.forget(address)?;
        }
        Ok(())
    }

    /// The file goes first: a crash in between leaves a free address.
    fn forget(&self, address: IpAddr) -> Result<(), AddressError> {
        let path = self.directory.join(address.to_string());
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(AddressError::Disk {
                action: "remove",
                path,
                source,
            }),
            _ => {
                self.held.lock().by_address.remove(&address);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
