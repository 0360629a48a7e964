//! Who has a connection: as many as there are places, and a newcomer gets that of whoever makes
//! least use of theirs.
//!
//! First to go are those that asked for nothing yet, then those whose last answer is long ago, and
//! where all are at work the oldest of an address that has more than half of all places. Invariants:
//! never more than `max` have a place; whoever is at work keeps it, unless their address has most of
//! them; there is no clock in here, only what came before what.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What is known of a connection.
#[derive(Debug)]
struct Held {
    peer: IpAddr,
    /// Requests that are worked on, or whose answers are still being sent.
    under_way: usize,
    has_asked: bool,
    /// When it last began or ended to work: a number that rises.
    since: u64,
    leave: CancellationToken,
}

/// The order in which places are given up; who is in none keeps theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Stranger,
    Idle,
    Greedy,
}

#[derive(Debug, Default)]
struct Table {
    held: HashMap<u64, Held>,
    of_peer: HashMap<IpAddr, usize>,
    /// Names connections, and says what came before what.
    next: u64,
}

impl Table {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, peer: IpAddr) -> (u64, CancellationToken) {
        let number = self.number();
        let leave = CancellationToken::new();
        *self.of_peer.entry(peer).or_default() += 1;
        let held = Held {
            peer,
            under_way: 0,
            has_asked: false,
            since: number,
            leave: leave.clone(),
        };
        self.held.insert(number, held);
        (number, leave)
    }

    fn remove(&mut self, number: u64) -> Option<Held> {
        let held = self.held.remove(&number)?;
        if let Some(count) = self.of_peer.get_mut(&held.peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peer.remove(&held.peer);
            }
        }
        Some(held)
    }

    /// Whoever is worth least, and of several the one that was at work longest ago.
    fn least_worthy(&self) -> Option<u64> {
        let worth = |held: &Held| {
            let is_greedy = self.of_peer[&held.peer] * 2 > self.held.len();
            match (held.under_way, held.has_asked) {
                (0, false) => Some(Worth::Stranger),
                (0, true) => Some(Worth::Idle),
                _ => is_greedy.then_some(Worth::Greedy),
            }
        };
        let worths = self
            .held
            .iter()
            .filter_map(|(number, held)| worth(held).map(|worth| (worth, held.since, *number)));
        worths.min().map(|(_, _, number)| number)
    }
}

#[derive(Debug)]
pub struct Places {
    max: usize,
    table: Mutex<Table>,
    /// Somebody ended, or has nothing to do any more.
    eased: Notify,
}

impl Places {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(1),
            table: Mutex::default(),
            eased: Notify::new(),
        })
    }

    /// Waits only where all places are taken by connections at work. Dropping the future loses
    /// nothing.
    pub async fn take(self: &Arc<Self>, peer: IpAddr) -> Place {
        loop {
            let mut eased = std::pin::pin!(self.eased.notified());
            // In this order: what ends after the look wakes.
            eased.as_mut().enable();
            if let Some(place) = self.try_take(peer) {
                return place;
            }
            eased.await;
        }
    }

    fn try_take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut table = self.table.lock();
        if table.held.len() >= self.max {
            let least = table.least_worthy()?;
            let held = table.remove(least)?;
            tracing::debug!(peer = %held.peer, "gives up its connection to a newcomer");
            held.leave.cancel();
        }
        let (number, leave) = table.add(peer);
        Some(Place {
            places: Arc::clone(self),
            number,
            leave,
        })
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Held)) {
        let mut table = self.table.lock();
        let since = table.number();
        if let Some(held) = table.held.get_mut(&number) {
            held.since = since;
            change(held);
        }
    }
}

/// Given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
    leave: CancellationToken,
}

impl Place {
    /// The place is somebody else's from now on.
    pub async fn taken(&self) {
        self.leave.cancelled().await;
    }

    /// At work until what this gives back is dropped.
    pub fn work(&self) -> Work {
        self.places.change(self.number, |held| {
            held.under_way += 1;
            held.has_asked = true;
        });
        Work {
            places: Arc::clone(&self.places),
            number: self.number,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.places.table.lock().remove(self.number));
        self.places.eased.notify_waiters();
    }
}

#[derive(Debug)]
pub struct Work {
    places: Arc<Places>,
    number: u64,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.places.change(self.number, |held| held.under_way -= 1);
        self.places.eased.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
