//! A link that is there for its addresses alone: what is sent to them stays on this node.

use super::{LinkError, Links, address_of, io_error, is_missing, netlink};
use futures::TryStreamExt;
use rtnetlink::packet_route::address::{AddressHeaderFlags, AddressMessage};
use rtnetlink::packet_route::link::{LinkFlags, LinkMessage};
use rtnetlink::{LinkBridge, LinkDummy, LinkUnspec};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

impl Links {
    /// Makes the link, or leaves it with these addresses and no others. Gives back those that it
    /// could not be given, such as all of a family that is off. Where all is as it should be,
    /// nothing is changed, and nobody hears of a change.
    pub async fn keep_addressed(
        &self,
        name: &'static str,
        addresses: &[IpAddr],
    ) -> Result<BTreeMap<IpAddr, LinkError>, LinkError> {
        let found = self.find(name).await?;
        let is_up = |link: &LinkMessage| link.header.flags.contains(LinkFlags::Up);
        let index = match &found {
            Some(link) => link.header.index,
            None => self.make_addressed(name).await?,
        };
        if !found.as_ref().is_some_and(is_up) {
            let up = LinkUnspec::new_with_index(index).up().build();
            let set = self.0.link().set(up).execute().await;
            set.map_err(netlink("bring up the link of the cluster's DNS"))?;
        }
        let mut missing: BTreeSet<_> = addresses.iter().copied().collect();
        for message in self.addresses_of(index).await? {
            let Some(address) = address_of(&message) else {
                continue;
            };
            let is_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            if !missing.remove(&address) && !is_local {
                let removed = self.0.address().del(message).execute().await;
                removed.map_err(netlink("remove an old address of the cluster's DNS"))?;
            }
        }
        let mut refused = BTreeMap::new();
        for address in missing {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            let mut add = self.0.address().add(index, address, bits);
            // Nobody else is on the link: an address need not be looked for before its use.
            add.message_mut().header.flags = AddressHeaderFlags::Nodad;
            let added = add.execute().await;
            if let Err(error) = added.map_err(netlink("take the address of the cluster's DNS")) {
                refused.insert(address, error);
            }
        }
        Ok(refused)
    }

    pub async fn remove_addressed(&self, name: &'static str) -> Result<(), LinkError> {
        match self.find(name).await? {
            Some(link) => self.delete(link.header.index).await,
            None => Ok(()),
        }
    }

    #[cfg(test)]
    pub async fn has(&self, name: &str) -> bool {
        self.find(name).await.unwrap().is_some()
    }

    /// A kernel without such links has bridges, as pods need one.
    async fn make_addressed(&self, name: &'static str) -> Result<u32, LinkError> {
        let dummy = LinkDummy::new(name).build();
        if let Err(error) = self.0.link().add(dummy).execute().await {
            tracing::debug!(%error, "the link of the cluster's DNS is a bridge");
            let bridge = LinkBridge::new(name).build();
            let made = self.0.link().add(bridge).execute().await;
            made.map_err(netlink("make the link of the cluster's DNS"))?;
        }
        let link = self.find(name).await?;
        let link = link.ok_or_else(|| LinkError::Vanished(name.to_owned()))?;
        Ok(link.header.index)
    }

    async fn addresses_of(&self, index: u32) -> Result<Vec<AddressMessage>, LinkError> {
        let get = self.0.address().get().set_link_index_filter(index);
        match get.execute().try_collect().await {
            Err(error) if is_missing(&error) => Err(io_error("find the link again")(
                std::io::ErrorKind::NotFound.into(),
            )),
            found => found.map_err(netlink("read the addresses of the cluster's DNS")),
        }
    }
}
