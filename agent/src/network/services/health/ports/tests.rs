//! Over real connections, and thus in real time: one that the kernel is busy with looks like one
//! where nothing happens.

use super::super::{Answer, Checked, Health};
use super::{CONNECTION_MAX, CONNECTIONS_MAX, HealthPorts, RETRY, accept, bind_local};
use crate::network::view::{Key, View};
use coracle_client::clock::Clock;
use coracle_client::connect::{self, Endpoint, Identity, Trust};
use coracle_client::events::Recorder;
use http::StatusCode;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
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
            content_type: "text/plain",
            weight: None,
        })
    };
    tokio::spawn(accept(listener, Arc::new(answer)));
    address
}

/// All that comes until the other end closes.
async fn ask(address: SocketAddr) -> io::Result<String> {
    ask_for(address, REQUEST).await
}

async fn ask_for(address: SocketAddr, request: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test]
async fn a_connection_is_for_one_check() {
    let address = listening().await;
    let answer = timeout(CONNECTION_MAX, ask(address))
        .await
        .unwrap()
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn the_node_says_how_services_are_routed() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let stop = CancellationToken::new();
    let running = tokio::spawn(bind_local(address, stop.clone()));
    let asked = async |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answered = async {
            loop {
                if let Ok(answer) = ask_for(address, request.as_bytes()).await {
                    return answer;
                }
            }
        };
        timeout(RETRY * 4, answered).await.unwrap()
    };
    let answer = asked("/proxyMode").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; charset=utf-8\r\n"));
    assert!(answer.ends_with("\r\n\r\nnftables"), "{answer}");
    assert!(asked("/healthz").await.ends_with("\r\n\r\nok"));
    assert!(asked("/metrics").await.starts_with("HTTP/1.1 404 "));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn who_says_nothing_keeps_no_check_out() {
    let address = listening().await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let clock = Clock::system();
    let start = clock.monotonic();
    let answer = ask(address).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let waited = clock.monotonic() - start;
    // Checks of load balancers wait ten seconds or so.
    assert!(waited < 2 * CONNECTION_MAX, "{waited:?}");
}

#[tokio::test]
async fn a_port_goes_from_one_service_to_another_at_once() {
    let health = Arc::new(Health::new(Clock::system()));
    let changed = Arc::new(Notify::new());
    // Nothing listens where the events go.
    let endpoint = Endpoint::new("http://127.0.0.1:1", Trust::Anybody, Identity::anonymous());
    let ports = HealthPorts {
        health: health.clone(),
        changed: changed.clone(),
        view: View::new(),
        recorder: Recorder::new(connect::client(&endpoint.unwrap()), "kube-proxy", "here"),
        node_name: "here".to_owned(),
    };
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let port = address.port();
    let endpoints = 1;
    let (one, other): (Key, Key) = ("default/one".into(), "default/other".into());
    health.set(&one, Some(Checked { port, endpoints }));
    let stop = CancellationToken::new();
    let running = tokio::spawn(ports.run(stop.clone()));
    let answers = async |name: &str| {
        let text = format!("\"name\": \"{name}\"");
        let asked = async { while !ask(address).await.is_ok_and(|said| said.contains(&text)) {} };
        timeout(RETRY * 4, asked).await.unwrap();
    };
    answers("one").await;
    health.set(&one, None);
    health.set(&other, Some(Checked { port, endpoints }));
    changed.notify_one();
    answers("other").await;
    stop.cancel();
    running.await.unwrap();
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(RETRY * 4, refused).await.unwrap();
}
