//! Two nodes in network namespaces of a test's own, with a link between them and WireGuard over it.

use super::Device;
use crate::network::link::{Links, find};
use crate::network::subnet::Subnet;
use crate::network::testing::{block_on, isolated};
use crate::network::wireguard::key::{KeyPair, PublicKey};
use crate::network::wireguard::{Peer, Peers};
use nix::sched::{CloneFlags, unshare};
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::sync_channel;

const DEVICE: &str = "wg-test";
const OUTER: &str = "outer";
/// In a namespace that nobody else is in.
const PORT: u16 = 51820;
const MTU: u32 = 1440;

/// A node's number, of which its addresses are made.
type Number = u8;
pub const NEAR: Number = 1;
pub const FAR: Number = 2;

pub fn outer(number: Number) -> IpAddr {
    Ipv4Addr::new(10, 99, 0, number).into()
}

/// In the network of its pods.
pub fn inner(number: Number) -> IpAddr {
    Ipv4Addr::new(10, 42, number, 1).into()
}

/// Runs `work` on the near node, whose end it gets; the far one answers as `Answering` says.
pub fn pair(work: impl FnOnce(&mut Near) + Send + 'static) {
    isolated(|| {
        let (near, far) = (KeyPair::new(), KeyPair::new());
        let (far_public, near_public) = (far.public, near.public);
        let (tell_namespace, namespace) = sync_channel(1);
        let (linked, is_linked) = sync_channel::<()>(1);
        let (tell_ports, ports) = sync_channel(1);
        let (finish, finished) = sync_channel::<()>(1);
        let other = std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("root makes network namespaces");
            tell_namespace
                .send(File::open("/proc/thread-self/ns/net").unwrap())
                .unwrap();
            is_linked.recv().unwrap();
            let _device = begin(FAR, &far, NEAR, near_public);
            tell_ports.send(Answering::begin()).unwrap();
            let _ = finished.recv();
        });
        block_on(join(&namespace.recv().unwrap()));
        linked.send(()).unwrap();
        let device = begin(NEAR, &near, FAR, far_public);
        let mut end = Near {
            device: Some(device),
            own: near,
            far: far_public,
            answering: ports.recv().unwrap(),
        };
        work(&mut end);
        drop(finish);
        other.join().unwrap();
    });
}

pub struct Near {
    device: Option<Device>,
    own: KeyPair,
    far: PublicKey,
    pub answering: Answering,
}

impl Near {
    /// As when an agent ends and another begins.
    pub fn restart(&mut self) {
        self.device = None;
        self.device = Some(begin(NEAR, &self.own, FAR, self.far));
    }

    pub fn is_running(&self) -> bool {
        self.device.as_ref().is_some_and(Device::is_running)
    }
}

/// Links the two namespaces.
async fn join(far: &File) {
    let links = Links::open().unwrap();
    let peer = LinkMessageBuilder::<LinkUnspec>::new()
        .name(OUTER)
        .setns_by_fd(far.as_raw_fd())
        .build();
    let pair = LinkVeth::new(OUTER, OUTER)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    links.handle().link().add(pair).execute().await.unwrap();
}

/// The node's end, with what an agent does around it.
fn begin(number: Number, own: &KeyPair, other: Number, key: PublicKey) -> Device {
    let device = Device::start_named(DEVICE, own.clone(), outer(number), PORT).unwrap();
    block_on(async {
        let links = Links::open().unwrap();
        bring_up(&links, "lo", None, 0).await;
        bring_up(&links, OUTER, Some(outer(number)), 24).await;
        bring_up(&links, DEVICE, Some(inner(number)), 32).await;
        let index = find(links.handle(), DEVICE)
            .await
            .unwrap()
            .unwrap()
            .header
            .index;
        let route = RouteMessageBuilder::<IpAddr>::new()
            .destination_prefix(Ipv4Addr::new(10, 42, other, 0).into(), 24)
            .unwrap()
            .scope(RouteScope::Link)
            .output_interface(index)
            .build();
        let added = links.handle().route().add(route).replace().execute();
        added.await.unwrap();
    });
    let networks = Subnet::new(inner(other), 24).into_iter().collect();
    let peer = Peer {
        endpoint: (outer(other), PORT).into(),
        networks,
    };
    device.set(&Peers::from([(key, peer)]));
    device
}

async fn bring_up(links: &Links, name: &str, address: Option<IpAddr>, prefix: u8) {
    let handle = links.handle();
    let index = find(handle, name).await.unwrap().unwrap().header.index;
    if let Some(address) = address {
        let add = handle.address().add(index, address, prefix);
        add.replace().execute().await.unwrap();
    }
    let mut up = LinkUnspec::new_with_index(index).up();
    if name == DEVICE {
        up = up.mtu(MTU);
    }
    handle.link().set(up.build()).execute().await.unwrap();
}

/// Ports of the far node: one gives back what it gets, one counts it.
pub struct Answering {
    pub echo: u16,
    pub count: u16,
}

impl Answering {
    fn begin() -> Self {
        Self {
            echo: answer(|mut stream| {
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all);
                let _ = stream.write_all(&all);
            }),
            count: answer(|mut stream| {
                let mut buffer = vec![0; 256 << 10];
                let mut count = 0u64;
                while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                    count += bytes as u64;
                }
                let _ = stream.write_all(&count.to_be_bytes());
            }),
        }
    }
}

fn answer(how: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            how(stream);
        }
    });
    port
}
