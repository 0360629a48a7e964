//! Fixed ports over the channels of a WebSocket: two a port, the even one for bytes and the odd
//! one for what went wrong. The first message of each is the port.

use super::Pod;
use super::speech::Speech;
use crate::websocket::{self, Upgrade};
use bytes::Bytes;
use coracle_api::status::Status;
use futures::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

pub const PROTOCOLS: &[&str] = &["v4.channel.k8s.io", "v4.base64.channel.k8s.io"];

/// A channel's number is one byte, and a port has two.
const PORTS_MAX: usize = 127;
const CHUNKS_MAX: usize = 16;
const READ_BYTES: usize = 32 * 1024;
/// The kubelet's bound on a connection on which nothing happens.
const IDLE_MAX: Duration = Duration::from_secs(4 * 60 * 60);

/// Each text may list several.
pub fn ports(texts: &[String]) -> Result<Vec<u16>, Status> {
    let texts: Vec<&str> = texts.iter().flat_map(|list| list.split(',')).collect();
    if texts.is_empty() {
        return Err(Status::bad_request("query parameter \"port\" is required"));
    }
    if texts.len() > PORTS_MAX {
        let why = format!("at most {PORTS_MAX} ports can be forwarded at one time");
        return Err(Status::bad_request(why));
    }
    let ports = texts.iter().map(|text| match text.parse() {
        Ok(0) => Err(Status::bad_request(format!("port {text:?} must be > 0"))),
        Ok(port) => Ok(port),
        Err(_) => Err(Status::bad_request(format!(
            "unable to parse {text:?} as a port: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))),
    });
    ports.collect()
}

pub async fn run(upgrade: Upgrade, pod: Pod, ports: Vec<u16>) {
    let speech = Speech::of(upgrade.protocol());
    let Ok(socket) = upgrade.open().await else {
        return;
    };
    let (mut sink, mut messages) = socket.split();
    let (output, mut queue) = mpsc::channel::<Message>(CHUNKS_MAX);
    let mut inputs = Vec::new();
    let mut forwards = JoinSet::new();
    for (index, port) in ports.into_iter().enumerate() {
        let channel = u8::try_from(index * 2).unwrap_or(u8::MAX);
        let (input, chunks) = mpsc::channel(CHUNKS_MAX);
        inputs.push(input);
        let connection = Connection {
            pod: pod.clone(),
            port,
            channel,
            speech,
        };
        forwards.spawn(connection.forward(chunks, output.clone()));
    }
    drop(output);
    let reading = async {
        while let Ok(Some(Ok(message))) = tokio::time::timeout(IDLE_MAX, messages.next()).await {
            if matches!(message, Message::Close(_)) {
                return;
            }
            if let Some((channel, bytes)) = speech.read(message)
                && channel % 2 == 0
                && let Some(input) = inputs.get(usize::from(channel / 2))
            {
                // A port that takes no more gets no more.
                let _ = input.send(bytes).await;
            }
        }
    };
    let writing = async {
        while let Some(message) = queue.recv().await {
            if sink.send(message).await.is_err() {
                return;
            }
        }
        // All ports are through; the client may be gone already.
        let _ = sink.send(websocket::goodbye()).await;
    };
    let mut reading = std::pin::pin!(reading);
    tokio::select! {
        () = &mut reading => return,
        () = writing => {}
    }
    let _ = tokio::time::timeout(websocket::FAREWELL_MAX, reading).await;
}

struct Connection {
    pod: Pod,
    port: u16,
    channel: u8,
    speech: Speech,
}

impl Connection {
    /// Ends with the pod's side or the client.
    async fn forward(self, mut chunks: mpsc::Receiver<Bytes>, output: mpsc::Sender<Message>) {
        let say = |channel: u8, bytes: &[u8]| {
            let message = self.speech.message(channel, bytes);
            let output = &output;
            async move { output.send(message).await }
        };
        let number = self.port.to_le_bytes();
        for channel in [self.channel, self.channel + 1] {
            if say(channel, &number).await.is_err() {
                return;
            }
        }
        let connection = match self.pod.dial(self.port).await {
            Ok(connection) => connection,
            Err(text) => {
                // A client that is gone is told nothing.
                let _ = say(self.channel + 1, text.as_bytes()).await;
                return;
            }
        };
        let (mut reads, mut writes) = tokio::io::split(connection);
        let upwards = async {
            while let Some(bytes) = chunks.recv().await {
                if writes.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            let _ = writes.shutdown().await;
            std::future::pending::<()>().await;
        };
        let downwards = async {
            let mut block = vec![0; READ_BYTES];
            while let Ok(count @ 1..) = reads.read(&mut block).await {
                if say(self.channel, &block[..count]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = upwards => {}
            () = downwards => {}
        }
    }
}
