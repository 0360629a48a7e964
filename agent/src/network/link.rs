//! Bridge, veth pairs, addresses and routes, by netlink.
//!
//! The name of the bridge is fixed: agents that share a machine have network namespaces of their
//! own. Everything is looked up first, so that it may be repeated.

mod inside; // What is done in the sandbox's namespace.

use super::subnet::Subnet;
use futures::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::{
    InfoData, InfoVeth, LinkAttribute, LinkExtentMask, LinkMessage,
};
use rtnetlink::packet_route::route::RouteAttribute;
use rtnetlink::{
    Handle, LinkBridge, LinkBridgePort, LinkMessageBuilder, LinkUnspec, LinkVeth,
    RouteMessageBuilder,
};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const BRIDGE: &str = "coracle0";
/// Of the links on the node's side; the rest is from the sandbox's id.
const LINK_PREFIX: &str = "cveth";
/// A name of a link has 15 bytes at most.
const LINK_ID_BYTES: usize = 10;
/// Where there is no default route to take it from.
const MTU_DEFAULT: u32 = 1500;

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

fn netlink(action: &'static str) -> impl FnOnce(rtnetlink::Error) -> LinkError {
    move |source| LinkError::Netlink {
        action,
        source: Box::new(source),
    }
}

fn io_error(action: &'static str) -> impl FnOnce(io::Error) -> LinkError {
    move |source| LinkError::Io { action, source }
}

#[derive(Clone, Debug)]
pub struct Bridge {
    pub subnet: Subnet,
    index: u32,
    mtu: u32,
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

    pub async fn make_bridge(&self, subnet: Subnet) -> Result<Bridge, LinkError> {
        forward(subnet.gateway());
        let mtu = self.uplink_mtu().await;
        let gateway = subnet.gateway();
        if self.find(BRIDGE).await?.is_none() {
            let message = LinkBridge::new(BRIDGE)
                .mtu(mtu)
                .address(hardware_address(gateway))
                .build();
            let made = self.0.link().add(message).execute().await;
            made.map_err(netlink("make the bridge"))?;
        }
        let bridge = self.find(BRIDGE).await?;
        let index = bridge
            .ok_or_else(|| LinkError::Vanished(BRIDGE.to_owned()))?
            .header
            .index;
        self.replace_addresses(index, subnet).await?;
        let up = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
        let set = self.0.link().set(up).execute().await;
        set.map_err(netlink("bring up the bridge"))?;
        Ok(Bridge { subnet, index, mtu })
    }

    /// Leaves the bridge with the gateway's address alone.
    async fn replace_addresses(&self, index: u32, subnet: Subnet) -> Result<(), LinkError> {
        use rtnetlink::packet_route::address::AddressAttribute;
        let gateway = subnet.gateway();
        let mut has_gateway = false;
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
            let address = message
                .attributes
                .iter()
                .find_map(|attribute| match attribute {
                    AddressAttribute::Address(address) => Some(*address),
                    _ => None,
                });
            let is_link_local =
                matches!(address, Some(IpAddr::V6(v6)) if v6.is_unicast_link_local());
            if address == Some(gateway) && message.header.prefix_len == subnet.prefix_length {
                has_gateway = true;
            } else if !is_link_local {
                let removed = self.0.address().del(message).execute().await;
                removed.map_err(netlink("remove an old address of the bridge"))?;
            }
        }
        if !has_gateway {
            let address = self.0.address().add(index, gateway, subnet.prefix_length);
            let added = address.execute().await;
            added.map_err(netlink("give the bridge its address"))?;
        }
        Ok(())
    }

    /// Connects a namespace to the bridge as `eth0` with this address and a default route.
    pub async fn attach(
        &self,
        bridge: &Bridge,
        id: &str,
        namespace: &Path,
        address: IpAddr,
    ) -> Result<(), LinkError> {
        // What a try before this one left is in an unknown state.
        self.detach(id).await?;
        let name = link_name(id);
        let file = File::open(namespace).map_err(io_error("open the network namespace"))?;
        let peer = LinkMessageBuilder::<LinkUnspec>::new()
            .name("eth0")
            .mtu(bridge.mtu)
            .address(hardware_address(address))
            .setns_by_fd(file.as_raw_fd())
            .build();
        let pair = LinkVeth::new(&name, "eth0")
            .mtu(bridge.mtu)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .build();
        let made = self.0.link().add(pair).execute().await;
        made.map_err(netlink("make the pod's link"))?;
        let link = self.find(&name).await?;
        let index = link.ok_or(LinkError::Vanished(name))?.header.index;
        let join = LinkUnspec::new_with_index(index)
            .controller(bridge.index)
            .up()
            .build();
        let joined = self.0.link().set(join).execute().await;
        joined.map_err(netlink("join the pod's link to the bridge"))?;
        // A pod may reach itself by its Service.
        let port = LinkBridgePort::new(index).hairpin(true).build();
        let set = self.0.link().set_port(port).execute().await;
        set.map_err(netlink("let the pod's link send back"))?;
        inside::configure(file, address, bridge.subnet).await
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
        let mut found = self.0.link().get().match_name(name.to_owned()).execute();
        match found.try_next().await {
            Ok(link) => Ok(link),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(netlink("look for a link")(error)),
        }
    }

    async fn uplink_mtu(&self) -> u32 {
        let routes = self
            .0
            .route()
            .get(RouteMessageBuilder::<Ipv4Addr>::new().build());
        let routes: Vec<_> = routes.execute().try_collect().await.unwrap_or_default();
        let uplink = routes
            .iter()
            .filter(|route| route.header.destination_prefix_length == 0)
            .find_map(|route| {
                route
                    .attributes
                    .iter()
                    .find_map(|attribute| match attribute {
                        RouteAttribute::Oif(index) => Some(*index),
                        _ => None,
                    })
            });
        let Some(index) = uplink else {
            return MTU_DEFAULT;
        };
        let mut links = self.0.link().get().match_index(index).execute();
        let link = links.try_next().await.ok().flatten();
        let mtu = link.and_then(|link| {
            link.attributes
                .iter()
                .find_map(|attribute| match attribute {
                    LinkAttribute::Mtu(mtu) => Some(*mtu),
                    _ => None,
                })
        });
        mtu.unwrap_or(MTU_DEFAULT)
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
        let is_ours = |link: &&LinkMessage| {
            link.attributes.iter().any(|attribute| match attribute {
                LinkAttribute::IfName(name) => name == BRIDGE || name.starts_with(LINK_PREFIX),
                _ => false,
            })
        };
        Ok(links
            .iter()
            .filter(is_ours)
            .map(|link| link.header.index)
            .collect())
    }
}

/// Removes the bridge and all links of pods from the namespace of the calling process.
pub async fn remove_all() -> Result<(), LinkError> {
    let links = Links::open()?;
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

fn link_name(id: &str) -> String {
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

/// Lets the kernel pass packets between the bridge and the rest. A read-only /proc may have it on.
fn forward(gateway: IpAddr) {
    let path = PathBuf::from(if gateway.is_ipv4() {
        "/proc/sys/net/ipv4/ip_forward"
    } else {
        "/proc/sys/net/ipv6/conf/all/forwarding"
    });
    let is_on = std::fs::read_to_string(&path).is_ok_and(|text| text.trim() == "1");
    if is_on {
        return;
    }
    if let Err(error) = std::fs::write(&path, "1") {
        tracing::warn!(path = %path.display(), %error, "pods reach only this node");
    }
}

#[cfg(test)]
mod tests;
