//! Pairs of SPDY streams, each a connection to a port.

use super::{Connection, Pod};
use crate::spdy::session::{Reader, Session, Stream, Writer};
use crate::websocket::{self, Upgrade};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Halves of pairs that wait for the other half.
const HALVES_MAX: usize = 100;
/// How long they wait: the kubelet's bound.
const PAIR_MAX: Duration = Duration::from_secs(30);
/// Of the WebSocket's bytes that wait to be read as SPDY.
const CARRIED_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 32 * 1024;

/// The same over a WebSocket: the bytes of its messages are the connection.
pub async fn in_websocket(upgrade: Upgrade, pod: Pod) {
    let Ok(socket) = upgrade.open().await else {
        return;
    };
    let (near, far) = tokio::io::duplex(CARRIED_BYTES);
    tokio::join!(run(near, pod), websocket::carry(socket, far));
}

/// One stream whose other half has not come yet.
struct Half {
    stream: Stream,
    since: Instant,
}

/// Forwards until the client leaves.
pub async fn run(connection: impl AsyncRead + AsyncWrite + Send + 'static, pod: Pod) {
    let mut session = Session::start(connection);
    let mut halves: BTreeMap<String, Half> = BTreeMap::new();
    let mut forwards = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = session.accept() => stream,
            Some(_) = forwards.join_next() => continue,
        };
        // What is being forwarded ends with the client.
        let Some(stream) = stream else {
            return;
        };
        let Some(pair) = request(&stream) else {
            let _ = stream.writer.reset().await;
            continue;
        };
        halves.retain(|_, half| half.since.elapsed() < PAIR_MAX);
        match halves.remove(&pair) {
            Some(half) if is_data(&half.stream) != is_data(&stream) => {
                let (data, error) = match is_data(&stream) {
                    true => (stream, half.stream),
                    false => (half.stream, stream),
                };
                forwards.spawn(forward(pod.clone(), data, error.writer));
            }
            _ if halves.len() >= HALVES_MAX => drop(stream.writer.reset().await),
            _ => {
                let since = Instant::now();
                halves.insert(pair, Half { stream, since });
            }
        }
    }
}

fn is_data(stream: &Stream) -> bool {
    stream.headers.get("streamtype") == "data"
}

fn port(stream: &Stream) -> Option<u16> {
    stream
        .headers
        .get("port")
        .parse()
        .ok()
        .filter(|port| *port > 0)
}

/// What the two streams of a pair have in common; `None` for a stream that is no half of one.
fn request(stream: &Stream) -> Option<String> {
    port(stream)?;
    let kind = stream.headers.get("streamtype");
    if kind != "data" && kind != "error" {
        return None;
    }
    match stream.headers.get("requestid") {
        // Clients of old open the error stream and then the data stream.
        "" if kind == "error" => Some(stream.id.to_string()),
        "" => Some(stream.id.saturating_sub(2).to_string()),
        id => Some(id.to_owned()),
    }
}

async fn forward(pod: Pod, data: Stream, errors: Writer) {
    let Some(port) = port(&data) else {
        return;
    };
    // A client that is gone is told nothing: its streams have ended.
    match pod.dial(port).await {
        Ok(connection) => {
            copy(connection, data.reader, &data.writer).await;
            let _ = data.writer.finish().await;
        }
        Err(text) => {
            let _ = errors.write(text.as_bytes()).await;
            let _ = data.writer.reset().await;
        }
    }
    let _ = errors.finish().await;
}

/// Ends with the pod's side; the client's end is passed on.
async fn copy(connection: Box<dyn Connection>, mut reader: Reader, writer: &Writer) {
    let (mut reads, mut writes) = tokio::io::split(connection);
    let upwards = async {
        while let Some(bytes) = reader.read().await {
            if writes.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = writes.shutdown().await;
    };
    let downwards = async {
        let mut block = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = reads.read(&mut block).await {
            if writer.write(&block[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::pin!(upwards, downwards);
    tokio::select! {
        () = &mut downwards => {}
        () = &mut upwards => downwards.await,
    }
}
