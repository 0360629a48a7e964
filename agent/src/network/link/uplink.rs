//! The link to the rest of the world, by the default route.

use super::{LinkMessage, Links};
use futures::TryStreamExt;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where there is no default route to take it from.
const MTU_DEFAULT: u32 = 1500;

impl Links {
    pub(super) async fn uplink_mtu(&self) -> u32 {
        let v4 = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let v6 = RouteMessageBuilder::<Ipv6Addr>::new().build();
        for family in [v4, v6] {
            let routes = self.0.route().get(family).execute();
            let routes: Vec<_> = routes.try_collect().await.unwrap_or_default();
            if let Some(index) = routes.iter().find_map(default_link) {
                return self.mtu(index).await;
            }
        }
        MTU_DEFAULT
    }

    async fn mtu(&self, index: u32) -> u32 {
        let mut links = self.0.link().get().match_index(index).execute();
        let link = links.try_next().await.ok().flatten();
        link.as_ref().and_then(mtu_of).unwrap_or(MTU_DEFAULT)
    }
}

pub fn mtu_of(link: &LinkMessage) -> Option<u32> {
    link.attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu),
            _ => None,
        })
}

/// A route to nowhere has none.
fn default_link(route: &RouteMessage) -> Option<u32> {
    if route.header.destination_prefix_length != 0 {
        return None;
    }
    let index = route
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            RouteAttribute::Oif(index) => Some(*index),
            _ => None,
        });
    index.filter(|index| *index > 1)
}
