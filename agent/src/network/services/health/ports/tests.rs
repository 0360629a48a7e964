//! Over real connections, in time that passes when nobody has anything to do.

use super::super::Answer;
use super::{CONNECTION_MAX, CONNECTIONS_MAX, serve};
use coracle_client::clock::Clock;
use http::StatusCode;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: node\r\n\r\n";

async fn listening() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |path: &str| {
        Some(Answer {
            status: StatusCode::OK,
            body: path.to_owned(),
            weight: None,
        })
    };
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, Arc::new(answer), stop));
    address
}

/// All that comes until the other end closes.
async fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(REQUEST).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_for_one_check() {
    let address = listening().await;
    let answer = timeout(CONNECTION_MAX / 2, ask(address)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_keeps_no_check_out() {
    let address = listening().await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let clock = Clock::system();
    let start = clock.monotonic();
    let answer = ask(address).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let waited = clock.monotonic() - start;
    // Checks of load balancers wait ten seconds or so.
    assert!(waited.as_secs() < 8, "{waited:?}");
}
