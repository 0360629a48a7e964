//! Flows over UDP and SCTP that the kernel has in mind, and that lead to a pod that had a port before,
//! or to the node itself from when no pod had it: they are forgotten, or a client that keeps its port
//! would send there for as long as it sends at all. TCP finds out by itself.

use super::{Entry, at_address, at_any};
use crate::network::link::machine_addresses;
use crate::network::nft::{Datum, Family, Value};
use crate::network::services::conntrack::{self, Flow};
use crate::network::view::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The kernel may be interrupted while it tells them.
const LOOKS_MAX: usize = 3;

/// A map of ports, and the key in it.
type Key = (&'static str, Vec<Datum>);

/// After a change of what ports lead to.
pub async fn follow(before: &BTreeSet<Entry>, now: &BTreeSet<Entry>) {
    let Some(stale) = Stale::between(before, now) else {
        return;
    };
    for _ in 0..LOOKS_MAX {
        match conntrack::forget_flows(|flow| stale.has(flow)).await {
            Ok(0) => return,
            Ok(count) => return tracing::debug!(count, "flows to ports that lead elsewhere now"),
            Err(error) => tracing::warn!(%error, "flows may go on to pods that had a port before"),
        }
    }
}

#[derive(Debug, Default)]
struct Stale {
    leads: BTreeMap<Key, Vec<Datum>>,
    /// What led to a pod, and leads there no more.
    gone: BTreeSet<(Key, Vec<Datum>)>,
    /// Of this node.
    addresses: BTreeSet<IpAddr>,
}

impl Stale {
    /// None when nothing changed that flows could hold to.
    fn between(before: &BTreeSet<Entry>, now: &BTreeSet<Entry>) -> Option<Self> {
        let gone: BTreeSet<_> = before.difference(now).filter_map(way).collect();
        if gone.is_empty() && now.difference(before).all(|entry| way(entry).is_none()) {
            return None;
        }
        let own = machine_addresses().into_iter();
        Some(Self {
            leads: now.iter().filter_map(way).collect(),
            gone,
            addresses: own.map(|(_, address)| address).collect(),
        })
    }

    fn has(&self, flow: &Flow) -> bool {
        let family = Family::of(flow.destination.address);
        let protocol = match flow.protocol {
            Protocol::Tcp => return false,
            other => Datum::Protocol(other.number()),
        };
        let port = Datum::Port(flow.destination.port);
        let address = flow.destination.address;
        let one = (
            at_address(family),
            vec![address.into(), protocol.clone(), port.clone()],
        );
        let any = (at_any(family), vec![protocol, port]);
        let answers = vec![
            Datum::from(flow.answers.address),
            Datum::Port(flow.answers.port),
        ];
        let of_any = || {
            let is_own = self.addresses.contains(&address);
            self.leads.get(&any).filter(|_| is_own)
        };
        match self.leads.get(&one).or_else(of_any) {
            Some(target) => *target != answers,
            None => [one, any]
                .into_iter()
                .any(|key| self.gone.contains(&(key, answers.clone()))),
        }
    }
}

/// None for TCP, and for what is no port.
fn way(entry: &Entry) -> Option<(Key, Vec<Datum>)> {
    let Some(Value::Data(target)) = &entry.element.value else {
        return None;
    };
    let key = &entry.element.key;
    let is_tcp = key.contains(&Datum::Protocol(Protocol::Tcp.number()));
    (!is_tcp).then(|| ((entry.set, key.clone()), target.clone()))
}

#[cfg(test)]
mod tests;
