//! How much passes in a second, between two network namespaces of one machine.
//!
//! Run by hand: `cargo test -p coracle-agent --lib wireguard::user::measure -- --ignored --nocapture`

use super::testing::{FAR, inner, outer, pair};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::time::Instant;

const BYTES: u64 = 1 << 30;
const ROUNDS: usize = 3;
const ROUND_TRIPS: u32 = 2000;

#[allow(clippy::disallowed_methods)] // What is measured is time.
fn now() -> Instant {
    Instant::now()
}

/// In megabits a second.
fn rate(address: IpAddr, port: u16) -> u64 {
    let chunk = vec![7u8; 256 << 10];
    let start = now();
    let mut stream = TcpStream::connect((address, port)).unwrap();
    let mut left = BYTES;
    while left > 0 {
        let bytes = left.min(chunk.len() as u64);
        stream
            .write_all(&chunk[..usize::try_from(bytes).unwrap()])
            .unwrap();
        left -= bytes;
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut count = [0; 8];
    stream.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_be_bytes(count), BYTES);
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap();
    BYTES * 8 / micros
}

/// Connections made and ended, one after the other: microseconds for each.
fn connection(address: IpAddr, port: u16) -> u128 {
    let start = now();
    for _ in 0..ROUND_TRIPS {
        let mut stream = TcpStream::connect((address, port)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut count = [0; 8];
        stream.read_exact(&mut count).unwrap();
    }
    start.elapsed().as_micros() / u128::from(ROUND_TRIPS)
}

#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout)]
fn how_much_passes() {
    pair(|near| {
        let port = near.answering.count;
        for _ in 0..ROUNDS {
            let (plain, encrypted) = (rate(outer(FAR), port), rate(inner(FAR), port));
            let (quick, slow) = (connection(outer(FAR), port), connection(inner(FAR), port));
            println!("plain {plain} Mbit/s, {quick} us a connection");
            println!("encrypted {encrypted} Mbit/s, {slow} us a connection");
        }
    });
}
