//! What leaves this node's pods for no pod of any node has the node's address.
//!
//! Owns the chain `pods-masquerade` and the sets of the pods' networks.

use super::bridged::Bridged;
use super::host_ports;
use super::link::LINK_PREFIX;
use super::nft::{Batch, Element, Family, Field, Nat, Range, Rule, Set, Test};
use super::peers::PodNetworks;
use super::subnet::Subnet;
use super::table::{HOST_GUARD, LOOPBACK, LOOPBACK_PREFIX, PODS_MASQUERADE, Table};
use crate::families::Families;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const RETRY: Duration = Duration::from_secs(1);

const RANDOM: Nat = Nat {
    random_fully: true,
    persistent: false,
};

/// Runs until `stop`. The rules stay then, and until the networks are known those that a former
/// agent wrote: by fewer of them, pods would have the node's address towards pods.
pub async fn run(
    table: Table,
    bridged: Arc<Bridged>,
    mut networks: watch::Receiver<Option<PodNetworks>>,
    stop: CancellationToken,
) {
    let mut epochs = table.epochs();
    let mut own = bridged.subscribe();
    loop {
        let is_there = *epochs.borrow_and_update() > 0;
        let own_networks = *own.borrow_and_update();
        let all = networks.borrow_and_update().clone();
        let mut is_written = true;
        let is_down = bridged.is_down();
        if is_down {
            bridged.keep_loopback();
        }
        let batch = match is_down {
            true => Some(nothing()),
            false => wanted(own_networks, all.as_ref()),
        };
        if let Some(batch) = batch.filter(|_| is_there) {
            match table.nft.commit(&batch).await {
                Ok(()) if is_down => {}
                // Not before pods are kept from there.
                Ok(()) => bridged.lead_loopback(),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "pods do not reach the world");
                    is_written = false;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = epochs.changed() => {}
            Ok(()) = own.changed() => {}
            Ok(()) = networks.changed() => {}
            () = tokio::time::sleep(RETRY), if !is_written => {}
        }
    }
}

fn set_name(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "pod-networks-4",
        Family::Ip6 => "pod-networks-6",
    }
}

fn wanted(own: Families<Subnet>, networks: Option<&PodNetworks>) -> Option<Batch> {
    let networks = networks.filter(|_| !own.is_empty());
    networks.map(|networks| plan(own, networks))
}

/// For pods that are not ours.
fn nothing() -> Batch {
    let mut batch = Batch::new();
    batch.flush_chain(PODS_MASQUERADE);
    batch.flush_chain(HOST_GUARD);
    batch
}

/// All of it, in place of what there was: nodes come and go seldom.
fn plan(own: Families<Subnet>, networks: &PodNetworks) -> Batch {
    let mut batch = Batch::new();
    for family in [Family::Ip4, Family::Ip6] {
        let name = set_name(family);
        batch.add_set(&Set::new(name, &[family.kind()]).intervals());
        batch.flush_set(name);
        let all = networks.iter().copied().chain(own.iter());
        let of_family = all.filter(|network| Family::of(network.base()) == family);
        let ranges = super::nft::merged(of_family.map(Range::from));
        batch.add_elements(name, ranges.into_iter().map(Element::range));
    }
    host_ports::add_sets(&mut batch);
    batch.flush_chain(PODS_MASQUERADE);
    for family in [Family::Ip4, Family::Ip6] {
        batch.add_rule(
            &Rule::new(PODS_MASQUERADE)
                .in_set(
                    [Field::Source(family), Field::Destination(family)],
                    host_ports::hairpins(family),
                )
                .masquerade(RANDOM)
                .comment("a pod that reaches itself by a port of the node"),
        );
    }
    batch.add_rule(
        &Rule::new(PODS_MASQUERADE)
            .in_network(
                Field::Source(Family::Ip4),
                Test::Is,
                LOOPBACK,
                LOOPBACK_PREFIX,
            )
            .link_starts_with(Field::OutputLink, LINK_PREFIX)
            .masquerade(RANDOM)
            .comment("the node reaches a pod by a port of its loopback"),
    );
    for network in own.iter() {
        let family = Family::of(network.base());
        batch.add_rule(
            &Rule::new(PODS_MASQUERADE)
                .in_network(
                    Field::Source(family),
                    Test::Is,
                    network.base(),
                    network.prefix_length,
                )
                .not_in_set([Field::Destination(family)], set_name(family))
                .masquerade(RANDOM)
                .comment("from pods of this node to no pod"),
        );
    }
    batch.flush_chain(HOST_GUARD);
    batch.add_rule(
        &Rule::new(HOST_GUARD)
            .link_starts_with(Field::InputLink, LINK_PREFIX)
            .in_network(
                Field::Destination(Family::Ip4),
                Test::Is,
                LOOPBACK,
                LOOPBACK_PREFIX,
            )
            .lacks_bits(Field::ConnectionStatus, super::nft::CT_DNAT)
            .drop()
            .comment("pods do not reach the node's loopback"),
    );
    batch
}

#[cfg(test)]
mod tests;
