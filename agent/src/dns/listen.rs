//! Sockets: questions over UDP and TCP, with bounds on what waits and for how long.

use super::message::Transport;
use super::responder::{Responder, Response};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Questions of all clients that others are being asked.
const WAITING_MAX: usize = 1024;
const CONNECTIONS_MAX: usize = 128;
/// A connection that asks nothing for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// No question is longer.
const QUESTION_BYTES_MAX: usize = 2048;
/// Packets taken before others have their turn on this thread.
const BURST: usize = 64;
/// After an error that says nothing of what to do, such as a lack of descriptors.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Sockets {
    udp: Arc<UdpSocket>,
    tcp: TcpListener,
}

impl Sockets {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let udp = UdpSocket::bind(address).await?;
        // The same port, where the system was asked for any.
        let tcp = TcpListener::bind(udp.local_addr()?).await?;
        Ok(Self {
            udp: Arc::new(udp),
            tcp,
        })
    }

    #[cfg(test)]
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Until `stop`.
    pub async fn serve(self, responder: Arc<Responder>, stop: CancellationToken) {
        let waiting = Arc::new(Semaphore::new(WAITING_MAX));
        let udp = udp(self.udp, responder.clone(), waiting);
        let tcp = tcp(self.tcp, responder, stop.clone());
        // Apart, so that many connections do not hold up packets.
        let (udp, tcp) = (tokio::spawn(udp), tokio::spawn(tcp));
        stop.cancelled().await;
        udp.abort();
        tcp.abort();
        // The sockets are closed when both are gone.
        let _ = tokio::join!(udp, tcp);
    }
}

async fn udp(socket: Arc<UdpSocket>, responder: Arc<Responder>, waiting: Arc<Semaphore>) {
    let mut buffer = vec![0; QUESTION_BYTES_MAX];
    loop {
        if socket.readable().await.is_err() {
            tokio::time::sleep(ERROR_PAUSE).await;
            continue;
        }
        for _ in 0..BURST {
            match socket.try_recv_from(&mut buffer) {
                Ok((length, client)) => {
                    one_packet(&socket, &responder, &waiting, &buffer[..length], client);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A client that is gone says so on the next packet of another.
                Err(_) => {}
            }
        }
        tokio::task::yield_now().await;
    }
}

fn one_packet(
    socket: &Arc<UdpSocket>,
    responder: &Arc<Responder>,
    waiting: &Arc<Semaphore>,
    packet: &[u8],
    client: SocketAddr,
) {
    match responder.respond(packet, Transport::Udp) {
        Response::Nothing => {}
        // Clients ask again: a full buffer loses an answer rather than hold up the others.
        Response::Ready(packet) => drop(socket.try_send_to(&packet, client)),
        Response::Later(later) => match waiting.clone().try_acquire_owned() {
            Ok(permit) => {
                let (socket, responder) = (socket.clone(), responder.clone());
                tokio::spawn(async move {
                    let packet = responder.wait(*later).await;
                    let _ = socket.send_to(&packet, client).await;
                    drop(permit);
                });
            }
            Err(_) => drop(socket.try_send_to(&Responder::busy(&later), client)),
        },
    }
}

async fn tcp(listener: TcpListener, responder: Arc<Responder>, stop: CancellationToken) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = connections.clone().acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ERROR_PAUSE).await;
            continue;
        };
        let (responder, stop) = (responder.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                _ = connection(stream, &responder) => {}
            }
            drop(permit);
        });
    }
}

/// One question after the other, each with its length before it.
async fn connection(mut stream: TcpStream, responder: &Responder) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; QUESTION_BYTES_MAX];
    loop {
        let question = async {
            let length = usize::from(stream.read_u16().await?);
            let place = buffer.get_mut(..length);
            let place = place.ok_or_else(|| io::Error::other("no question is that long"))?;
            stream.read_exact(place).await?;
            Ok::<_, io::Error>(length)
        };
        let length = timeout(IDLE_MAX, question).await??;
        let packet = match responder.respond(&buffer[..length], Transport::Tcp) {
            Response::Nothing => return Ok(()),
            Response::Ready(packet) => packet,
            Response::Later(later) => responder.wait(*later).await,
        };
        let length = u16::try_from(packet.len()).map_err(io::Error::other)?;
        let framed = [&length.to_be_bytes()[..], &packet].concat();
        timeout(IDLE_MAX, stream.write_all(&framed)).await??;
    }
}

#[cfg(test)]
mod tests;
