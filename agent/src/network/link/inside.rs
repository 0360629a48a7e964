//! What is done in a sandbox's network namespace, on a thread that ends there.

use super::super::subnet::{Subnet, width};
use super::{LinkError, io_error, is_missing, netlink, shape};
use futures::TryStreamExt;
use nix::sched::{CloneFlags, setns};
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::route::{RouteMessage, RouteProtocol, RouteScope};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// What a pod is given.
#[derive(Clone, Debug)]
pub struct Inside {
    /// One of each IP family that the pods have.
    pub ways: Vec<Way>,
    /// The hardware address of all gateways.
    pub gateway: Vec<u8>,
    /// In bytes a second.
    pub egress: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub address: IpAddr,
    pub gateway: IpAddr,
}

/// Brings up `lo` and `eth0`, with its addresses and the routes to the rest of the world. There is
/// nothing around an address: other pods of the node are reached by the gateway too.
pub async fn configure(namespace: File, inside: Inside) -> Result<(), LinkError> {
    let Inside {
        ways,
        gateway: hardware,
        egress,
    } = inside;
    in_namespace(namespace, move |handle| async move {
        let loopback = index_of(&handle, "lo").await?;
        up(&handle, loopback).await?;
        let link = index_of(&handle, "eth0").await?;
        ignore_redirects();
        for Way { address, gateway } in &ways {
            know_gateway(&handle, link, *gateway, &hardware).await?;
            let mut add = handle.address().add(link, *address, width(*address));
            if address.is_ipv6() {
                // Nobody else is on this link, and the pod need not wait.
                add.message_mut().header.flags |= AddressHeaderFlags::Nodad;
            }
            let added = add.execute().await;
            added.map_err(netlink("give the pod its address"))?;
        }
        if let Some(limit) = egress {
            shape::limit(&handle, link, limit).await?;
        }
        up(&handle, link).await?;
        for Way { gateway, .. } in ways {
            let added = handle.route().add(to_gateway(gateway, link));
            let added = added.execute().await;
            added.map_err(netlink("give the pod its route to the node"))?;
            let added = handle.route().add(through_gateway(gateway, link));
            let added = added.execute().await;
            added.map_err(netlink("give the pod its route"))?;
        }
        Ok(())
    })
    .await
}

/// Of a sandbox whose other links are none of ours.
pub async fn bring_up_loopback(namespace: &Path) -> Result<(), LinkError> {
    let file = File::open(namespace).map_err(io_error("open the network namespace"))?;
    in_namespace(file, |handle| async move {
        let loopback = index_of(&handle, "lo").await?;
        up(&handle, loopback).await
    })
    .await
}

/// A pod that was made with its whole network around its address gets to the others by the
/// gateway from now on. Its connections go on.
pub async fn narrow(namespace: File, subnet: Subnet, hardware: Vec<u8>) -> Result<(), LinkError> {
    in_namespace(namespace, move |handle| async move {
        let link = index_of(&handle, "eth0").await?;
        let gateway = subnet.gateway();
        ignore_redirects();
        know_gateway(&handle, link, gateway, &hardware).await?;
        let add = handle.route().add(to_gateway(gateway, link)).replace();
        let added = add.execute().await;
        added.map_err(netlink("give the pod its route to the node"))?;
        let around = route(subnet.base(), subnet.prefix_length, link);
        // Whoever made it: the kernel, with the address.
        let around = around
            .scope(RouteScope::NoWhere)
            .protocol(RouteProtocol::Unspec)
            .build();
        match handle.route().del(around).execute().await {
            Err(error) if !is_missing(&error) && !is_no_such_route(&error) => {
                Err(netlink("take away the pod's route around its address")(
                    error,
                ))
            }
            _ => Ok(()),
        }
    })
    .await
}

fn is_no_such_route(error: &rtnetlink::Error) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(message)
        if message.raw_code().abs() == libc::ESRCH)
}

fn to_gateway(gateway: IpAddr, link: u32) -> RouteMessage {
    let route = route(gateway, width(gateway), link);
    match gateway {
        IpAddr::V4(_) => route.scope(RouteScope::Link).build(),
        IpAddr::V6(_) => route.build(),
    }
}

fn through_gateway(gateway: IpAddr, link: u32) -> RouteMessage {
    match gateway {
        IpAddr::V4(gateway) => RouteMessageBuilder::<Ipv4Addr>::new()
            .gateway(gateway)
            .output_interface(link)
            .build(),
        IpAddr::V6(gateway) => RouteMessageBuilder::<Ipv6Addr>::new()
            .gateway(gateway)
            .output_interface(link)
            .build(),
    }
}

fn route(base: IpAddr, prefix: u8, link: u32) -> RouteMessageBuilder<IpAddr> {
    RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(base, prefix)
        .expect("a prefix of the address's family")
        .output_interface(link)
}

/// The hardware address of the gateway is the same at the node's ends of all pods' links.
async fn know_gateway(
    handle: &Handle,
    link: u32,
    gateway: IpAddr,
    hardware: &[u8],
) -> Result<(), LinkError> {
    let neighbour = handle.neighbours().add(link, gateway);
    let neighbour = neighbour.link_layer_address(hardware);
    let added = neighbour.replace().execute().await;
    added.map_err(netlink("tell the pod who its gateway is"))
}

/// The gateway is the only way out, whatever it says of shorter ones. The kernel shows the thread
/// the files of its own namespace.
fn ignore_redirects() {
    for family in ["ipv4", "ipv6"] {
        for link in ["all", "eth0"] {
            let path = format!("/proc/sys/net/{family}/conf/{link}/accept_redirects");
            if let Err(error) = std::fs::write(&path, "0") {
                tracing::debug!(path, %error, "a pod follows redirects");
            }
        }
    }
}

async fn up(handle: &Handle, index: u32) -> Result<(), LinkError> {
    let message = LinkUnspec::new_with_index(index).up().build();
    let set = handle.link().set(message).execute().await;
    set.map_err(netlink("bring up the pod's link"))
}

async fn index_of(handle: &Handle, name: &str) -> Result<u32, LinkError> {
    let mut links = handle.link().get().match_name(name.to_owned()).execute();
    let link = links
        .try_next()
        .await
        .map_err(netlink("look for the pod's link"))?;
    let link = link.ok_or_else(|| LinkError::Vanished(name.to_owned()))?;
    Ok(link.header.index)
}

/// The thread is never used for anything else: it ends in the other namespace.
async fn in_namespace<Work, Running>(namespace: File, work: Work) -> Result<(), LinkError>
where
    Work: FnOnce(Handle) -> Running + Send + 'static,
    Running: Future<Output = Result<(), LinkError>>,
{
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("pod-network".to_owned())
        .spawn(move || {
            let _ = done.send(run_in(&namespace, work));
        })
        .map_err(io_error("start a thread"))?;
    result
        .await
        .unwrap_or_else(|_| Err(LinkError::Vanished("thread in the namespace".to_owned())))
}

fn run_in<Work, Running>(namespace: &File, work: Work) -> Result<(), LinkError>
where
    Work: FnOnce(Handle) -> Running,
    Running: Future<Output = Result<(), LinkError>>,
{
    setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(|error| io_error("enter the network namespace")(error.into()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(io_error("start a thread"))?;
    runtime.block_on(async {
        let (connection, handle, _) =
            rtnetlink::new_connection().map_err(io_error("open a netlink socket"))?;
        tokio::spawn(connection);
        work(handle).await
    })
}
