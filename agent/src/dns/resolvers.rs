//! The node's own resolvers, as its resolv.conf has them now.
//!
//! Never the addresses that this node answers on itself: a question would go round.

use parking_lot::Mutex;
use std::fs::{self, Metadata};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// As the C library has it.
const RESOLVERS_MAX: usize = 3;
/// How often the file is looked at, at most.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
const PORT: u16 = 53;

#[derive(Debug)]
pub struct Resolvers {
    path: PathBuf,
    own: Vec<IpAddr>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    looked_at: Option<Instant>,
    version: Option<Version>,
    resolvers: Arc<[SocketAddr]>,
}

type Version = (u64, i64, i64, u64);

fn version(metadata: &Metadata) -> Version {
    (
        metadata.ino(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.size(),
    )
}

impl Resolvers {
    pub fn new(path: PathBuf, own: Vec<IpAddr>) -> Self {
        Self {
            path,
            own,
            known: Mutex::default(),
        }
    }

    /// These, whatever the file says.
    #[cfg(test)]
    pub fn of(resolvers: &[SocketAddr]) -> Self {
        let known = Known {
            looked_at: Some(Instant::now() + Duration::from_secs(86400)),
            version: None,
            resolvers: resolvers.into(),
        };
        Self {
            known: Mutex::new(known),
            ..Self::new(PathBuf::new(), Vec::new())
        }
    }

    pub fn get(&self, now: Instant) -> Arc<[SocketAddr]> {
        let mut known = self.known.lock();
        let is_fresh = known.looked_at.is_some_and(|at| now < at + LOOK_PAUSE);
        if is_fresh {
            return known.resolvers.clone();
        }
        known.looked_at = Some(now);
        let found = fs::metadata(&self.path)
            .ok()
            .map(|metadata| version(&metadata));
        if known.version.is_none() || found != known.version {
            known.version = found;
            let text = fs::read_to_string(&self.path).unwrap_or_default();
            let resolvers: Arc<[_]> = parse(&text, &self.own).into();
            if resolvers != known.resolvers {
                tracing::info!(?resolvers, "other names are asked of the node's resolvers");
            }
            known.resolvers = resolvers;
        }
        known.resolvers.clone()
    }
}

fn parse(text: &str, own: &[IpAddr]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let resolver = words.next().and_then(address);
        let resolver = resolver.filter(|one| !own.contains(&one.ip()) && !found.contains(one));
        found.extend(resolver);
    }
    found.truncate(RESOLVERS_MAX);
    found
}

/// With the link of an address that is good on one link alone: `fe80::1%eth0`.
fn address(text: &str) -> Option<SocketAddr> {
    if let Some((address, link)) = text.split_once('%') {
        let address: Ipv6Addr = address.parse().ok()?;
        let scope = nix::net::if_::if_nametoindex(link).ok();
        let scope = scope.or_else(|| link.parse().ok())?;
        return Some(SocketAddrV6::new(address, PORT, 0, scope).into());
    }
    let address: IpAddr = text.parse().ok()?;
    Some(SocketAddr::new(address, PORT))
}

#[cfg(test)]
mod tests;
