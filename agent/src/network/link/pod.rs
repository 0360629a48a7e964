//! A pod's pair of links: `eth0` in its namespace, and one on the node that is on no bridge. The
//! node leads the pod's address to that link, and answers at it as the gateway.
//!
//! On a bridge, packets between pods would pass the packet filter or not by the mood of
//! br_netfilter, which other software of the machine sets. Both ends know each other's hardware
//! address, so nobody asks for it.

use super::{
    Bandwidth, Bridge, LinkError, Links, hardware_address, inside, io_error, kernel, link_name,
    netlink, shape,
};
use crate::families::Families;
use crate::network::subnet::width;
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkMessage};
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::Path;

/// What a pod is given.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Never empty; one of each of the bridge's networks.
    pub addresses: Families<IpAddr>,
    pub bandwidth: Bandwidth,
}

fn hardware_address_of(pod: Families<IpAddr>) -> Vec<u8> {
    hardware_address(pod.first().expect("a pod has an address"))
}

impl Links {
    /// Connects a namespace by `eth0` with these addresses, and the gateway as its only way out.
    pub async fn attach(
        &self,
        bridge: &Bridge,
        id: &str,
        namespace: &Path,
        given: Given,
    ) -> Result<(), LinkError> {
        // What a try before this one left is in an unknown state.
        self.detach(id).await?;
        let name = link_name(id);
        let file = File::open(namespace).map_err(io_error("open the network namespace"))?;
        let peer = LinkMessageBuilder::<LinkUnspec>::new()
            .name("eth0")
            .mtu(bridge.mtu)
            .address(hardware_address_of(given.addresses))
            .setns_by_fd(file.as_raw_fd())
            .build();
        let pair = LinkVeth::new(&name, "eth0")
            .mtu(bridge.mtu)
            .address(bridge.hardware_address())
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .build();
        let made = self.0.link().add(pair).execute().await;
        made.map_err(netlink("make the pod's link"))?;
        let link = self.find(&name).await?;
        let link = link.ok_or_else(|| LinkError::Vanished(name.clone()))?;
        let index = link.header.index;
        let up = LinkUnspec::new_with_index(index).up().build();
        let set = self.0.link().set(up).execute().await;
        set.map_err(netlink("bring up the node's end of the pod's link"))?;
        if let Some(limit) = given.bandwidth.ingress {
            shape::limit(&self.0, index, limit).await?;
        }
        self.lead(index, given.addresses, bridge).await?;
        let ways = bridge.subnets.iter().filter_map(|subnet| {
            Some(inside::Way {
                address: given.addresses.of(subnet.is_ipv4())?,
                gateway: subnet.gateway(),
            })
        });
        let inside = inside::Inside {
            ways: ways.collect(),
            gateway: bridge.hardware_address(),
            egress: given.bandwidth.egress,
        };
        inside::configure(file, inside).await
    }

    /// The node's loopback address may lead to the pod.
    pub fn route_loopback(&self, id: &str) {
        kernel::route_loopback(&link_name(id));
    }

    /// What is for the pod goes by its link.
    async fn lead(
        &self,
        index: u32,
        pod: Families<IpAddr>,
        bridge: &Bridge,
    ) -> Result<(), LinkError> {
        let hardware = hardware_address_of(pod);
        for address in pod.iter() {
            let subnet = bridge.subnets.of(address.is_ipv4());
            let source = subnet.map(|subnet| subnet.gateway());
            self.lead_one(index, address, &hardware, source).await?;
        }
        Ok(())
    }

    async fn lead_one(
        &self,
        index: u32,
        address: IpAddr,
        hardware: &[u8],
        source: Option<IpAddr>,
    ) -> Result<(), LinkError> {
        let neighbour = self.0.neighbours().add(index, address);
        let neighbour = neighbour.link_layer_address(hardware);
        let added = neighbour.replace().execute().await;
        added.map_err(netlink("say who is at the pod's link"))?;
        let route = RouteMessageBuilder::<IpAddr>::new()
            .destination_prefix(address, width(address))
            .expect("a prefix of the address's family")
            .output_interface(index);
        let route = match source {
            Some(gateway @ IpAddr::V4(_)) => route
                .scope(RouteScope::Link)
                .pref_source(gateway)
                .expect("an address of the pod's family"),
            _ => route,
        };
        let added = self.0.route().add(route.build()).replace().execute().await;
        added.map_err(netlink("lead to the pod's link"))
    }

    /// Takes a running pod from the bridge that an older agent put it on, and leads to it, which a
    /// crash may have come before. Its connections go on.
    pub async fn adopt(
        &self,
        bridge: &Bridge,
        id: &str,
        namespace: &Path,
        pod: Families<IpAddr>,
    ) -> Result<(), LinkError> {
        let Some(link) = self.find(&link_name(id)).await? else {
            return Ok(());
        };
        let index = link.header.index;
        if is_bridged(&link) {
            self.take_from_bridge(index, bridge, namespace).await?;
        }
        self.lead(index, pod, bridge).await
    }

    async fn take_from_bridge(
        &self,
        index: u32,
        bridge: &Bridge,
        namespace: &Path,
    ) -> Result<(), LinkError> {
        let file = File::open(namespace).map_err(io_error("open the network namespace"))?;
        let subnet = bridge.subnets.first().expect("a bridge has a network");
        inside::narrow(file, subnet, bridge.hardware_address()).await?;
        let alone = LinkUnspec::new_with_index(index)
            .nocontroller()
            .address(bridge.hardware_address())
            .build();
        let set = self.0.link().set(alone).execute().await;
        set.map_err(netlink("take the pod's link from the bridge"))
    }
}

pub(super) fn is_bridged(link: &LinkMessage) -> bool {
    let mut attributes = link.attributes.iter();
    attributes.any(|attribute| matches!(attribute, LinkAttribute::Controller(index) if *index > 0))
}
