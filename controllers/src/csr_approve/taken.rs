//! Names and addresses that no node is let serve, though its Node object says that it has them. Pure.
//!
//! A node writes into its own object which addresses it has. Were that all that counts, whoever
//! holds one node could get a certificate of the cluster's authority for the API server or for
//! another node, and answer in their place.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Names of the API inside of the cluster, without the zone that may follow.
const OF_THE_API: [&str; 2] = ["kubernetes", "kubernetes.default"];

/// What others than one node have.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeSet<String>);

impl Taken {
    /// `servers` are the API server's own names; its endpoints add the addresses of each server.
    pub(super) fn of<'a>(
        own: &str,
        nodes: impl IntoIterator<Item = &'a Node>,
        endpoints: impl IntoIterator<Item = &'a EndpointSlice>,
        servers: &[String],
    ) -> Self {
        let mut taken = BTreeSet::new();
        for node in nodes {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            if name == own {
                continue;
            }
            taken.insert(key(name));
            let status = node.status.as_ref();
            let addresses = status.and_then(|status| status.addresses.as_deref());
            taken.extend(addresses.unwrap_or(&[]).iter().map(|one| key(&one.address)));
        }
        for slice in endpoints {
            let addresses = slice
                .endpoints
                .iter()
                .flatten()
                .flat_map(|one| &one.addresses);
            taken.extend(addresses.map(|address| key(address)));
        }
        taken.extend(servers.iter().map(|name| key(name)));
        Self(taken)
    }

    pub(super) fn holds(&self, name: &str) -> bool {
        let key = key(name);
        is_of_no_node(&key) || self.0.contains(&key)
    }
}

/// As those compare who check a certificate: a name's case and an address's form do not matter.
fn key(text: &str) -> String {
    match text.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => text.trim_end_matches('.').to_ascii_lowercase(),
    }
}

fn is_of_no_node(key: &str) -> bool {
    if let Ok(address) = key.parse::<IpAddr>() {
        return address.is_loopback() || address.is_unspecified();
    }
    let is_of_a_service = key.split('.').any(|label| label == "svc");
    let is_local = key == "localhost" || key.ends_with(".localhost");
    // A star would stand for names that are not looked up here.
    OF_THE_API.contains(&key) || is_of_a_service || is_local || key.contains('*')
}

#[cfg(test)]
mod tests;
