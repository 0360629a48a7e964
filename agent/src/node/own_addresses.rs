//! By which addresses others know this node: those that it was told, or one that is found and that
//! is followed when the machine loses it for another.

use super::facts::{address_towards, first_global_address};
use crate::families::Families;
use crate::network;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A machine that gets another address has none for a moment.
const SETTLE: Duration = Duration::from_millis(200);
/// A look without a reason: the way to the server may come after the address.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Never empty. Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct OwnAddresses {
    told: watch::Sender<Families<IpAddr>>,
    /// None for addresses that stay as they are.
    search: Option<Arc<Search>>,
}

#[derive(Debug)]
struct Search {
    /// Where the API server is, if it is named by an address.
    server: Option<SocketAddr>,
}

impl From<IpAddr> for OwnAddresses {
    fn from(address: IpAddr) -> Self {
        Self {
            told: watch::Sender::new(address.into()),
            search: None,
        }
    }
}

impl OwnAddresses {
    /// Those that were set; else the source address towards the server or, when that is on this
    /// machine, towards the rest of the world, or any that it has.
    pub fn find(set: Families<IpAddr>, server: Option<SocketAddr>) -> Self {
        if !set.is_empty() {
            return Self {
                told: watch::Sender::new(set),
                search: None,
            };
        }
        let found = address_towards(server).or_else(first_global_address);
        let found = found.unwrap_or_else(|| {
            tracing::warn!("this machine has no address but its own; others cannot reach its pods");
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        });
        Self {
            told: watch::Sender::new(found.into()),
            search: Some(Arc::new(Search { server })),
        }
    }

    pub fn all(&self) -> Families<IpAddr> {
        *self.told.borrow()
    }

    pub fn first(&self) -> IpAddr {
        self.all().first().expect("a node has an address")
    }

    pub fn subscribe(&self) -> watch::Receiver<Families<IpAddr>> {
        self.told.subscribe()
    }

    /// Looks whenever links or addresses change, and now and then, until `stop`.
    pub async fn follow(self, stop: CancellationToken) {
        let Some(search) = self.search.clone() else {
            return;
        };
        let mut changes = network::link_changes();
        loop {
            self.look(&search);
            tokio::select! {
                () = stop.cancelled() => return,
                () = changes.next() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    fn look(&self, search: &Search) {
        let current = self.first();
        let is_here = |address: IpAddr| {
            let mut all = network::machine_addresses().into_iter();
            all.any(|(_, own)| own == address)
        };
        let next = next(
            current,
            is_here,
            || address_towards(search.server),
            first_global_address,
        );
        if let Some(next) = next {
            tracing::warn!(from = %current, to = %next, "the node has another address");
            self.told.send_replace(next.into());
        }
    }
}

/// The address of a node is kept for as long as the machine has it, wherever routes may lead.
fn next(
    current: IpAddr,
    is_here: impl Fn(IpAddr) -> bool,
    routed: impl Fn() -> Option<IpAddr>,
    any: impl Fn() -> Option<IpAddr>,
) -> Option<IpAddr> {
    let has_none = current.is_loopback();
    if !has_none && is_here(current) {
        return None;
    }
    let found = routed().or_else(|| any().filter(|_| has_none));
    found.filter(|found| *found != current)
}

#[cfg(test)]
mod tests;
