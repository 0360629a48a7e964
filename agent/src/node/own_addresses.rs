//! By which addresses others know this node: those that it was told, or one that is found and that
//! is followed when the machine loses it for another. One that only was the first at hand, such as
//! that of a bridge of Docker's, is given up for one by which a route leads.

use super::facts::{address_towards, first_global_address};
use crate::families::Families;
use crate::network;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
    search: Option<Search>,
}

#[derive(Clone, Copy, Debug)]
struct Search {
    /// Where the API server is, if it is named by an address.
    server: Option<SocketAddr>,
    /// No route led by the address: it was the first that was found.
    is_makeshift: bool,
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
        let routed = address_towards(server);
        let found = routed.or_else(first_global_address).unwrap_or_else(|| {
            tracing::warn!("this machine has no address but its own; others cannot reach its pods");
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        });
        Self {
            told: watch::Sender::new(found.into()),
            search: Some(Search {
                server,
                is_makeshift: routed.is_none(),
            }),
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
        let Some(mut search) = self.search else {
            return;
        };
        let mut changes = network::link_changes();
        loop {
            search.is_makeshift = self.look(search);
            tokio::select! {
                () = stop.cancelled() => return,
                () = changes.next() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    /// True when the address is one at hand.
    fn look(&self, search: Search) -> bool {
        let current = self.first();
        let is_here = |address: IpAddr| {
            let mut all = network::machine_addresses().into_iter();
            all.any(|(_, own)| own == address)
        };
        let known = Known {
            address: current,
            is_makeshift: search.is_makeshift,
        };
        let next = next(
            known,
            is_here,
            || address_towards(search.server),
            first_global_address,
        );
        if next.address != current {
            tracing::warn!(from = %current, to = %next.address, "the node has another address");
            self.told.send_replace(next.address.into());
        }
        next.is_makeshift
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Known {
    address: IpAddr,
    is_makeshift: bool,
}

/// The address of a node is kept for as long as the machine has it, wherever routes may lead; one
/// that no route led by only until one does.
fn next(
    known: Known,
    is_here: impl Fn(IpAddr) -> bool,
    routed: impl Fn() -> Option<IpAddr>,
    any: impl Fn() -> Option<IpAddr>,
) -> Known {
    let has_none = known.address.is_loopback();
    let is_kept = !has_none && is_here(known.address);
    if is_kept && !known.is_makeshift {
        return known;
    }
    let by_route = routed().map(|address| Known {
        address,
        is_makeshift: false,
    });
    let at_hand = || {
        any().filter(|_| has_none).map(|address| Known {
            address,
            is_makeshift: true,
        })
    };
    by_route.or_else(at_hand).unwrap_or(known)
}

#[cfg(test)]
mod tests;
