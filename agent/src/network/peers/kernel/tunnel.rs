//! The VXLAN device. It learns nothing and asks nobody: who is behind it is written there, from
//! what is known of the nodes.

use crate::network::link::{LinkError, find, mtu_of, name, netlink};
use crate::network::peers::plan::{FarEnd, Own, Plan, Way};
use futures::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::{
    InfoData, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use rtnetlink::{Handle, LinkUnspec, LinkVxlan};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub const VXLAN: &str = "coracle-vxlan";
/// The network's number, and the port that Linux had for it first: that of flannel too.
const NETWORK_ID: u32 = 1;
const PORT: u16 = 8472;

/// Ethernet, VXLAN and UDP behind an IP header.
const OVERHEAD_V4: u32 = 50;
const OVERHEAD_V6: u32 = 70;

pub fn inner_mtu(mtu: u32, underlay: IpAddr) -> u32 {
    let overhead = if underlay.is_ipv4() {
        OVERHEAD_V4
    } else {
        OVERHEAD_V6
    };
    mtu.saturating_sub(overhead)
}

/// The device with all that is behind it, or none of it when nobody is. Its index.
pub async fn apply(
    handle: &Handle,
    links: &[LinkMessage],
    own: &Own,
    plan: &Plan,
    mtu: u32,
) -> Result<Option<u32>, LinkError> {
    let far: Vec<(IpAddr, FarEnd)> = plan
        .routes
        .iter()
        .filter_map(|route| match route.way {
            Way::Tunnel(far) => Some((route.network.base(), far)),
            Way::Straight { .. } | Way::Encrypted { .. } => None,
        })
        .collect();
    let existing = links.iter().find(|link| name(link) == Some(VXLAN));
    if far.is_empty() {
        if let Some(link) = existing {
            remove(handle, link).await?;
        }
        return Ok(None);
    }
    let index = device(handle, existing, own, inner_mtu(mtu, own.underlay())).await?;
    let neighbours = far
        .iter()
        .map(|(base, far)| (*base, far.hardware))
        .collect();
    set_neighbours(handle, index, &neighbours).await?;
    let ends = far
        .iter()
        .map(|(_, far)| (far.hardware, far.address))
        .collect();
    set_ends(handle, index, &ends).await?;
    Ok(Some(index))
}

async fn remove(handle: &Handle, link: &LinkMessage) -> Result<(), LinkError> {
    let removed = handle.link().del(link.header.index).execute().await;
    removed.map_err(netlink("remove the tunnel to other nodes"))
}

/// What cannot be changed about it makes it another device.
async fn device(
    handle: &Handle,
    existing: Option<&LinkMessage>,
    own: &Own,
    mtu: u32,
) -> Result<u32, LinkError> {
    let (hardware, underlay) = (own.hardware_address(), own.underlay());
    let fitting = existing.filter(|link| fits(link, hardware, underlay));
    if let (Some(link), None) = (existing, fitting) {
        remove(handle, link).await?;
    }
    let index = match fitting {
        Some(link) => link.header.index,
        None => make(handle, hardware, underlay, mtu).await?,
    };
    let is_up = fitting
        .is_some_and(|link| link.header.flags.contains(LinkFlags::Up) && mtu_of(link) == Some(mtu));
    if !is_up {
        let up = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
        let set = handle.link().set(up).execute().await;
        set.map_err(netlink("bring up the tunnel to other nodes"))?;
    }
    Ok(index)
}

async fn make(
    handle: &Handle,
    hardware: [u8; 6],
    underlay: IpAddr,
    mtu: u32,
) -> Result<u32, LinkError> {
    let link = LinkVxlan::new(VXLAN, NETWORK_ID).port(PORT).learning(false);
    let link = match underlay {
        IpAddr::V4(address) => link.local(address),
        IpAddr::V6(address) => link.local6(address),
    };
    let message = link.address(hardware.to_vec()).mtu(mtu).build();
    let made = handle.link().add(message).execute().await;
    made.map_err(netlink("make the tunnel to other nodes"))?;
    let found = find(handle, VXLAN).await?;
    let found = found.ok_or_else(|| LinkError::Vanished(VXLAN.to_owned()))?;
    Ok(found.header.index)
}

fn fits(link: &LinkMessage, hardware: [u8; 6], underlay: IpAddr) -> bool {
    let mut is_hardware = false;
    let (mut is_id, mut is_port, mut is_local) = (false, false, false);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::Address(found) => is_hardware = *found == hardware,
            LinkAttribute::LinkInfo(infos) => {
                for info in infos {
                    let LinkInfo::Data(InfoData::Vxlan(data)) = info else {
                        continue;
                    };
                    is_id = data.contains(&InfoVxlan::Id(NETWORK_ID));
                    is_port = data.contains(&InfoVxlan::Port(PORT));
                    is_local = data.contains(&match underlay {
                        IpAddr::V4(address) => InfoVxlan::Local(address),
                        IpAddr::V6(address) => InfoVxlan::Local6(address),
                    });
                }
            }
            _ => {}
        }
    }
    is_hardware && is_id && is_port && is_local
}

