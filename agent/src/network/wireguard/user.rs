//! WireGuard in the agent: a thread between a tun device and a UDP socket.
//!
//! A thread of its own, since others of the agent wait for disks. Nothing is queued here but what
//! waits for a first handshake (bounded by the library): what comes too fast stays in the device
//! and in the socket, whose bounds are the kernel's.

mod batch; // Datagrams that are sent as one.
mod ends; // Who is behind which key.
#[cfg(test)]
mod measure; // By hand.
mod socket;
#[cfg(test)]
mod testing;
mod tun;

pub use ends::KEEPALIVE_SECONDS;

use super::key::KeyPair;
use super::{DEVICE, Peers};
use batch::Batch;
use ends::{Act, Ends, HANDSHAKE_BYTES, OVERHEAD_BYTES};
use socket::Socket;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tun::Tun;

/// The clock of keys and signs of life.
const TICK: Duration = Duration::from_secs(1);
/// Packets of one direction before the other has its turn.
const PACKETS_PER_TURN: usize = 64;
/// The largest packet there is.
const PACKET_BYTES_MAX: usize = 65_535;
const BUFFER_BYTES: usize = PACKET_BYTES_MAX + OVERHEAD_BYTES + HANDSHAKE_BYTES;

/// Ends its thread when it is dropped; the link stays.
#[derive(Debug)]
pub struct Device {
    peers: watch::Sender<Arc<Peers>>,
    is_ipv4: bool,
    port: u16,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Device {
    /// Makes the link, or takes up the one that is there. It is to be brought up by who starts it.
    pub fn start(own: KeyPair, address: IpAddr, port: u16) -> io::Result<Self> {
        Self::start_named(DEVICE, own, address, port)
    }

    fn start_named(name: &str, own: KeyPair, address: IpAddr, port: u16) -> io::Result<Self> {
        let tun = Tun::open(name)?;
        let socket = socket::open(address, port)?;
        let (peers, told) = watch::channel(Arc::default());
        let stop = CancellationToken::new();
        let thread = std::thread::Builder::new()
            .name("wireguard".to_owned())
            .spawn({
                let stop = stop.clone();
                move || run(tun, socket, own, told, &stop)
            })?;
        Ok(Self {
            peers,
            is_ipv4: address.is_ipv4(),
            port,
            stop,
            thread: Some(thread),
        })
    }

    /// Whether it is heard there.
    pub fn is_at(&self, address: IpAddr, port: u16) -> bool {
        (self.is_ipv4, self.port) == (address.is_ipv4(), port)
    }

    pub fn set(&self, peers: &Peers) {
        self.peers.send_if_modified(|known| {
            let is_new = **known != *peers;
            if is_new {
                *known = Arc::new(peers.clone());
            }
            is_new
        });
    }

    pub fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // It looks at it after each turn.
            let _ = thread.join();
        }
    }
}

fn run(
    tun: Tun,
    socket: std::net::UdpSocket,
    own: KeyPair,
    told: watch::Receiver<Arc<Peers>>,
    stop: &CancellationToken,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let working = async { Worker::new(tun, socket, own)?.work(told).await };
            let ended = stop.run_until_cancelled(working).await;
            ended.unwrap_or(Ok(()))
        })
    });
    if let Err(error) = ended {
        tracing::warn!(%error, "the link to other nodes ended");
    }
}

struct Worker {
    tun: AsyncFd<Tun>,
    socket: Socket,
    ends: Ends,
    batch: Batch,
    packet: Vec<u8>,
    datagram: Vec<u8>,
    buffer: Vec<u8>,
}

impl Worker {
    fn new(tun: Tun, socket: std::net::UdpSocket, own: KeyPair) -> io::Result<Self> {
        Ok(Self {
            tun: tun.registered()?,
            socket: Socket::new(socket)?,
            ends: Ends::new(own),
            batch: Batch::new(BUFFER_BYTES),
            packet: vec![0; PACKET_BYTES_MAX],
            datagram: vec![0; BUFFER_BYTES],
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Until the device is gone, or nobody wants it.
    async fn work(mut self, mut told: watch::Receiver<Arc<Peers>>) -> io::Result<()> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let has_ends = !self.ends.is_empty();
            tokio::select! {
                changed = told.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let peers = told.borrow_and_update().clone();
                    self.configure(&peers);
                }
                _ = ticks.tick(), if has_ends => self.tick(),
                ready = self.tun.readable() => {
                    drop(ready?);
                    self.take_packets().await?;
                }
                ready = self.socket.readable() => {
                    ready?;
                    self.take_datagrams();
                }
            }
            // Whatever comes and however much: the other side, the ticks and a stop have their turn.
            tokio::task::yield_now().await;
        }
    }

    fn configure(&mut self, peers: &Peers) {
        let (socket, tun) = (&self.socket, self.tun.get_ref());
        let mut act = |act: Act<'_>| perform(socket, tun, &act);
        self.ends.configure(peers, &mut self.buffer, &mut act);
    }

    fn tick(&mut self) {
        let (socket, tun) = (&self.socket, self.tun.get_ref());
        let mut act = |act: Act<'_>| perform(socket, tun, &act);
        self.ends.tick(&mut self.buffer, &mut act);
    }

    async fn take_packets(&mut self) -> io::Result<()> {
        for _ in 0..PACKETS_PER_TURN {
            let read = self.tun.try_io(tokio::io::Interest::READABLE, |tun| {
                tun.read(&mut self.packet)
            });
            let length = match read {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.batch.send(&self.socket).await;
                    return Err(error);
                }
            };
            let packet = &self.packet[..length];
            let Some((to, bytes)) = self.ends.encrypt(packet, self.batch.room()) else {
                continue;
            };
            if !self.batch.fits(to, bytes) {
                self.batch.send_before(bytes, &self.socket).await;
            }
            self.batch.push(to, bytes);
        }
        self.batch.send(&self.socket).await;
        Ok(())
    }

    fn take_datagrams(&mut self) {
        let mut count = 0;
        while count < PACKETS_PER_TURN {
            let Ok(received) = self.socket.receive(&mut self.datagram) else {
                return;
            };
            let (socket, tun) = (&self.socket, self.tun.get_ref());
            let mut act = |act: Act<'_>| perform(socket, tun, &act);
            let datagrams = self.datagram[..received.bytes].chunks(received.segment.max(1));
            // One that is empty is one too: they cost nobody anything to send.
            count += datagrams.len().max(1);
            for datagram in datagrams {
                self.ends
                    .decrypt(received.from, datagram, &mut self.buffer, &mut act);
            }
        }
    }
}

/// What cannot be done now is lost, as on any link.
fn perform(socket: &Socket, tun: &Tun, act: &Act<'_>) {
    match act {
        Act::Send(to, datagram) => socket.send_now(*to, datagram),
        Act::Deliver(packet) => {
            let _ = tun.write(packet);
        }
    }
}

#[cfg(test)]
mod tests;
