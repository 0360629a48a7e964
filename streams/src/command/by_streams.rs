//! Exec and attach over SPDY, as kubectl up to 1.29 and many programs speak it: a stream each for
//! input, outputs, errors and the terminal's size.

use super::{Call, last_word};
use crate::Body;
use crate::spdy::session::{Reader, Session, Stream, Writer};
use crate::spdy::{self, Negotiated};
use bytes::{Bytes, BytesMut};
use coracle_api::frames::{Channel, Decoder, Encoder};
use coracle_api::json;
use coracle_api::status::Status;
use http::Response;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;

const PROTOCOLS: &[&str] = &[
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
];
/// Until the client has opened all of its streams: the kubelet's bound.
const STREAMS_MAX: Duration = Duration::from_secs(30);
/// Sizes that were not complete in one chunk; one is some tens of bytes.
const SIZE_BYTES_MAX: usize = 1024;

pub fn answer(request: &mut Parts, call: Call) -> Result<Response<Body>, Status> {
    let upgrade = match spdy::negotiate(request, PROTOCOLS)? {
        Negotiated::Agreed(upgrade) => upgrade,
        Negotiated::Refused(response) => return Ok(*response),
    };
    let response = upgrade.response();
    tokio::spawn(async move {
        let has_status = upgrade.protocol == PROTOCOLS[0];
        let has_sizes = has_status || upgrade.protocol == PROTOCOLS[1];
        if let Ok(connection) = upgrade.connection.await {
            let session = Session::start(TokioIo::new(connection));
            run(session, call, has_status, has_sizes).await;
        }
    });
    Ok(response)
}

/// The streams of one session, as far as the client opened them.
#[derive(Default)]
struct Opened {
    error: Option<Stream>,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

impl Opened {
    fn put(&mut self, stream: Stream) {
        let place = match stream.headers.get("streamtype") {
            "error" => &mut self.error,
            "stdin" => &mut self.stdin,
            "stdout" => &mut self.stdout,
            "stderr" => &mut self.stderr,
            "resize" => &mut self.resize,
            _ => return,
        };
        *place = Some(stream);
    }

    fn count(&self) -> usize {
        let all = [
            &self.error,
            &self.stdin,
            &self.stdout,
            &self.stderr,
            &self.resize,
        ];
        all.iter().filter(|stream| stream.is_some()).count()
    }
}

async fn run(mut session: Session, call: Call, has_status: bool, has_sizes: bool) {
    let wanted = call.wanted;
    let flags = [
        wanted.stdin,
        wanted.stdout,
        wanted.stderr,
        wanted.tty && has_sizes,
    ];
    let expected = 1 + flags.iter().filter(|flag| **flag).count();
    let mut opened = Opened::default();
    let opening = async {
        while opened.count() < expected {
            match session.accept().await {
                Some(stream) => opened.put(stream),
                None => return false,
            }
        }
        true
    };
    if !matches!(tokio::time::timeout(STREAMS_MAX, opening).await, Ok(true)) {
        return;
    }
    let (input, chunks) = mpsc::channel(super::INPUT_CHUNKS_MAX);
    let [stdin, stdout, stderr, resize, error] = [
        opened.stdin,
        opened.stdout,
        opened.stderr,
        opened.resize,
        opened.error,
    ]
    .map(|stream| stream.map(|stream| (stream.reader, stream.writer)));
    let reading = async {
        tokio::join!(
            feed(stdin.map(|(reader, _)| reader), &input),
            size(resize.map(|(reader, _)| reader), &input),
        );
        std::future::pending::<()>().await;
    };
    let (stdout, stderr) = (stdout.map(|one| one.1), stderr.map(|one| one.1));
    let running = async {
        let last = match call.ask(chunks).await {
            Ok(output) => copy(output, stdout.as_ref(), stderr.as_ref()).await,
            Err(status) => Some(status.to_value()),
        };
        if let (Some(status), Some((_, error))) = (last, &error) {
            finish(error, &status, has_status).await;
        }
    };
    let leaving = async { while session.accept().await.is_some() {} };
    // The client's end ends the session: the request is dropped, and the agent sees it reset.
    tokio::select! {
        () = reading => {}
        () = running => {}
        () = leaving => {}
    }
}

async fn feed(stdin: Option<Reader>, input: &mpsc::Sender<Bytes>) {
    let Some(mut stdin) = stdin else {
        return;
    };
    while let Some(bytes) = stdin.read().await {
        let mut frame = BytesMut::new();
        Encoder.encode(Channel::Stdin, &bytes, &mut frame);
        // The command may have ended; its last word is on the way to the client.
        let _ = input.send(frame.freeze()).await;
    }
    let mut frame = BytesMut::new();
    Encoder.close(Channel::Stdin, &mut frame);
    let _ = input.send(frame.freeze()).await;
}

/// Sizes are JSON documents one after the other.
async fn size(resize: Option<Reader>, input: &mpsc::Sender<Bytes>) {
    let Some(mut resize) = resize else {
        return;
    };
    let mut buffer = Vec::new();
    while let Some(bytes) = resize.read().await {
        buffer.extend_from_slice(&bytes);
        let mut documents = serde_json::Deserializer::from_slice(&buffer).into_iter::<Value>();
        let mut taken = 0;
        let mut frames = BytesMut::new();
        while let Some(Ok(size)) = documents.next() {
            Encoder.encode(Channel::Resize, size.to_string().as_bytes(), &mut frames);
            taken = documents.byte_offset();
        }
        buffer.drain(..taken);
        if buffer.len() > SIZE_BYTES_MAX {
            return;
        }
        if !frames.is_empty() {
            let _ = input.send(frames.freeze()).await;
        }
    }
}

/// Returns the last Status, or nothing when the client is gone.
async fn copy(mut output: Body, stdout: Option<&Writer>, stderr: Option<&Writer>) -> Option<Value> {
    let mut buffer = BytesMut::new();
    loop {
        let Some(Ok(chunk)) = output.frame().await else {
            return Some(Status::internal("the node ended the stream").to_value());
        };
        if let Ok(data) = chunk.into_data() {
            buffer.extend_from_slice(&data);
        }
        loop {
            let frame = match Decoder.decode(&mut buffer) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return Some(Status::internal(error).to_value()),
            };
            let writer = match frame.channel {
                Channel::Error => {
                    for writer in [stdout, stderr].into_iter().flatten() {
                        writer.finish().await.ok()?;
                    }
                    return Some(last_word(&frame.payload));
                }
                Channel::Stdout => stdout,
                Channel::Stderr => stderr,
                _ => None,
            };
            if let Some(writer) = writer {
                writer.write(&frame.payload).await.ok()?;
            }
        }
    }
}

/// Before v4 the error stream carries text, and nothing on success.
async fn finish(error: &Writer, status: &Value, has_status: bool) {
    let text = match (has_status, json::text(status, "status")) {
        (true, _) => status.to_string(),
        (false, "Success") => String::new(),
        (false, _) => json::text(status, "message").to_owned(),
    };
    // The client may be gone already; there is nobody left to tell.
    let _ = error.write(text.as_bytes()).await;
    let _ = error.finish().await;
}
