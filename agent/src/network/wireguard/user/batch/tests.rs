//! What goes together, over a socket of the loopback.

use super::{BYTES_MAX, Batch, DATAGRAMS_MAX};
use crate::network::wireguard::user::socket::{self, Socket};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn to(port: u16) -> SocketAddr {
    (LOCAL, port).into()
}

#[test]
fn only_datagrams_of_one_size_to_one_end_go_together() {
    let mut batch = Batch::new(2000);
    assert!(batch.fits(to(1), 1500));
    batch.push(to(1), 1500);
    assert!(batch.fits(to(1), 1500));
    assert!(!batch.fits(to(2), 1500));
    assert!(!batch.fits(to(1), 1501));
    assert!(batch.fits(to(1), 90));
    batch.push(to(1), 90);
    // A shorter one is the last.
    assert!(!batch.fits(to(1), 90));
    let mut batch = Batch::new(2000);
    for _ in 0..DATAGRAMS_MAX {
        assert!(batch.fits(to(1), 100));
        batch.push(to(1), 100);
    }
    assert!(!batch.fits(to(1), 100));
    let mut batch = Batch::new(2000);
    while batch.fits(to(1), 1500) {
        batch.push(to(1), 1500);
    }
    assert_eq!(batch.count(), BYTES_MAX / 1500);
    assert!(batch.room().len() >= 2000);
}

#[tokio::test]
async fn what_is_sent_as_one_comes_as_it_was_put() {
    let there = socket::open(LOCAL, 0).unwrap();
    let end = to(there.local_addr().unwrap().port());
    let there = Socket::new(there).unwrap();
    let here = Socket::new(socket::open(LOCAL, 0).unwrap()).unwrap();
    let mut batch = Batch::new(2000);
    let sizes = [700usize, 700, 700, 40, 1200, 1200, 3];
    for (number, bytes) in (0u8..).zip(sizes) {
        batch.room()[..bytes].fill(number);
        if !batch.fits(end, bytes) {
            batch.send_before(bytes, &here).await;
        }
        batch.push(end, bytes);
    }
    batch.send(&here).await;
    let mut got = Vec::new();
    let mut buffer = vec![0; 70_000];
    while got.len() < sizes.len() {
        there.readable().await.unwrap();
        while let Ok(received) = there.receive(&mut buffer) {
            for datagram in buffer[..received.bytes].chunks(received.segment) {
                assert!(datagram.iter().all(|byte| *byte == datagram[0]));
                got.push((datagram[0], datagram.len()));
            }
        }
    }
    let put: Vec<_> = (0u8..).zip(sizes).collect();
    assert_eq!(got, put);
}
