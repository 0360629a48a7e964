//! A resolver for tests, which does what the first label of a name says: `ok` has an address,
//! `long` does not fit into a packet, `none` is not there, `fail` is an error, `mute` is nothing.
//! `old` and `bare` have an address for who does not speak of EDNS, and an error for who does:
//! `bare` one that is a header alone.

use super::message::{Answer, Request, Transport};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

pub struct Fake {
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

pub fn name(text: &str) -> Name {
    let mut name = Name::from_ascii(text).unwrap();
    name.set_fqdn(true);
    name
}

/// A port for both protocols: one that is free for the first may be another test's for the second.
pub async fn free<T>(bind: impl AsyncFn() -> io::Result<T>) -> T {
    loop {
        match bind().await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound.unwrap(),
        }
    }
}

impl Fake {
    pub async fn start() -> Self {
        let (udp, tcp) = free(async || {
            let udp = UdpSocket::bind("127.0.0.1:0").await?;
            let tcp = TcpListener::bind(udp.local_addr()?).await?;
            Ok((udp, tcp))
        })
        .await;
        let address = udp.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            loop {
                let (length, client) = udp.recv_from(&mut buffer).await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                if let Some(packet) = answer(&buffer[..length], Transport::Udp) {
                    udp.send_to(&packet, client).await.unwrap();
                }
            }
        });
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = tcp.accept().await.unwrap();
                let length = stream.read_u16().await.unwrap();
                let mut packet = vec![0; length.into()];
                stream.read_exact(&mut packet).await.unwrap();
                let packet = answer(&packet, Transport::Tcp).unwrap();
                stream.write_u16(packet.len() as u16).await.unwrap();
                stream.write_all(&packet).await.unwrap();
            }
        });
        Self { address, asked }
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn answer(packet: &[u8], transport: Transport) -> Option<Vec<u8>> {
    let request = Request::read(packet, transport).unwrap();
    let name = request.query.name.clone();
    let label = name.iter().next().map(<[u8]>::to_vec).unwrap_or_default();
    let record =
        |last| Record::from_rdata(name.clone(), 60, RData::A(A([203, 0, 113, last].into())));
    let has_edns = Message::from_vec(packet).unwrap().edns.is_some();
    let answer = match label.as_slice() {
        b"bare" if has_edns => return Some(bare_error(packet)),
        b"old" if has_edns => Answer::error(ResponseCode::NotImp),
        b"ok" | b"old" | b"bare" => Answer {
            answers: vec![record(7)],
            ..Answer::default()
        },
        b"long" => Answer {
            answers: (0..200).map(record).collect(),
            ..Answer::default()
        },
        b"none" => Answer::error(ResponseCode::NXDomain),
        b"fail" => Answer::error(ResponseCode::ServFail),
        _ => return None,
    };
    Some(request.answer(&answer))
}

fn bare_error(packet: &[u8]) -> Vec<u8> {
    let mut error = packet[..12].to_vec();
    error[2] |= 0x80;
    error[3] = 1;
    error[4..].fill(0);
    error
}
