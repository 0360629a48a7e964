//! What passes between the hosts of a lab: every frame on the bridges and the router between them.

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimeout};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [8, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];
const IPV6_BYTES: usize = 40;
const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Flow {
    pub protocol: u8,
    pub from: (IpAddr, u16),
    pub to: (IpAddr, u16),
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub flows: BTreeSet<Flow>,
    /// Packets of other protocols: from and to.
    pub others: BTreeSet<(IpAddr, IpAddr)>,
    /// How many frames have the text in them.
    pub texts: usize,
}

impl Seen {
    /// Those with an end in a network, which is its first bytes.
    pub fn within(&self, network: &[u8]) -> Vec<String> {
        let is_in = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().starts_with(network),
            IpAddr::V6(address) => address.octets().starts_with(network),
        };
        let flows = self.flows.iter();
        let flows = flows.filter(|flow| is_in(flow.from.0) || is_in(flow.to.0));
        let others = self.others.iter();
        let others = others.filter(|(from, to)| is_in(*from) || is_in(*to));
        let flows = flows.map(|flow| format!("{flow:?}"));
        flows
            .chain(others.map(|other| format!("{other:?}")))
            .collect()
    }

    /// How each of these hosts was spoken to by each other one, if it was: in protocols and ports.
    pub fn between(&self, hosts: &[IpAddr]) -> BTreeMap<(IpAddr, IpAddr), BTreeSet<(u8, u16)>> {
        let mut ways: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let are_hosts = |from: IpAddr, to: IpAddr| hosts.contains(&from) && hosts.contains(&to);
        for flow in &self.flows {
            if are_hosts(flow.from.0, flow.to.0) {
                let ends = ways.entry((flow.from.0, flow.to.0)).or_default();
                ends.insert((flow.protocol, flow.to.1));
            }
        }
        for (from, to) in &self.others {
            if are_hosts(*from, *to) {
                ways.entry((*from, *to)).or_default().insert((0, 0));
            }
        }
        ways
    }

    pub fn udp_to(&self, port: u16) -> usize {
        let flows = self.flows.iter();
        flows
            .filter(|flow| flow.protocol == UDP && flow.to.1 == port)
            .count()
    }

    /// How many connections were begun towards an end.
    pub fn tcp_to(&self, to: (IpAddr, u16)) -> usize {
        let flows = self.flows.iter();
        flows
            .filter(|flow| flow.protocol == TCP && flow.to == to)
            .count()
    }
}

/// Ends when it is dropped.
pub struct Capture {
    seen: Arc<Mutex<Seen>>,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Capture {
    /// In a namespace; frames with `text` in them are counted.
    pub fn begin(namespace: &str, text: &'static [u8]) -> Self {
        let namespace = File::open(format!("/run/netns/{namespace}")).unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::spawn({
            let (seen, is_over) = (seen.clone(), is_over.clone());
            move || {
                setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
                let all = SockProtocol::EthAll;
                let family = AddressFamily::Packet;
                let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, all).unwrap();
                setsockopt(&socket, RcvBufForce, &(32 << 20)).unwrap();
                setsockopt(&socket, ReceiveTimeout, &TimeVal::milliseconds(50)).unwrap();
                begun.send(()).unwrap();
                let mut frame = vec![0; 70_000];
                while !is_over.load(Ordering::Relaxed) {
                    // Nothing for a while is an error here.
                    let Ok(bytes) = recv(socket.as_raw_fd(), &mut frame, MsgFlags::empty()) else {
                        continue;
                    };
                    note(&mut seen.lock().unwrap(), &frame[..bytes], text);
                }
            }
        });
        has_begun.recv().unwrap();
        Self {
            seen,
            is_over,
            thread: Some(thread),
        }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// What was seen until now is forgotten.
    pub fn forget(&self) {
        *self.seen.lock().unwrap() = Seen::default();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn note(seen: &mut Seen, frame: &[u8], text: &[u8]) {
    if frame.windows(text.len()).any(|part| part == text) {
        seen.texts += 1;
    }
    let Some(packet) = frame.get(ETHERNET_BYTES..) else {
        return;
    };
    let kind = [frame[12], frame[13]];
    let Some((protocol, from, to, transport)) = packet_of(kind, packet) else {
        return;
    };
    let port = |at: usize| {
        let bytes = transport.get(at..)?.first_chunk::<2>()?;
        Some(u16::from_be_bytes(*bytes))
    };
    match (protocol, port(0), port(2)) {
        (protocol @ (TCP | UDP), Some(from_port), Some(to_port)) => {
            seen.flows.insert(Flow {
                protocol,
                from: (from, from_port),
                to: (to, to_port),
            });
        }
        _ => {
            seen.others.insert((from, to));
        }
    }
}

/// Its protocol, ends and content, if it is one of IP.
fn packet_of(kind: [u8; 2], packet: &[u8]) -> Option<(u8, IpAddr, IpAddr, &[u8])> {
    match kind {
        IPV4 => {
            let address = |at: usize| packet.get(at..)?.first_chunk::<4>().copied();
            let (from, to) = (Ipv4Addr::from(address(12)?), Ipv4Addr::from(address(16)?));
            let content = packet.get(usize::from(packet[0] & 15) * 4..)?;
            Some((packet[9], from.into(), to.into(), content))
        }
        IPV6 => {
            let address = |at: usize| packet.get(at..)?.first_chunk::<16>().copied();
            let (from, to) = (Ipv6Addr::from(address(8)?), Ipv6Addr::from(address(24)?));
            Some((packet[6], from.into(), to.into(), packet.get(IPV6_BYTES..)?))
        }
        _ => None,
    }
}
