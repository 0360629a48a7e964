//! What the kernel has of ways to other nodes, and its change to what is planned.

mod tunnel; // The VXLAN device, and who is behind it.

use super::plan::{Own, Plan, Problem, Route, Segment, Way};
use crate::network::link::{LinkError, Links, is_exists, is_of_ours, mtu_of, name, netlink};
use crate::network::subnet::Subnet;
use crate::network::wireguard;
use futures::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use rtnetlink::packet_route::link::{LinkExtentMask, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope,
};
use rtnetlink::{Handle, RouteMessageBuilder};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// By which our routes are known. Not one of those that iproute2 has a name for.
pub const PROTOCOL: RouteProtocol = RouteProtocol::Other(67);

/// Where the link is not found.
const MTU_DEFAULT: u32 = 1500;

#[derive(Debug)]
pub struct Observed {
    links: Vec<LinkMessage>,
    /// Of links that are up and not ours.
    addresses: Vec<(u32, IpAddr, Subnet)>,
    /// Ours.
    routes: Vec<RouteMessage>,
}

impl Observed {
    pub fn links(&self) -> &[LinkMessage] {
        &self.links
    }

    pub fn link_named(&self, wanted: &str) -> Option<u32> {
        let link = self.links.iter().find(|link| name(link) == Some(wanted));
        link.map(|link| link.header.index)
    }

    /// A network of one address is no segment.
    pub fn segments(&self) -> Vec<Segment> {
        let wide = self.addresses.iter().filter(|(_, _, subnet)| {
            subnet.prefix_length < crate::network::subnet::width(subnet.base())
        });
        wide.map(|(link, address, subnet)| Segment {
            subnet: *subnet,
            link: *link,
            address: *address,
        })
        .collect()
    }

    /// Of the link that has this address.
    pub fn mtu_towards(&self, address: IpAddr) -> u32 {
        let on = self.addresses.iter().find(|(_, own, _)| *own == address);
        let link =
            on.and_then(|(index, _, _)| self.links.iter().find(|link| link.header.index == *index));
        link.and_then(mtu_of).unwrap_or(MTU_DEFAULT)
    }
}

/// Whether what nodes send each other is encrypted.
#[derive(Clone, Copy, Debug)]
pub enum Encryption {
    Off,
    /// By this link; None where it could not be made, and nobody is reached.
    By(Option<u32>),
}

#[derive(Debug)]
pub struct Applied {
    /// What a packet of a pod may have on all of the ways.
    pub pod_mtu: u32,
    pub problems: BTreeSet<Problem>,
}

pub async fn observe(links: &Links) -> Result<Observed, LinkError> {
    let handle = links.handle();
    let filter = vec![LinkExtentMask::SkipStats];
    let found = handle
        .link()
        .get()
        .set_filter_mask(AddressFamily::Unspec, filter);
    let found: Vec<_> = found
        .execute()
        .try_collect()
        .await
        .map_err(netlink("list the links"))?;
    let addresses = handle.address().get().execute();
    let addresses: Vec<_> = addresses
        .try_collect()
        .await
        .map_err(netlink("list the addresses"))?;
    let others_up: BTreeSet<u32> = found
        .iter()
        .filter(|link| !name(link).is_some_and(is_of_ours))
        .filter(|link| link.header.flags.contains(LinkFlags::Up))
        .filter(|link| !link.header.flags.contains(LinkFlags::Loopback))
        .map(|link| link.header.index)
        .collect();
    let addresses = addresses.iter().filter_map(address);
    let addresses = addresses.filter(|(link, _, _)| others_up.contains(link));
    Ok(Observed {
        addresses: addresses.collect(),
        routes: routes(handle).await?,
        links: found,
    })
}

async fn routes(handle: &Handle) -> Result<Vec<RouteMessage>, LinkError> {
    let v4 = RouteMessageBuilder::<Ipv4Addr>::new().build();
    let v6 = RouteMessageBuilder::<Ipv6Addr>::new().build();
    let mut ours = Vec::new();
    for family in [v4, v6] {
        let found = handle.route().get(family).execute();
        let of_ours =
            found.try_filter(|route| std::future::ready(route.header.protocol == PROTOCOL));
        let of_ours: Vec<_> = of_ours
            .try_collect()
            .await
            .map_err(netlink("list the routes"))?;
        ours.extend(of_ours);
    }
    Ok(ours)
}

/// Those of a wider reach than their link. The address of the other end of a link is no segment.
fn address(message: &AddressMessage) -> Option<(u32, IpAddr, Subnet)> {
    if message.header.scope != AddressScope::Universe {
        return None;
    }
    let mut address = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(local) => address = Some(*local),
            AddressAttribute::Address(one) if address.is_none() => address = Some(*one),
            _ => {}
        }
    }
    let address = address?;
    let subnet = Subnet::new(address, message.header.prefix_len)?;
    Some((message.header.index, address, subnet))
}

