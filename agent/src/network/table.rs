//! The table `inet coracle` and its base chains: who looks at a packet, and in which order.
//!
//! Each part of the network has chains of its own, which are there, empty, from the beginning on;
//! only they are written by their part, but for the one that no part changes. The base chains here
//! hold nothing but the jumps to them.
//! When someone else takes the table away or changes it, it is made again, and the number of
//! `Table::epochs` rises: each part then puts back what is its own.

use super::link::LINK_PREFIX;
use super::nft::{
    Batch, Chain, ChainType, CommitError, Disturbance, FIB_LOCAL, Family, Field, Hook, Nft,
    NftError, Rule, Test, Watch,
};
use crate::network::nft::Datum;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What pods send from addresses that are not theirs. Written here: it depends on nothing.
pub const SOURCES_GUARD: &str = "sources-guard";
/// Services: who may not enter, and what nobody answers. Before any translation.
pub const SERVICES_GUARD: &str = "services-guard";
/// Services: what nobody answers. After any translation, before policy.
pub const SERVICES_CLOSED: &str = "services-closed";
/// Services: where a connection goes. Packets that come in, and those of the node itself.
pub const SERVICES: &str = "services";
/// Services: which connections leave with the node's address.
pub const SERVICES_MASQUERADE: &str = "services-masquerade";
/// Ports of this node that lead to a pod. Packets to one of its addresses.
pub const HOST_PORTS: &str = "host-ports";
/// What leaves the pods for no pod.
pub const PODS_MASQUERADE: &str = "pods-masquerade";
/// What is for pods and leaves by a link that does not encrypt, and what comes from them by one.
pub const ENCRYPTION_OUT: &str = "encryption-out";
pub const ENCRYPTION_LEAVING: &str = "encryption-leaving";
pub const ENCRYPTION_IN: &str = "encryption-in";
/// What no pod may send to the node itself, whatever policies say.
pub const HOST_GUARD: &str = "host-guard";
/// NetworkPolicy: packets between links, to the node itself, and from it.
pub const POLICY_FORWARD: &str = "policy-forward";
pub const POLICY_INPUT: &str = "policy-input";
pub const POLICY_OUTPUT: &str = "policy-output";

/// Of a table that was made with other base chains, all is made anew.
const LAYOUT: &str = "layout-2";

/// Before the kernel knows of a connection (NF_IP_PRI_RAW): what is dropped there is no packet of one.
const BEFORE_CONNECTIONS: i32 = -300;
/// Translation of destinations (NF_IP_PRI_NAT_DST), a little before it, and of sources.
const DESTINATIONS: i32 = -100;
const BEFORE_DESTINATIONS: i32 = DESTINATIONS - 10;
const SOURCES: i32 = 100;
const FILTER: i32 = 0;

/// The network of the host itself.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0));
pub const LOOPBACK_PREFIX: u8 = 8;

/// Between two tries to make the table.
const RETRY: Duration = Duration::from_secs(5);
/// A flush comes in many words: they are heard out before the table is made again.
const SETTLE: Duration = Duration::from_millis(50);

struct Base {
    name: &'static str,
    kind: ChainType,
    hook: Hook,
    priority: i32,
    /// In their order.
    leads_to: &'static [&'static str],
}

const BASES: [Base; 10] = [
    Base {
        name: "raw-prerouting",
        kind: ChainType::Filter,
        hook: Hook::Prerouting,
        priority: BEFORE_CONNECTIONS,
        leads_to: &[SOURCES_GUARD],
    },
    Base {
        name: "before-prerouting",
        kind: ChainType::Filter,
        hook: Hook::Prerouting,
        priority: BEFORE_DESTINATIONS,
        leads_to: &[SERVICES_GUARD],
    },
    Base {
        name: "before-output",
        kind: ChainType::Filter,
        hook: Hook::Output,
        priority: BEFORE_DESTINATIONS,
        leads_to: &[SERVICES_GUARD],
    },
    Base {
        name: "nat-prerouting",
        kind: ChainType::Nat,
        hook: Hook::Prerouting,
        priority: DESTINATIONS,
        leads_to: &[SERVICES, HOST_PORTS],
    },
    Base {
        name: "nat-output",
        kind: ChainType::Nat,
        hook: Hook::Output,
        priority: DESTINATIONS,
        leads_to: &[SERVICES, HOST_PORTS],
    },
    Base {
        name: "nat-postrouting",
        kind: ChainType::Nat,
        hook: Hook::Postrouting,
        priority: SOURCES,
        leads_to: &[SERVICES_MASQUERADE, PODS_MASQUERADE],
    },
    Base {
        name: "filter-forward",
        kind: ChainType::Filter,
        hook: Hook::Forward,
        priority: FILTER,
        leads_to: &[
            ENCRYPTION_IN,
            ENCRYPTION_OUT,
            SERVICES_CLOSED,
            POLICY_FORWARD,
        ],
    },
    Base {
        name: "filter-input",
        kind: ChainType::Filter,
        hook: Hook::Input,
        priority: FILTER,
        leads_to: &[ENCRYPTION_IN, HOST_GUARD, SERVICES_CLOSED, POLICY_INPUT],
    },
    Base {
        name: "filter-output",
        kind: ChainType::Filter,
        hook: Hook::Output,
        priority: FILTER,
        leads_to: &[SERVICES_CLOSED, POLICY_OUTPUT],
    },
    // The link of what the node itself sends is known here alone: in the hooks before, it is the
    // link to the destination that a Service had.
    Base {
        name: "filter-postrouting",
        kind: ChainType::Filter,
        hook: Hook::Postrouting,
        priority: FILTER,
        leads_to: &[ENCRYPTION_LEAVING],
    },
];

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error(transparent)]
    Read(#[from] NftError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct Table {
    pub nft: Nft,
    epochs: watch::Receiver<u64>,
}

