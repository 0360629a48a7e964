//! Ports of the node that lead to a pod, as their containers ask for by `hostPort`.
//!
//! Owns the chain `host-ports`, and its maps: for any address of the node, and for one. What pods
//! want is told by who attaches them; a task brings it into the kernel, one batch a change.

mod flows; // Of datagrams, that lead elsewhere.

use super::nft::{Batch, Datum, Element, Family, Field, Kind, Nat, Rule, Set, Target};
use super::table::{HOST_PORTS, Table};
use crate::families::Families;
use crate::runtime::{HostPort, SandboxId};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const RETRY: Duration = Duration::from_secs(1);

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

/// Key of an address, protocol and port.
fn at_address(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "host-ports-at-4",
        Family::Ip6 => "host-ports-at-6",
    }
}

/// Key of a protocol and port.
fn at_any(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "host-ports-4",
        Family::Ip6 => "host-ports-6",
    }
}

/// Source and destination: pods that may reach themselves.
pub fn hairpins(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "host-port-hairpins-4",
        Family::Ip6 => "host-port-hairpins-6",
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Wanted {
    /// In the order in which they came: of two that want one port the later has it.
    pods: Vec<(SandboxId, Families<IpAddr>, Vec<HostPort>)>,
    /// All pods of the node are among them: what else is in the kernel is of none.
    is_complete: bool,
}

#[derive(Debug, Default)]
pub struct HostPorts {
    wanted: watch::Sender<Wanted>,
}

impl HostPorts {
    /// Of one pod, in place of what it had.
    pub fn set(&self, sandbox: &SandboxId, addresses: Families<IpAddr>, ports: &[HostPort]) {
        self.wanted.send_if_modified(|wanted| {
            let pod = (sandbox.clone(), addresses, ports.to_vec());
            if wanted.pods.contains(&pod) || (ports.is_empty() && !wanted.has(sandbox)) {
                return false;
            }
            wanted.pods.retain(|(id, ..)| id != sandbox);
            if !ports.is_empty() {
                wanted.pods.push(pod);
            }
            true
        });
    }

    pub fn remove(&self, sandbox: &SandboxId) {
        self.wanted.send_if_modified(|wanted| {
            let is_there = wanted.has(sandbox);
            wanted.pods.retain(|(id, ..)| id != sandbox);
            is_there
        });
    }

    /// All pods that there are were told of.
    pub fn complete(&self) {
        self.wanted
            .send_if_modified(|wanted| !std::mem::replace(&mut wanted.is_complete, true));
    }

    /// Runs until `stop`. The rules stay then.
    pub async fn run(&self, table: Table, stop: CancellationToken) {
        let mut epochs = table.epochs();
        let mut changes = self.wanted.subscribe();
        let mut known = Known::default();
        loop {
            let epoch = *epochs.borrow_and_update();
            let wanted = changes.borrow_and_update().clone();
            let mut is_written = true;
            if epoch > 0 {
                let next = Known {
                    epoch,
                    is_complete: wanted.is_complete,
                    is_doubtful: false,
                    entries: entries(&wanted),
                };
                match table.nft.commit(&plan(&known, &next)).await {
                    Ok(()) => {
                        flows::follow(&known.entries, &next.entries).await;
                        known = next;
                    }
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(error, "ports of the node do not lead to their pods");
                        known = Known {
                            is_doubtful: true,
                            ..Known::default()
                        };
                        is_written = false;
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = epochs.changed() => {}
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep(RETRY), if !is_written => {}
            }
        }
    }
}

impl Wanted {
    fn has(&self, sandbox: &SandboxId) -> bool {
        self.pods.iter().any(|(id, ..)| id == sandbox)
    }
}

/// What was written last.
#[derive(Debug, Default)]
struct Known {
    epoch: u64,
    is_complete: bool,
    /// The kernel would not have it: what is there is taken away first.
    is_doubtful: bool,
    entries: BTreeSet<Entry>,
}

/// Of one of the maps and sets.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Entry {
    set: &'static str,
    element: Element,
}

/// No two have one key in one map.
fn entries(wanted: &Wanted) -> BTreeSet<Entry> {
    let mut taken = BTreeSet::new();
    let mut all = BTreeSet::new();
    for (_, addresses, ports) in wanted.pods.iter().rev() {
        let of_all = ports
            .iter()
            .flat_map(|port| addresses.iter().map(move |address| (address, port)));
        for (address, port) in of_all {
            let family = Family::of(address);
            let Some((set, key, to)) = way(family, port) else {
                continue;
            };
            if !taken.insert((set, key.clone())) {
                continue;
            }
            let element = Element::new(key).to([address.into(), Datum::Port(to)]);
            all.insert(Entry { set, element });
            let element = Element::new([address.into(), address.into()]);
            let set = hairpins(family);
            all.insert(Entry { set, element });
        }
    }
    all
}

/// The map, the key in it and the pod's port. None for what the pod's family has not, or for what
/// no validated pod has.
fn way(family: Family, port: &HostPort) -> Option<(&'static str, Vec<Datum>, u16)> {
    let protocol = Datum::Protocol(match port.protocol.as_str() {
        "" | "TCP" => 6,
        "UDP" => 17,
        "SCTP" => 132,
        _ => return None,
    });
    let host_port = Datum::Port(u16::try_from(port.host_port).ok()?);
    let to = u16::try_from(port.container_port).ok()?;
    if port.host_ip.is_empty() {
        return Some((at_any(family), vec![protocol, host_port], to));
    }
    let address: IpAddr = port.host_ip.parse().ok()?;
    if Family::of(address) != family {
        // All addresses of the one family are none of the other.
        return None;
    }
    if address.is_unspecified() {
        return Some((at_any(family), vec![protocol, host_port], to));
    }
    Some((
        at_address(family),
        vec![address.into(), protocol, host_port],
        to,
    ))
}

/// No harm when they are there.
pub fn add_sets(batch: &mut Batch) {
    for family in FAMILIES {
        let target = [family.kind(), Kind::Port];
        let any = [Kind::Protocol, Kind::Port];
        batch.add_set(&Set::map(at_any(family), &any, &target));
        let one = [family.kind(), Kind::Protocol, Kind::Port];
        batch.add_set(&Set::map(at_address(family), &one, &target));
        batch.add_set(&Set::new(hairpins(family), &[family.kind(), family.kind()]));
    }
}

/// The change from what was written; all of it in a table that is new.
fn plan(known: &Known, next: &Known) -> Batch {
    let mut batch = Batch::new();
    let is_new = known.epoch != next.epoch;
    if is_new {
        add_sets(&mut batch);
        batch.flush_chain(HOST_PORTS);
        FAMILIES
            .into_iter()
            .for_each(|family| add_rules(&mut batch, family));
    }
    let is_swept = known.is_doubtful || (next.is_complete && (is_new || !known.is_complete));
    let none = BTreeSet::new();
    let before = if is_new || is_swept {
        &none
    } else {
        &known.entries
    };
    if is_swept {
        for family in FAMILIES {
            for set in [at_any(family), at_address(family), hairpins(family)] {
                batch.flush_set(set);
            }
        }
    }
    for entry in before.difference(&next.entries) {
        batch.delete_elements(entry.set, [entry.element.clone()]);
    }
    for entry in next.entries.difference(before) {
        batch.add_elements(entry.set, [entry.element.clone()]);
    }
    batch
}

fn add_rules(batch: &mut Batch, family: Family) {
    let to = Target::Socket(family);
    let port = [Field::Protocol, Field::DestinationPort];
    let [protocol, number] = port;
    batch.add_rule(
        &Rule::new(HOST_PORTS)
            .find_target(
                [Field::Destination(family), protocol, number],
                at_address(family),
            )
            .dnat_to_target(to, Nat::default()),
    );
    batch.add_rule(
        &Rule::new(HOST_PORTS)
            .family(family)
            .find_target(port, at_any(family))
            .dnat_to_target(to, Nat::default()),
    );
}

#[cfg(test)]
mod tests;