pub async fn apply(
    links: &Links,
    observed: &Observed,
    own: &Own,
    plan: &Plan,
    mtu: u32,
    encryption: Encryption,
) -> Result<Applied, LinkError> {
    let handle = links.handle();
    let tunnel = tunnel::apply(handle, &observed.links, own, plan, mtu).await?;
    let encrypted = match encryption {
        Encryption::Off => None,
        Encryption::By(link) => link,
    };
    let devices = Devices { tunnel, encrypted };
    let mut problems = BTreeSet::new();
    let wanted: Vec<_> = plan
        .routes
        .iter()
        .filter_map(|route| Wanted::of(route, own, devices))
        .collect();
    for route in &observed.routes {
        let is_wanted = wanted
            .iter()
            .any(|wanted| Some(wanted.network) == network(route));
        if !is_wanted {
            delete(handle, route).await?;
        }
    }
    for wanted in &wanted {
        let mut ours = observed.routes.iter();
        let existing = ours.find(|route| network(route) == Some(wanted.network));
        if existing.is_some_and(|route| wanted.is(route)) {
            continue;
        }
        let add = handle.route().add(wanted.message());
        let add = if existing.is_some() {
            add.replace()
        } else {
            add
        };
        let network = wanted.network;
        match add.execute().await {
            Ok(()) => {}
            Err(error) if is_exists(&error) => {
                problems.insert(Problem::RouteTaken { network });
            }
            // What one node says of itself is no reason to leave the others.
            Err(rtnetlink::Error::NetlinkError(message)) => {
                let reason = message.to_io().to_string();
                problems.insert(Problem::Refused { network, reason });
            }
            Err(error) => return Err(netlink("add a route to another node")(error)),
        }
    }
    let pod_mtu = match (encryption, tunnel) {
        (Encryption::By(_), _) => wireguard::inner_mtu(mtu, own.underlay()),
        (Encryption::Off, Some(_)) => tunnel::inner_mtu(mtu, own.underlay()),
        (Encryption::Off, None) => mtu,
    };
    Ok(Applied { pod_mtu, problems })
}

async fn delete(handle: &Handle, route: &RouteMessage) -> Result<(), LinkError> {
    match handle.route().del(route.clone()).execute().await {
        // It went with its link.
        Err(rtnetlink::Error::NetlinkError(message)) if message.raw_code().abs() == libc::ESRCH => {
            Ok(())
        }
        deleted => deleted.map_err(netlink("remove a route to another node")),
    }
}

/// Links that are behind no segment.
#[derive(Clone, Copy, Debug)]
struct Devices {
    tunnel: Option<u32>,
    encrypted: Option<u32>,
}

/// A route as it should be.
#[derive(Debug)]
struct Wanted {
    network: Subnet,
    /// None for a link that has no addresses to look for.
    gateway: Option<IpAddr>,
    link: u32,
    /// The gateway is beyond no segment.
    is_through_tunnel: bool,
    source: Option<IpAddr>,
}

impl Wanted {
    /// None of a route by a link that could not be made.
    fn of(route: &Route, own: &Own, devices: Devices) -> Option<Self> {
        let network = route.network;
        // Such a link has no address of its own, or the bridge's: what the node itself sends has
        // that one.
        let source = own.networks.of(network.is_ipv4()).map(|own| own.gateway());
        Some(match route.way {
            Way::Straight { gateway, link } => Self {
                network,
                gateway: Some(gateway),
                link,
                is_through_tunnel: false,
                source: None,
            },
            Way::Tunnel(_) => Self {
                network,
                gateway: Some(network.base()),
                link: devices.tunnel.expect("a plan with a tunnel has the device"),
                is_through_tunnel: true,
                source,
            },
            Way::Encrypted { .. } => Self {
                network,
                gateway: None,
                link: devices.encrypted?,
                is_through_tunnel: false,
                source,
            },
        })
    }

    fn is(&self, route: &RouteMessage) -> bool {
        let (mut gateway, mut link, mut source) = (None, None, None);
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Gateway(found) => gateway = ip(found),
                RouteAttribute::Oif(found) => link = Some(*found),
                RouteAttribute::PrefSource(found) => source = ip(found),
                _ => {}
            }
        }
        gateway == self.gateway && link == Some(self.link) && source == self.source
    }

    fn message(&self) -> RouteMessage {
        const FAMILY: &str = "all of one family";
        let mut route = RouteMessageBuilder::<IpAddr>::new()
            .destination_prefix(self.network.base(), self.network.prefix_length)
            .expect(FAMILY)
            .output_interface(self.link)
            .protocol(PROTOCOL);
        route = match self.gateway {
            Some(gateway) => route.gateway(gateway).expect(FAMILY),
            None if self.network.is_ipv4() => route.scope(RouteScope::Link),
            None => route,
        };
        if let Some(source) = self.source {
            route = route.pref_source(source).expect(FAMILY);
        }
        if self.is_through_tunnel {
            route = route.onlink();
        }
        route.build()
    }
}

fn network(route: &RouteMessage) -> Option<Subnet> {
    let destination = route
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            RouteAttribute::Destination(destination) => ip(destination),
            _ => None,
        });
    Subnet::new(destination?, route.header.destination_prefix_length)
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// Takes away all routes to other nodes, and the devices that they lead to.
pub async fn remove(links: &Links) -> Result<(), LinkError> {
    let handle = links.handle();
    for route in routes(handle).await? {
        delete(handle, &route).await?;
    }
    links.remove_named(tunnel::VXLAN).await?;
    links.remove_named(wireguard::DEVICE).await
}

#[cfg(test)]
mod tests;
