//! Nothing of the pods' network passes in plain text: what is for the cluster's pods leaves by the
//! encrypted link or by a pod's own, and what is from them comes by these.
//!
//! Owns the chains `encryption-out`, which tells a pod that nothing leads there, `encryption-leaving`,
//! which everything passes with the link that it leaves by, and `encryption-in`. They stay in the kernel when the agent
//! ends, whatever becomes of routes and links meanwhile.

use super::DEVICE;
use super::setting::Told;
use crate::network::link::{BRIDGE, LINK_PREFIX};
use crate::network::nft::{
    Batch, Chain, Datum, Element, Family, Field, Range, Reject, Rule, Set, Verdict, merged, without,
};
use crate::network::subnet::Subnet;
use crate::network::table::{ENCRYPTION_IN, ENCRYPTION_LEAVING, ENCRYPTION_OUT, Table};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const RETRY: Duration = Duration::from_secs(1);

/// By which links: the chains behind the sets.
const WAYS_OUT: &str = "encryption-ways-out";
const WAYS_LEAVING: &str = "encryption-ways-leaving";
const WAYS_IN: &str = "encryption-ways-in";
const LOOPBACK: &str = "lo";

#[derive(Debug)]
pub struct Guard {
    pub table: Table,
    pub told: watch::Receiver<Told>,
    /// None until they are known.
    pub guarded: watch::Receiver<Option<Vec<Range>>>,
    /// Whether pods may have links.
    pub gate: watch::Sender<bool>,
}

impl Guard {
    /// Runs until `stop`. The rules stay then.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut epochs = self.table.epochs();
        loop {
            let is_there = *epochs.borrow_and_update() > 0;
            let told = self.told.borrow_and_update().clone();
            let guarded = self.guarded.borrow_and_update().clone();
            let (batch, lets_pods_in) = match (&told, &guarded) {
                (Told::Plain, _) => (Some(open()), true),
                // No pods' network is made here; one that comes is guarded before its pods come.
                (Told::Encrypted(_), Some(ranges)) if ranges.is_empty() => (Some(open()), false),
                (Told::Encrypted(_), Some(ranges)) => (Some(close(ranges)), true),
                _ => (None, false),
            };
            let mut is_written = false;
            let has_batch = batch.is_some();
            if let Some(batch) = batch.filter(|_| is_there) {
                match self.table.nft.commit(&batch).await {
                    Ok(()) => is_written = true,
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(error, "pods wait: their traffic might leave in plain text");
                    }
                }
            }
            // What is plain need not be written.
            self.gate
                .send_replace(lets_pods_in && (is_written || told == Told::Plain));
            let is_refused = has_batch && is_there && !is_written;
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = epochs.changed() => {}
                Ok(()) = self.told.changed() => {}
                Ok(()) = self.guarded.changed() => {}
                () = tokio::time::sleep(RETRY), if is_refused => {}
            }
        }
    }
}

/// What is guarded: pods of all nodes, those that are not reached too, and the rest of the
/// cluster's network, but for what of it is no pod (`spared`).
pub fn guarded_ranges(
    networks: impl IntoIterator<Item = Subnet>,
    cluster: &[Subnet],
    spared: impl IntoIterator<Item = Subnet>,
) -> Vec<Range> {
    let rest = without(
        cluster.iter().copied().map(Range::from),
        spared.into_iter().map(Range::from),
    );
    merged(networks.into_iter().map(Range::from).chain(rest))
}

fn set_name(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "encrypted-networks-4",
        Family::Ip6 => "encrypted-networks-6",
    }
}

fn open() -> Batch {
    let mut batch = Batch::new();
    batch.flush_chain(ENCRYPTION_OUT);
    batch.flush_chain(ENCRYPTION_LEAVING);
    batch.flush_chain(ENCRYPTION_IN);
    batch
}

/// All of it, in place of what there was: nodes come and go seldom.
fn close(guarded: &[Range]) -> Batch {
    let mut batch = open();
    let ways = [
        (WAYS_OUT, Field::OutputLink),
        (WAYS_LEAVING, Field::OutputLink),
        (WAYS_IN, Field::InputLink),
    ];
    for (chain, link) in ways {
        batch.add_chain(&Chain::plain(chain));
        batch.flush_chain(chain);
        for name in [DEVICE, BRIDGE, LOOPBACK] {
            let rule = Rule::new(chain).is(link, Datum::Interface(name.to_owned()));
            batch.add_rule(&rule.verdict(&Verdict::Return));
        }
        let rule = Rule::new(chain).link_starts_with(link, LINK_PREFIX);
        batch.add_rule(&rule.verdict(&Verdict::Return));
    }
    batch.add_rule(
        &Rule::new(WAYS_OUT)
            .reject(Reject::HostUnreachable)
            .comment("pods' traffic leaves encrypted alone"),
    );
    batch.add_rule(
        &Rule::new(WAYS_LEAVING)
            .drop()
            .comment("traffic to pods leaves encrypted alone"),
    );
    batch.add_rule(
        &Rule::new(WAYS_IN)
            .drop()
            .comment("pods' traffic comes encrypted alone"),
    );
    for family in [Family::Ip4, Family::Ip6] {
        let name = set_name(family);
        batch.add_set(&Set::new(name, &[family.kind()]).intervals());
        batch.flush_set(name);
        let of_family = guarded.iter().filter(|range| is_of(range, family));
        batch.add_elements(name, of_family.map(|range| Element::range(*range)));
        for (chain, ways) in [
            (ENCRYPTION_OUT, WAYS_OUT),
            (ENCRYPTION_LEAVING, WAYS_LEAVING),
        ] {
            batch.add_rule(
                &Rule::new(chain)
                    .in_set([Field::Destination(family)], name)
                    .goto(ways),
            );
        }
        batch.add_rule(
            &Rule::new(ENCRYPTION_IN)
                .in_set([Field::Source(family)], name)
                .goto(WAYS_IN),
        );
    }
    batch
}

fn is_of(range: &Range, family: Family) -> bool {
    Family::of(range.first) == family
}

#[cfg(test)]
mod tests;
