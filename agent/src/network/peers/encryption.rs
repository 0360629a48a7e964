//! The link that encrypts, as the plan has it: its peers, what may not pass by another link, and
//! the key by which others know this node.

use super::feed::{Known, Nodes};
use super::kernel::{Encryption, Observed};
use super::plan::{Own, Plan, Way};
use super::{Peers, RETRY};
use crate::network::link::{LinkError, Links};
use crate::network::subnet::Subnet;
use crate::network::wireguard::{
    self, ANNOTATION, Encrypted, KeyPair, Peer, PublicKey, Told, Wanted,
};
use coracle_client::Client;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::net::SocketAddr;
use tokio::sync::watch;

impl Peers {
    /// With the key of this node, when one is needed.
    pub(super) fn open_end(&self, encryption: &Told, end: &mut Option<Encrypted>) {
        if !matches!(encryption, Told::Encrypted(_)) {
            *end = None;
        } else if end.is_none() {
            let own = KeyPair::keep(&self.key_file).unwrap_or_else(|error| {
                tracing::warn!(%error, "this node's key of WireGuard is not kept: it has another after a restart");
                KeyPair::new()
            });
            *end = Some(Encrypted::new(own));
        }
    }

    /// Others make the pods' network, and encrypt it or do not.
    pub(super) fn guard_nothing(&self) {
        let is_new = self.guarded.send_if_modified(|known| {
            let is_new = known.as_ref().is_none_or(|ranges| !ranges.is_empty());
            *known = Some(Vec::new());
            is_new
        });
        if is_new && matches!(*self.encryption.borrow(), Told::Encrypted(_)) {
            tracing::warn!(
                "plugins make the pods' network: Coracle does not encrypt what it carries"
            );
        }
    }

    pub(super) fn guard(&self, own: &Own, plan: &Plan, nodes: &Nodes, encryption: &Told) {
        let Told::Encrypted(setting) = encryption else {
            return;
        };
        let routed = plan.routes.iter().map(|route| route.network);
        let networks = routed
            .chain(plan.closed.iter().copied())
            .chain(own.networks.iter());
        let guarded =
            wireguard::guarded_ranges(networks, &setting.cluster, spared(own, nodes, setting));
        self.guarded.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&guarded);
            *known = Some(guarded);
            is_new
        });
    }

    /// Puts this node's key where others look for it, whenever it is not there. Never ends.
    pub(super) async fn publish_key(
        &self,
        client: &Client,
        known: &Known,
        mut own_key: watch::Receiver<Option<PublicKey>>,
    ) {
        let mut nodes = known.subscribe();
        loop {
            nodes.mark_unchanged();
            let key = *own_key.borrow_and_update();
            let is_published = match key {
                Some(key) => self.put_key(client, known, key).await,
                None => true,
            };
            tokio::select! {
                Ok(()) = own_key.changed() => {}
                Ok(()) = nodes.changed() => {}
                () = tokio::time::sleep(RETRY), if !is_published => {}
                else => return std::future::pending().await,
            }
        }
    }

    /// False to be called again.
    async fn put_key(&self, client: &Client, known: &Known, key: PublicKey) -> bool {
        let nodes = known.nodes();
        let node = nodes.as_ref().and_then(|nodes| nodes.get(&*self.node_name));
        let Some(node) = node else {
            return true; // Its coming is a change.
        };
        let key = key.to_string();
        if node.key.as_deref() == Some(&key) {
            return true;
        }
        let api: Api<Node> = Api::all(client.clone());
        let patch = json!({ "metadata": { "annotations": { ANNOTATION: key } } });
        let (patch, parameters) = (Patch::Merge(patch), PatchParams::default());
        match api.patch(&self.node_name, &parameters, &patch).await {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "other nodes do not know this one's key yet");
                false
            }
        }
    }
}

/// Of the cluster's network, what is no pod: nodes, API servers and their links.
fn spared(own: &Own, nodes: &Nodes, setting: &wireguard::Setting) -> impl Iterator<Item = Subnet> {
    let addresses = nodes.values().flat_map(|node| &node.addresses);
    let addresses = addresses.chain(&own.servers).copied();
    let addresses = addresses.chain(own.addresses.iter());
    let addresses: Vec<_> = addresses.map(Subnet::of).collect();
    let cluster = setting.cluster.clone();
    let segments = own.segments.iter().map(|segment| segment.subnet);
    let within = segments.filter(move |segment| {
        let mut wider = cluster.iter();
        wider.any(|one| one.overlaps(segment) && one.prefix_length <= segment.prefix_length)
    });
    let within: Vec<_> = within.collect();
    addresses.into_iter().chain(within)
}

/// The link as it should be, or none of it.
pub async fn link(
    links: &Links,
    observed: &Observed,
    own: &Own,
    plan: &Plan,
    mtu: u32,
    encryption: &Told,
    end: &mut Option<Encrypted>,
) -> Result<Encryption, LinkError> {
    let (Some(end), Told::Encrypted(setting)) = (end, encryption) else {
        wireguard::remove(links, observed.links()).await?;
        return Ok(Encryption::Off);
    };
    let peers = peers(plan, setting.port);
    let wanted = Wanted {
        port: setting.port,
        underlay: own.underlay(),
        gateways: own.networks.iter().map(|own| own.gateway()).collect(),
        mtu,
        peers: &peers,
    };
    let index = end.apply(links, observed.links(), wanted).await?;
    Ok(Encryption::By(Some(index)))
}

fn peers(plan: &Plan, port: u16) -> wireguard::Peers {
    let mut peers = wireguard::Peers::new();
    for route in &plan.routes {
        if let Way::Encrypted { key, address } = route.way {
            let peer = peers.entry(key).or_insert_with(|| Peer {
                endpoint: SocketAddr::new(address, port),
                networks: Vec::new(),
            });
            peer.networks.push(route.network);
        }
    }
    peers
}

#[cfg(test)]
mod tests;
