//! What is done in a sandbox's network namespace, on a thread that ends there.

use super::super::subnet::Subnet;
use super::{LinkError, io_error, netlink};
use futures::TryStreamExt;
use nix::sched::{CloneFlags, setns};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Brings up `lo` and `eth0`, with its address and the route to the rest of the world.
pub async fn configure(namespace: File, address: IpAddr, subnet: Subnet) -> Result<(), LinkError> {
    in_namespace(namespace, move |handle| async move {
        let loopback = index_of(&handle, "lo").await?;
        up(&handle, loopback).await?;
        let link = index_of(&handle, "eth0").await?;
        let add = handle.address().add(link, address, subnet.prefix_length);
        add.execute()
            .await
            .map_err(netlink("give the pod its address"))?;
        up(&handle, link).await?;
        let route = match subnet.gateway() {
            IpAddr::V4(gateway) => RouteMessageBuilder::<Ipv4Addr>::new()
                .gateway(gateway)
                .output_interface(link)
                .build(),
            IpAddr::V6(gateway) => RouteMessageBuilder::<Ipv6Addr>::new()
                .gateway(gateway)
                .output_interface(link)
                .build(),
        };
        let added = handle.route().add(route).execute().await;
        added.map_err(netlink("give the pod its route"))
    })
    .await
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
