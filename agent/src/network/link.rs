//! Bridge, veth pairs, addresses and routes, by netlink.
//!
//! The name of the bridge is fixed: agents that share a machine have network namespaces of their
//! own. Everything is looked up first, so that it may be repeated.

mod addressed; // A link for its addresses alone.
mod inside; // What is done in the sandbox's namespace.
mod kernel; // Its settings.
mod pod; // A pod's pair of links.
mod shape; // Of bandwidth.
mod uplink; // The way to the rest of the world.

pub(super) use inside::bring_up_loopback;
pub(super) use kernel::{route_loopback_of_pods, serve_plugins};
pub(super) use pod::Given;
pub(super) use uplink::mtu_of;

use super::bandwidth::Bandwidth;
use super::subnet::Subnet;
use crate::families::Families;
use futures::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use rtnetlink::packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
use rtnetlink::{Handle, LinkBridge, LinkUnspec};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

pub const BRIDGE: &str = "coracle0";
/// Of other links that the agent makes.
const OWN_PREFIX: &str = "coracle-";
/// Of the links on the node's side; the rest is from the sandbox's id.
pub(super) const LINK_PREFIX: &str = "cveth";
/// A name of a link has 15 bytes at most.
const LINK_ID_BYTES: usize = 10;
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("cannot {action}")]
    Netlink {
        action: &'static str,
        source: Box<rtnetlink::Error>,
    },
    #[error("cannot {action}")]
    Io {
        action: &'static str,
        source: io::Error,
    },
    #[error("the link {0} is not there after it was made")]
    Vanished(String),
}

pub(super) fn netlink(action: &'static str) -> impl FnOnce(rtnetlink::Error) -> LinkError {
    move |source| LinkError::Netlink {
        action,
        source: Box::new(source),
    }
}

pub(super) fn io_error(action: &'static str) -> impl FnOnce(io::Error) -> LinkError {
    move |source| LinkError::Io { action, source }
}

/// The gateways'. No link is on it: it only holds their addresses.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// Never empty.
    pub subnets: Families<Subnet>,
    /// Of the pods' links.
    pub mtu: u32,
}

impl Bridge {
    /// Of all gateways, at the node's ends of all pods' links.
    fn hardware_address(&self) -> Vec<u8> {
        let first = self.subnets.first().expect("a bridge has a network");
        hardware_address(first.gateway())
    }
}

/// A netlink socket in the node's namespace. Its task ends with the last handle.
#[derive(Clone)]
pub struct Links(Arc<Handle>);

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Links")
    }
}

impl Links {
    pub fn open() -> Result<Self, LinkError> {
        let (connection, handle, _) =
            rtnetlink::new_connection().map_err(io_error("open a netlink socket"))?;
        tokio::spawn(connection);
        Ok(Self(Arc::new(handle)))
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.0
    }

    pub async fn make_bridge(&self, subnets: Families<Subnet>) -> Result<Bridge, LinkError> {
        subnets
            .iter()
            .for_each(|subnet| kernel::forward(subnet.is_ipv4()));
        let mtu = self.uplink_mtu().await;
        let bridge = Bridge { subnets, mtu };
        if self.find(BRIDGE).await?.is_none() {
            let message = LinkBridge::new(BRIDGE)
                .mtu(mtu)
                .address(bridge.hardware_address())
                .build();
            let made = self.0.link().add(message).execute().await;
            made.map_err(netlink("make the bridge"))?;
        }
        let link = self.find(BRIDGE).await?;
        let index = link
            .ok_or_else(|| LinkError::Vanished(BRIDGE.to_owned()))?
            .header
            .index;
        self.replace_addresses(index, subnets).await?;
        let up = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
        let set = self.0.link().set(up).execute().await;
        set.map_err(netlink("bring up the bridge"))?;
        Ok(bridge)
    }

    /// Nothing to do when there is none.
    pub async fn remove_named(&self, name: &str) -> Result<(), LinkError> {
        match self.find(name).await? {
            Some(link) => self.delete(link.header.index).await,
            None => Ok(()),
        }
    }