impl Table {
    /// Nothing is in the kernel before the keeper runs. Needs a tokio runtime.
    pub fn open() -> Result<(Self, Keeper), NftError> {
        let nft = Nft::open()?;
        let (sender, epochs) = watch::channel(0);
        let watch = Watch::open(&nft)?;
        let table = Self {
            nft: nft.clone(),
            epochs,
        };
        let keeper = Keeper {
            nft,
            watch,
            epochs: sender,
        };
        Ok((table, keeper))
    }

    /// 0 while the table is not there yet; a part writes all that is its own when it rises, and
    /// tries again when a commit fails meanwhile.
    pub fn epochs(&self) -> watch::Receiver<u64> {
        self.epochs.clone()
    }
}

/// Makes the table, and makes it again.
#[derive(Debug)]
pub struct Keeper {
    nft: Nft,
    watch: Watch,
    epochs: watch::Sender<u64>,
}

impl Keeper {
    /// Runs until `stop`. The table stays then.
    pub async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep() => {}
        }
    }

    async fn keep(&mut self) {
        let mut is_told = false;
        let mut known = None;
        let mut is_disturbed = false;
        loop {
            match make(&self.nft).await {
                Ok(handle) => {
                    is_told = false;
                    if known.replace(handle) != Some(handle) || is_disturbed {
                        self.epochs.send_modify(|epoch| *epoch += 1);
                    }
                    is_disturbed = self.disturbed().await;
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_told, true) {
                        let error: &dyn std::error::Error = &error;
                        tracing::error!(error, "Services, masquerade and policy do not work");
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Waits until someone else was at the table; false when that is not sure.
    async fn disturbed(&mut self) -> bool {
        let mut is_sure = match self.watch.next().await {
            Ok(Disturbance::Unknown) => false,
            Ok(disturbance) => {
                tracing::warn!(
                    ?disturbance,
                    "someone changed the table of the pods' network"
                );
                true
            }
            Err(error) => {
                tracing::warn!(%error, "changes of nf_tables by others are not seen");
                tokio::time::sleep(RETRY).await;
                false
            }
        };
        while let Ok(Ok(further)) = tokio::time::timeout(SETTLE, self.watch.next()).await {
            is_sure |= further != Disturbance::Unknown;
        }
        is_sure
    }
}

/// The table with its base chains, in one commit; what the parts have in it stays. Its handle,
/// which is another one when it was taken away meanwhile.
async fn make(nft: &Nft) -> Result<u64, TableError> {
    let is_there = nft.table().await?.is_some();
    let chains = if is_there {
        nft.chains().await?
    } else {
        Vec::new()
    };
    let is_current = chains.iter().any(|chain| chain.name == LAYOUT);
    nft.commit(&plan(is_there && !is_current)).await?;
    let table = nft.table().await?;
    Ok(table.map_or(0, |table| table.handle))
}

fn plan(is_outdated: bool) -> Batch {
    let mut batch = Batch::new();
    if is_outdated {
        batch.delete_table();
    }
    batch.add_table();
    batch.add_chain(&Chain::plain(LAYOUT));
    for part in BASES.iter().flat_map(|base| base.leads_to) {
        batch.add_chain(&Chain::plain(*part));
    }
    for base in &BASES {
        batch.add_chain(&Chain::base(base.name, base.kind, base.hook, base.priority));
        batch.flush_chain(base.name);
        for part in base.leads_to {
            if base.hook == Hook::Prerouting && *part == HOST_PORTS {
                batch.add_rule(&spare_loopback(base.name));
            }
            batch.add_rule(&jump(base.name, part));
        }
    }
    batch.flush_chain(SOURCES_GUARD);
    batch.add_rule(&own_source());
    batch
}

/// The node's routes say which link an address is behind, and a pod's address has one of its own. A
/// set of addresses would have to be right at any time, or pods would be cut off.
fn own_source() -> Rule {
    Rule::new(SOURCES_GUARD)
        .is(Field::WayBack, Datum::Number(0))
        .drop()
        .comment("a pod sends from its own addresses")
}

/// Who comes from outside has no business at the node's loopback address, and a port of it that
/// leads to a pod would be translated before `HOST_GUARD` sees the packet.
fn spare_loopback(chain: &str) -> Rule {
    Rule::new(chain)
        .in_network(
            Field::Destination(Family::Ip4),
            Test::Is,
            LOOPBACK,
            LOOPBACK_PREFIX,
        )
        .accept()
        .comment("ports of the loopback address are for the node itself")
}

fn jump(from: &str, to: &str) -> Rule {
    let rule = Rule::new(from);
    let rule = match to {
        HOST_PORTS => rule.is(Field::DestinationType, Datum::Number(FIB_LOCAL)),
        SOURCES_GUARD => rule.link_starts_with(Field::InputLink, LINK_PREFIX),
        _ => rule,
    };
    rule.jump(to)
}

/// Takes the table away, if it is there.
pub async fn remove() -> Result<(), TableError> {
    match removed().await {
        Err(TableError::Read(NftError::Io { source, .. })) if is_unsupported(&source) => Ok(()),
        removed => removed,
    }
}

async fn removed() -> Result<(), TableError> {
    let nft = Nft::open()?;
    if nft.table().await?.is_some() {
        let mut batch = Batch::new();
        batch.delete_table();
        nft.commit(&batch).await?;
    }
    Ok(())
}

/// A kernel without nf_tables has no table.
fn is_unsupported(error: &std::io::Error) -> bool {
    let codes = [libc::EPROTONOSUPPORT, libc::EOPNOTSUPP, libc::EINVAL];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

#[cfg(test)]
mod tests;
