//! Exec and attach, over WebSocket here and over SPDY in `by_streams`.
//!
//! A message of the client is a channel number and its bytes; towards the command it is a frame.
//! The last word is a Status on the error channel: success, an exit code, or what went wrong.

mod by_streams; // The same over SPDY.

use crate::speech::{PROTOCOLS, Speech};
use crate::websocket::{self, FAREWELL_MAX, PING_INTERVAL, SILENCE_MAX, Upgrade};
use crate::{Body, spdy};
use bytes::{Bytes, BytesMut};
use coracle_api::frames::{Channel, Decoder, Encoder};
use coracle_api::json;
use coracle_api::status::Status;
use futures::future::BoxFuture;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::Response;
use http::request::Parts;
use http_body::Frame as BodyFrame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Chunks of input on their way to the agent; a full queue slows the client down.
const INPUT_CHUNKS_MAX: usize = 16;

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Starts a command: takes a body of frames for it, and gives the body of frames that come out of
/// it, the last of them a Status on the error channel.
pub type Start = Box<dyn FnOnce(Body) -> BoxFuture<'static, Result<Body, Status>> + Send>;

/// The streams that a client asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    pub tty: bool,
}

impl Wanted {
    /// A terminal has one output, and nothing at all cannot be asked for.
    pub fn check(mut self) -> Result<Self, Status> {
        self.stderr &= !self.tty;
        if !self.stdin && !self.stdout && !self.stderr {
            let why = "you must specify at least 1 of stdin, stdout, stderr";
            return Err(Status::bad_request(why));
        }
        Ok(self)
    }

    fn takes(self, channel: Channel) -> bool {
        match channel {
            Channel::Stdin => self.stdin,
            Channel::Resize => self.tty,
            _ => false,
        }
    }
}

/// Answers a request that upgrades to a session; the command is started once it is open.
pub fn answer(request: &mut Parts, wanted: Wanted, start: Start) -> Result<Response<Body>, Status> {
    let call = Call { wanted, start };
    if spdy::is_asked(&request.headers) {
        return by_streams::answer(request, call);
    }
    let upgrade = Upgrade::negotiate(request, PROTOCOLS)?;
    let response = upgrade.response();
    let session = Session {
        speech: Speech::of(upgrade.protocol()),
        wanted,
    };
    tokio::spawn(session.run(upgrade, call));
    Ok(response)
}

/// What is to be run, for whom.
struct Call {
    wanted: Wanted,
    start: Start,
}

impl Call {
    /// Starts the command; the answer's body is what comes out of it.
    async fn ask(self, chunks: mpsc::Receiver<Bytes>) -> Result<Body, Status> {
        let chunks = futures::stream::unfold(chunks, |mut chunks| async {
            let chunk = chunks.recv().await?;
            Some((Ok::<_, Infallible>(BodyFrame::data(chunk)), chunks))
        });
        let body = StreamBody::new(chunks)
            .map_err(|never| match never {})
            .boxed_unsync();
        (self.start)(body).await
    }
}

/// One client on a WebSocket.
#[derive(Clone, Copy)]
struct Session {
    speech: Speech,
    wanted: Wanted,
}

impl Session {
    async fn run(self, upgrade: Upgrade, call: Call) {
        let Ok(socket) = upgrade.open().await else {
            return;
        };
        let (mut sink, stream) = socket.split();
        let (input, chunks) = mpsc::channel(INPUT_CHUNKS_MAX);
        let write_node = self.write_node(stream, input);
        let read_node = async {
            let last = match call.ask(chunks).await {
                Ok(output) => self.read_node(&mut sink, output).await,
                Err(status) => Some(status.to_value()),
            };
            if let Some(status) = last {
                self.finish(&mut sink, &status).await;
            }
        };
        // The client's end ends the session: the request is dropped, and the agent sees it reset.
        let mut write_node = std::pin::pin!(write_node);
        tokio::select! {
            () = &mut write_node => return,
            () = read_node => {}
        }
        let _ = tokio::time::timeout(FAREWELL_MAX, write_node).await;
    }

    /// Returns when the client is gone. While the client only listens, it waits.
    async fn write_node(&self, mut stream: SplitStream<Socket>, input: mpsc::Sender<Bytes>) {
        loop {
            let message = match tokio::time::timeout(SILENCE_MAX, stream.next()).await {
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => return,
                Ok(Some(Ok(message))) => message,
            };
            let Some(frame) = self.speech.read(message) else {
                continue;
            };
            let mut bytes = BytesMut::new();
            match frame.channel {
                Channel::Close if self.speech.close => {
                    match frame
                        .payload
                        .first()
                        .copied()
                        .and_then(Channel::from_number)
                    {
                        Some(closed) if self.wanted.takes(closed) => {
                            Encoder.close(closed, &mut bytes);
                        }
                        _ => continue,
                    }
                }
                channel if self.wanted.takes(channel) => {
                    Encoder.encode(channel, &frame.payload, &mut bytes);
                }
                _ => continue,
            }
            // The command may have ended; its last word is on the way to the client.
            let _ = input.send(bytes.freeze()).await;
        }
    }

    /// Returns the last Status, or nothing when the client is gone.
    async fn read_node(
        &self,
        sink: &mut SplitSink<Socket, Message>,
        mut output: Body,
    ) -> Option<Value> {
        // Upstream greets on the lowest channel that it writes: the session is open.
        let lowest = match self.wanted {
            Wanted { stdout: true, .. } => Channel::Stdout,
            Wanted { stderr: true, .. } => Channel::Stderr,
            _ => Channel::Error,
        };
        sink.send(self.speech.message(lowest, b"")).await.ok()?;
        let mut buffer = BytesMut::new();
        let mut pings = tokio::time::interval(PING_INTERVAL);
        loop {
            let chunk = tokio::select! {
                _ = pings.tick() => {
                    sink.send(Message::Ping(Bytes::new())).await.ok()?;
                    continue;
                }
                chunk = output.frame() => chunk,
            };
            let Some(Ok(chunk)) = chunk else {
                return Some(Status::internal("the node ended the stream").to_value());
            };
            if let Ok(data) = chunk.into_data() {
                buffer.extend_from_slice(&data);
            }
            loop {
                match Decoder.decode(&mut buffer) {
                    Ok(Some(frame)) if frame.channel == Channel::Error => {
                        return Some(last_word(&frame.payload));
                    }
                    Ok(Some(frame)) => {
                        let message = self.speech.message(frame.channel, &frame.payload);
                        let shown = match frame.channel {
                            Channel::Stdout => self.wanted.stdout,
                            Channel::Stderr => self.wanted.stderr,
                            _ => false,
                        };
                        if shown {
                            sink.send(message).await.ok()?;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return Some(Status::internal(error).to_value()),
                }
            }
        }
    }

    async fn finish(&self, sink: &mut SplitSink<Socket, Message>, status: &Value) {
        let text = if self.speech.status {
            status.to_string()
        } else if json::text(status, "status") == "Success" {
            String::new()
        } else {
            json::text(status, "message").to_owned()
        };
        if !text.is_empty() {
            let message = self.speech.message(Channel::Error, text.as_bytes());
            if sink.send(message).await.is_err() {
                return;
            }
        }
        // The client may be gone already; there is nobody left to tell.
        let _ = sink.send(websocket::goodbye()).await;
    }
}

/// The agent's Status, or one about it when it cannot be read.
fn last_word(payload: &[u8]) -> Value {
    match serde_json::from_slice(payload) {
        Ok(Value::Object(status)) => Value::Object(status),
        _ => Status::internal("the node ended the stream without a status").to_value(),
    }
}
