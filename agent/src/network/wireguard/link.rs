//! The link `coracle-wg` as others see it, whoever does the work behind it: there, up, with the
//! pods' gateway as its address, and with these peers.

use super::key::KeyPair;
use super::{DEVICE, Peers, kernel, user};
use crate::families::Families;
use crate::network::link::{LinkError, Links, find, io_error, is_exists, mtu_of, name, netlink};
use crate::network::subnet::width;
use futures::TryStreamExt;
use rtnetlink::packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressScope};
use rtnetlink::packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use rtnetlink::{Handle, LinkUnspec, LinkWireguard};
use std::net::IpAddr;

/// IP, UDP and WireGuard around a packet.
const OVERHEAD_V4: u32 = 60;
const OVERHEAD_V6: u32 = 80;

pub fn inner_mtu(mtu: u32, underlay: IpAddr) -> u32 {
    let overhead = if underlay.is_ipv4() {
        OVERHEAD_V4
    } else {
        OVERHEAD_V6
    };
    mtu.saturating_sub(overhead)
}

/// What the link is to be.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub port: u16,
    /// Of this node, in the world.
    pub underlay: IpAddr,
    /// Of this node, among the pods.
    pub gateways: Families<IpAddr>,
    /// Of the underlay.
    pub mtu: u32,
    pub peers: &'a Peers,
}

/// This node's end of what is encrypted.
#[derive(Debug)]
pub struct Encrypted {
    own: KeyPair,
    by: Option<By>,
}

#[derive(Debug)]
enum By {
    Kernel(kernel::Device),
    Agent(user::Device),
}

impl Encrypted {
    pub fn new(own: KeyPair) -> Self {
        Self { own, by: None }
    }

    pub fn key(&self) -> super::PublicKey {
        self.own.public
    }

    /// Brings the link to this; its index. `found` are all links.
    pub async fn apply(
        &mut self,
        links: &Links,
        found: &[LinkMessage],
        wanted: Wanted<'_>,
    ) -> Result<u32, LinkError> {
        let handle = links.handle();
        let existing = found.iter().find(|link| name(link) == Some(DEVICE));
        let link = match self.taken_up(existing, wanted) {
            Some(link) => link,
            None => self.begin(handle, existing, wanted).await?,
        };
        let index = link.header.index;
        let mtu = inner_mtu(wanted.mtu, wanted.underlay);
        let is_up = link.header.flags.contains(LinkFlags::Up) && mtu_of(&link) == Some(mtu);
        if !is_up {
            let up = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
            let set = handle.link().set(up).execute().await;
            set.map_err(netlink("bring up the encrypted link to other nodes"))?;
        }
        set_addresses(handle, index, wanted.gateways).await?;
        match self.by.as_mut().expect("it has just begun, or went on") {
            By::Agent(device) => device.set(wanted.peers),
            By::Kernel(device) => device
                .set(index, &self.own, wanted.port, wanted.peers)
                .await
                .map_err(io_error("tell the kernel's WireGuard of other nodes"))?,
        }
        Ok(index)
    }

    /// The link as it is, when nothing is to be begun.
    fn taken_up(&self, existing: Option<&LinkMessage>, wanted: Wanted<'_>) -> Option<LinkMessage> {
        let goes_on = match self.by.as_ref()? {
            By::Kernel(_) => kind(existing?) == Some(&InfoKind::Wireguard),
            By::Agent(device) => {
                let is_tun = kind(existing?) == Some(&InfoKind::Tun);
                is_tun && device.is_running() && device.is_at(wanted.underlay, wanted.port)
            }
        };
        existing.filter(|_| goes_on).cloned()
    }

    /// The link of an agent before this one stays, whose routes lead to it.
    async fn begin(
        &mut self,
        handle: &Handle,
        existing: Option<&LinkMessage>,
        wanted: Wanted<'_>,
    ) -> Result<LinkMessage, LinkError> {
        // Else its device and its port are taken.
        self.by = None;
        let kind = existing.and_then(kind);
        let is_of_kernel = match (existing, kind) {
            (_, Some(InfoKind::Wireguard)) => true,
            (_, Some(InfoKind::Tun)) => false,
            (other, _) => {
                if let Some(link) = other {
                    delete(handle, link.header.index).await?;
                }
                make(handle).await?
            }
        };
        self.by = Some(if is_of_kernel {
            By::Kernel(kernel::Device::default())
        } else {
            let device = user::Device::start(self.own.clone(), wanted.underlay, wanted.port);
            By::Agent(device.map_err(io_error("begin the encrypted link to other nodes"))?)
        });
        let by = if is_of_kernel {
            "the kernel"
        } else {
            "the agent"
        };
        tracing::info!(
            by,
            port = wanted.port,
            "traffic to other nodes is encrypted"
        );
        let link = find(handle, DEVICE).await?;
        link.ok_or_else(|| LinkError::Vanished(DEVICE.to_owned()))
    }
}

/// Whether the kernel could.
async fn make(handle: &Handle) -> Result<bool, LinkError> {
    match handle
        .link()
        .add(LinkWireguard::new(DEVICE).build())
        .execute()
        .await
    {
        Ok(()) => Ok(true),
        Err(error) if is_exists(&error) => Ok(true),
        Err(rtnetlink::Error::NetlinkError(message))
            if message.raw_code().abs() == libc::EOPNOTSUPP =>
        {
            Ok(false)
        }
        Err(error) => Err(netlink("make the encrypted link to other nodes")(error)),
    }
}

/// Takes the link away, if it is there.
pub async fn remove(links: &Links, found: &[LinkMessage]) -> Result<(), LinkError> {
    match found.iter().find(|link| name(link) == Some(DEVICE)) {
        Some(link) => delete(links.handle(), link.header.index).await,
        None => Ok(()),
    }
}

async fn delete(handle: &Handle, index: u32) -> Result<(), LinkError> {
    let deleted = handle.link().del(index).execute().await;
    deleted.map_err(netlink("remove the encrypted link to other nodes"))
}

/// What leaves by the link is of these addresses, where it has no other: so the answer comes by it.
/// Nothing is said again that is so: the kernel would tell of it as of a change.
async fn set_addresses(
    handle: &Handle,
    index: u32,
    gateways: Families<IpAddr>,
) -> Result<(), LinkError> {
    let found = handle.address().get().set_link_index_filter(index);
    let found: Vec<_> = found
        .execute()
        .try_collect()
        .await
        .map_err(netlink("read the addresses of the encrypted link"))?;
    let mut there = Vec::new();
    for message in found {
        let mut attributes = message.attributes.iter();
        let address = attributes.find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        });
        let wanted = address.filter(|address| gateways.contains(address));
        if wanted.is_none() && message.header.scope == AddressScope::Universe {
            let removed = handle.address().del(message).execute().await;
            removed.map_err(netlink("remove an old address of the encrypted link"))?;
        }
        there.extend(wanted);
    }
    for gateway in gateways.iter().filter(|one| !there.contains(one)) {
        let mut add = handle.address().add(index, gateway, width(gateway));
        if gateway.is_ipv6() {
            // Nobody else is on the link.
            add.message_mut().header.flags |= AddressHeaderFlags::Nodad;
        }
        let added = add.execute().await;
        added.map_err(netlink("give the encrypted link its address"))?;
    }
    Ok(())
}

fn kind(link: &LinkMessage) -> Option<&InfoKind> {
    link.attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => infos.iter().find_map(|info| match info {
                LinkInfo::Kind(kind) => Some(kind),
                _ => None,
            }),
            _ => None,
        })
}
