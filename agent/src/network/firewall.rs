//! Packet filters of others on this machine that keep pods from the rest of the world: Docker and ufw
//! let nothing through the machine that no rule of theirs accepts.
//!
//! No chain of ours can let a packet pass that another one drops, and rules of others are not touched:
//! it is told, in the log and as an event of the node, with what their owner is to do.

use super::bridged::Bridged;
use super::nft::{ForeignChain, Hook, Nft, NftError};
use super::subnet::Subnet;
use super::table::Table;
use crate::families::Families;
use coracle_client::events::{EventType, Recorder};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// They may come later than this agent.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const REASON: &str = "ForwardingDropped";

#[derive(Debug)]
pub struct Firewall {
    pub table: Table,
    pub bridged: Arc<Bridged>,
    pub recorder: Recorder,
    pub node_name: String,
}

impl Firewall {
    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut subnets = self.bridged.subscribe();
        let (mut told, mut generation) = (BTreeSet::new(), 0);
        loop {
            let own = *subnets.borrow_and_update();
            match changed(&self.table.nft, &mut generation).await {
                Ok(true) => self.look(own, &mut told).await,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "packet filters of others are not seen"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = subnets.changed() => generation = 0,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Tells of each once, until it is gone.
    async fn look(&self, own: Families<Subnet>, told: &mut BTreeSet<String>) {
        let found = match self.table.nft.others_that_drop(Hook::Forward).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "packet filters of others are not seen");
                return;
            }
        };
        let messages = messages(&found, own);
        for message in messages.difference(told) {
            tracing::warn!("{message}");
            let node = crate::node::reference(&self.node_name);
            self.recorder
                .event(&node, EventType::Warning, REASON, message);
        }
        *told = messages;
    }
}

/// Whether anybody changed anything since the last look.
async fn changed(nft: &Nft, known: &mut u32) -> Result<bool, NftError> {
    let generation = nft.generation().await?;
    Ok(std::mem::replace(known, generation) != generation)
}

/// What is to be said of each, for each of the pods' networks that it is about.
fn messages(found: &[ForeignChain], own: Families<Subnet>) -> BTreeSet<String> {
    let mut messages = BTreeSet::new();
    for chain in found {
        for network in own.iter().filter(|own| chain.is_about(own.is_ipv4())) {
            messages.insert(message(chain, network));
        }
    }
    messages
}

fn message(chain: &ForeignChain, network: Subnet) -> String {
    let ForeignChain {
        family,
        table,
        name,
    } = chain;
    let word = if network.is_ipv4() { "ip" } else { "ip6" };
    let is_of_iptables = *family == word && table == "filter" && name == "FORWARD";
    let rule = |side: &str| match is_of_iptables {
        true => format!(
            "{word}tables -I FORWARD -{} {network} -j ACCEPT",
            &side[..1]
        ),
        false => {
            format!("nft insert rule {family} {table} {name} {word} {side}addr {network} accept")
        }
    };
    format!(
        "Packets of pods are dropped unless a rule of this machine's firewall lets them pass: the \
         policy of the chain {name} in the table {family} {table} is drop. If none does: {} ; {}",
        rule("s"),
        rule("d")
    )
}

#[cfg(test)]
mod tests;