    /// Leaves the bridge with the gateways' addresses alone.
    async fn replace_addresses(
        &self,
        index: u32,
        subnets: Families<Subnet>,
    ) -> Result<(), LinkError> {
        let gateway = |subnet: Subnet| (subnet.gateway(), subnet.prefix_length);
        let mut missing: BTreeSet<_> = subnets.iter().map(gateway).collect();
        let addresses: Vec<_> = self
            .0
            .address()
            .get()
            .set_link_index_filter(index)
            .execute()
            .try_collect()
            .await
            .map_err(netlink("read the bridge's addresses"))?;
        for message in addresses {
            let address = address_of(&message);
            let is_link_local =
                matches!(address, Some(IpAddr::V6(v6)) if v6.is_unicast_link_local());
            let length = message.header.prefix_len;
            let is_wanted = address.is_some_and(|address| missing.remove(&(address, length)));
            if !is_wanted && !is_link_local {
                let removed = self.0.address().del(message).execute().await;
                removed.map_err(netlink("remove an old address of the bridge"))?;
            }
        }
        for (gateway, prefix_length) in missing {
            let mut address = self.0.address().add(index, gateway, prefix_length);
            if gateway.is_ipv6() {
                // Pods ask for it at once, and nobody else could have it.
                address.message_mut().header.flags |= AddressHeaderFlags::Nodad;
            }
            let added = address.execute().await;
            added.map_err(netlink("give the bridge its address"))?;
        }
        Ok(())
    }

    pub async fn detach(&self, id: &str) -> Result<(), LinkError> {
        let Some(link) = self.find(&link_name(id)).await? else {
            return Ok(());
        };
        self.delete(link.header.index).await
    }

    async fn delete(&self, index: u32) -> Result<(), LinkError> {
        match self.0.link().del(index).execute().await {
            Err(error) if !is_missing(&error) => Err(netlink("remove a link")(error)),
            _ => Ok(()),
        }
    }

    async fn find(&self, name: &str) -> Result<Option<LinkMessage>, LinkError> {
        find(&self.0, name).await
    }

    async fn ours(&self) -> Result<Vec<u32>, LinkError> {
        let filter = vec![LinkExtentMask::SkipStats];
        let links: Vec<_> = self
            .0
            .link()
            .get()
            .set_filter_mask(AddressFamily::Unspec, filter)
            .execute()
            .try_collect()
            .await
            .map_err(netlink("list the links"))?;
        let is_ours = |link: &&LinkMessage| name(link).is_some_and(is_of_ours);
        Ok(links
            .iter()
            .filter(is_ours)
            .map(|link| link.header.index)
            .collect())
    }
}

pub(super) async fn find(handle: &Handle, name: &str) -> Result<Option<LinkMessage>, LinkError> {
    let mut found = handle.link().get().match_name(name.to_owned()).execute();
    match found.try_next().await {
        Ok(link) => Ok(link),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(netlink("look for a link")(error)),
    }
}

pub(super) fn name(link: &LinkMessage) -> Option<&str> {
    link.attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.as_str()),
            _ => None,
        })
}

fn address_of(message: &AddressMessage) -> Option<IpAddr> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
}

/// All that the links of this machine have, with the names of these.
pub fn machine_addresses() -> Vec<(String, IpAddr)> {
    let Ok(links) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let of_link = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| Some(address.as_sockaddr_in6()?.ip().into()))
    };
    links
        .filter_map(|link| Some((link.interface_name, of_link(link.address?)?)))
        .collect()
}

/// The node's end of a pod's link.
pub(super) fn is_of_pod(name: &str) -> bool {
    name.starts_with(LINK_PREFIX)
}

/// Made by this agent: the bridge, its tunnel and what else has its name, and the pods' links.
pub fn is_of_ours(name: &str) -> bool {
    name == BRIDGE || name.starts_with(OWN_PREFIX) || is_of_pod(name)
}

/// Removes the routes to other nodes, the bridge and all other links of ours from the namespace of
/// the calling process.
pub async fn remove_all() -> Result<(), LinkError> {
    let links = Links::open()?;
    super::peers::remove(&links).await?;
    for index in links.ours().await? {
        links.delete(index).await?;
    }
    Ok(())
}

/// ENODEV says it when asking by name, ENXIO and ENOENT in other places.
fn is_missing(error: &rtnetlink::Error) -> bool {
    let rtnetlink::Error::NetlinkError(message) = error else {
        return false;
    };
    let code = message.raw_code().abs();
    [libc::ENODEV, libc::ENXIO, libc::ENOENT].contains(&code)
}

pub(super) fn is_exists(error: &rtnetlink::Error) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(message)
        if message.raw_code().abs() == libc::EEXIST)
}

pub(super) fn link_name(id: &str) -> String {
    format!("{LINK_PREFIX}{}", &id[..id.len().min(LINK_ID_BYTES)])
}

/// From the address, so that a neighbour's table stays right when an address moves.
fn hardware_address(address: IpAddr) -> Vec<u8> {
    let low: [u8; 4] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => {
            let all = address.octets();
            [all[12], all[13], all[14], all[15]]
        }
    };
    let mut bytes = vec![0x0a, 0x58];
    bytes.extend(low);
    bytes
}

#[cfg(test)]
mod tests;
