//! `pods/exec` and `pods/attach`, over WebSocket here and over SPDY in `by_streams`.
//!
//! A message of the client is a channel number and its bytes; towards the agent it is a frame.
//! The last word is a Status on the error channel: success, an exit code, or what went wrong.

mod by_streams; // The same over SPDY.

use super::speech::{PROTOCOLS, Speech};
use super::websocket::{self, PING_INTERVAL, SILENCE_MAX, Upgrade};
use super::{Place, Streams, refusal, spdy};
use crate::authenticate::User;
use crate::query::{Query, encode};
use crate::request_info::RequestInfo;
use crate::tunnel::{Body, Tunnels};
use bytes::{Bytes, BytesMut};
use coracle_api::frames::{Channel, Decoder, Encoder};
use coracle_api::json;
use coracle_api::status::Status;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::request::Parts;
use http::{Request, Response};
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

/// The streams that a client asked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Wanted {
    fn read(query: &Query) -> Result<Self, Status> {
        let tty = query.flag("tty");
        let wanted = Self {
            stdin: query.flag("stdin"),
            stdout: query.flag("stdout"),
            // A terminal has one output.
            stderr: query.flag("stderr") && !tty,
            tty,
        };
        if !wanted.stdin && !wanted.stdout && !wanted.stderr {
            let why = "you must specify at least 1 of stdin, stdout, stderr";
            return Err(Status::bad_request(why));
        }
        Ok(wanted)
    }

    fn takes(self, channel: Channel) -> bool {
        match channel {
            Channel::Stdin => self.stdin,
            Channel::Resize => self.tty,
            _ => false,
        }
    }
}

impl Streams {
    pub(super) fn exec(
        &self,
        action: &'static str,
        mut request: Parts,
        info: &RequestInfo,
        user: &User,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        self.check_create(user, info)?;
        let place = self.place(info, query.text("container"))?;
        if place.node.is_empty() {
            let why = format!("pod {} does not have a host assigned", info.name);
            return Err(Status::bad_request(why));
        }
        let wanted = Wanted::read(query)?;
        self.expect_connected(&place.node)?;
        let call = Call {
            action,
            uri: uri(action, &place, wanted, query),
            place,
            wanted,
            tunnels: self.tunnels.clone(),
        };
        if spdy::is_asked(&request.headers) {
            return Ok(by_streams::answer(&mut request, call));
        }
        let upgrade = Upgrade::negotiate(&mut request, PROTOCOLS)?;
        let response = upgrade.response();
        let session = Session {
            speech: Speech::of(upgrade.protocol()),
            call,
        };
        tokio::spawn(session.run(upgrade));
        Ok(response)
    }
}

fn uri(action: &str, place: &Place, wanted: Wanted, query: &Query) -> String {
    let mut passed = Query::default();
    for command in query.all("command") {
        passed.push("command", command);
    }
    let flags = [
        ("stdin", wanted.stdin),
        ("stdout", wanted.stdout),
        ("stderr", wanted.stderr),
        ("tty", wanted.tty),
    ];
    for (name, set) in flags {
        if set {
            passed.push(name, "true");
        }
    }
    format!(
        "http://node/{action}/{}/{}/{}/{}?{passed}",
        encode(&place.namespace),
        encode(&place.pod),
        encode(&place.uid),
        encode(&place.container)
    )
}

/// What is asked of the node.
struct Call {
    action: &'static str,
    uri: String,
    place: Place,
    wanted: Wanted,
    tunnels: Tunnels,
}

impl Call {
    /// Starts the command; the answer's body is what comes out of it.
    async fn ask(&self, chunks: mpsc::Receiver<Bytes>) -> Result<Body, Status> {
        let chunks = futures::stream::unfold(chunks, |mut chunks| async {
            let chunk = chunks.recv().await?;
            Some((Ok::<_, Infallible>(BodyFrame::data(chunk)), chunks))
        });
        let body = StreamBody::new(chunks)
            .map_err(|never| match never {})
            .boxed_unsync();
        let request = Request::post(&self.uri)
            .body(body)
            .map_err(Status::internal)?;
        let answer = self.tunnels.request(&self.place.node, request).await?;
        if !answer.status().is_success() {
            return Err(refusal(answer, self.action, &self.place.pod).await);
        }
        Ok(answer.into_body().map_err(Into::into).boxed_unsync())
    }
}

/// One client on a WebSocket.
struct Session {
    call: Call,
    speech: Speech,
}

impl Session {
    async fn run(self, upgrade: Upgrade) {
        let Ok(socket) = upgrade.open().await else {
            return;
        };
        let (mut sink, stream) = socket.split();
        let (input, chunks) = mpsc::channel(INPUT_CHUNKS_MAX);
        let write_node = self.write_node(stream, input);
        let read_node = async {
            let last = match self.call.ask(chunks).await {
                Ok(output) => self.read_node(&mut sink, output).await,
                Err(status) => Some(status.to_value()),
            };
            if let Some(status) = last {
                self.finish(&mut sink, &status).await;
            }
        };
        // The client's end ends the session: the request is dropped, and the agent sees it reset.
        tokio::select! {
            () = write_node => {}
            () = read_node => {}
        }
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
                        Some(closed) if self.call.wanted.takes(closed) => {
                            Encoder.close(closed, &mut bytes);
                        }
                        _ => continue,
                    }
                }
                channel if self.call.wanted.takes(channel) => {
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
        let lowest = match self.call.wanted {
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
                            Channel::Stdout => self.call.wanted.stdout,
                            Channel::Stderr => self.call.wanted.stderr,
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