async fn entries(
    handle: &Handle,
    family: AddressFamily,
    index: u32,
) -> Result<Vec<NeighbourMessage>, LinkError> {
    let found = handle
        .neighbours()
        .get()
        .set_address_family(family)
        .execute();
    let of_device = found.try_filter(|entry| std::future::ready(entry.header.ifindex == index));
    let all = of_device.try_collect().await;
    all.map_err(netlink("list who is behind the tunnel"))
}

fn destination(entry: &NeighbourMessage) -> Option<IpAddr> {
    entry
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                Some((*address).into())
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                Some((*address).into())
            }
            // The kernel's dump of a forwarding database has the bytes alone.
            NeighbourAttribute::Destination(NeighbourAddress::Other(bytes)) => match bytes.len() {
                4 => Some(IpAddr::from(*bytes.first_chunk::<4>()?)),
                16 => Some(IpAddr::from(*bytes.first_chunk::<16>()?)),
                _ => None,
            },
            _ => None,
        })
}

fn hardware(entry: &NeighbourMessage) -> Option<[u8; 6]> {
    entry
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        })
}

/// Which hardware address each gateway in the tunnel has.
async fn set_neighbours(
    handle: &Handle,
    index: u32,
    wanted: &BTreeMap<IpAddr, [u8; 6]>,
) -> Result<(), LinkError> {
    let mut found = BTreeSet::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        for entry in entries(handle, family, index).await? {
            // The kernel makes entries of its own for groups.
            if entry.header.state != NeighbourState::Permanent {
                continue;
            }
            let (Some(gateway), Some(at)) = (destination(&entry), hardware(&entry)) else {
                continue;
            };
            if wanted.get(&gateway) == Some(&at) {
                found.insert(gateway);
            } else if !wanted.contains_key(&gateway) {
                let removed = handle.neighbours().del(entry).execute().await;
                removed.map_err(netlink("forget who was behind the tunnel"))?;
            }
        }
    }
    for (gateway, at) in wanted
        .iter()
        .filter(|(gateway, _)| !found.contains(*gateway))
    {
        let add = handle.neighbours().add(index, *gateway);
        let added = add.link_layer_address(at).replace().execute().await;
        added.map_err(netlink("say who is behind the tunnel"))?;
    }
    Ok(())
}

/// Where in the world each hardware address is.
async fn set_ends(
    handle: &Handle,
    index: u32,
    wanted: &BTreeMap<[u8; 6], IpAddr>,
) -> Result<(), LinkError> {
    let mut found = BTreeSet::new();
    for entry in entries(handle, AddressFamily::Bridge, index).await? {
        let (Some(at), Some(end)) = (hardware(&entry), destination(&entry)) else {
            continue;
        };
        if wanted.get(&at) == Some(&end) {
            found.insert(at);
            continue;
        }
        // One that moved is not replaced but added to: the old one goes first.
        let mut gone = entry.clone();
        gone.header.flags = NeighbourFlags::Own;
        let removed = handle.neighbours().del(gone).execute().await;
        removed.map_err(netlink("forget an end of the tunnel"))?;
    }
    for (at, end) in wanted.iter().filter(|(at, _)| !found.contains(*at)) {
        let add = handle.neighbours().add_bridge(index, at).destination(*end);
        let added = add.flags(NeighbourFlags::Own).replace().execute().await;
        added.map_err(netlink("say where an end of the tunnel is"))?;
    }
    Ok(())
}
