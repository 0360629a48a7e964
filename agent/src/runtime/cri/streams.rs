//! The streams of a command, or of a container, from the URL that the runtime gives for them.
//!
//! One connection with a stream each for errors, input, the outputs and sizes. The stream of
//! errors ends with a `Status`, which has the exit code.

use super::super::{RuntimeError, contract::*};
use super::messages::*;
use super::{Inner, missing};
use bytes::{Bytes, BytesMut};
use coracle_streams::spdy::frame::{self, Frame, StreamId};
use coracle_streams::spdy::headers::Packer;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const PROTOCOL: &str = "v4.channel.k8s.io";
const OPEN_MAX: Duration = Duration::from_secs(30);
/// Between the connection and who reads: a full one holds up the others.
const STREAM_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 32 << 10;
/// Frames on their way to the runtime.
const FRAMES_MAX: usize = 32;
/// A person drags a window's edge; what the terminal misses comes with the next.
const RESIZES_MAX: usize = 4;
/// Of an answer that refuses, and of the status at the end.
const WORDS_BYTES_MAX: usize = 64 << 10;

impl Inner {
    pub async fn exec(
        &self,
        id: &ContainerId,
        config: ExecConfig,
    ) -> Result<ExecStreams, RuntimeError> {
        let wanted = AttachConfig {
            stdin: config.stdin,
            stdout: config.stdout,
            stderr: config.stderr,
            tty: config.tty,
        };
        let asked = self.call(ExecRequest {
            container_id: id.0.clone(),
            cmd: config.command,
            tty: wanted.tty,
            stdin: wanted.stdin,
            stdout: wanted.stdout,
            stderr: wanted.stderr,
        });
        let answer = asked
            .await
            .map_err(|status| missing("container", &id.0, status))?;
        open(&answer.url, wanted).await
    }

    pub async fn attach(
        &self,
        id: &ContainerId,
        wanted: AttachConfig,
    ) -> Result<ExecStreams, RuntimeError> {
        let asked = self.call(AttachRequest {
            container_id: id.0.clone(),
            tty: wanted.tty,
            stdin: wanted.stdin,
            stdout: wanted.stdout,
            stderr: wanted.stderr,
        });
        let answer = asked
            .await
            .map_err(|status| missing("container", &id.0, status))?;
        open(&answer.url, wanted).await
    }
}

fn broken(why: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Failed(format!("the runtime's streams broke off: {why}"))
}

async fn open(url: &str, wanted: AttachConfig) -> Result<ExecStreams, RuntimeError> {
    let connected = tokio::time::timeout(OPEN_MAX, connect(url)).await;
    let connection = connected.map_err(|_| broken("the runtime does not answer"))??;
    Ok(streams_of(connection, wanted))
}

async fn connect(url: &str) -> Result<TokioIo<Upgraded>, RuntimeError> {
    let uri: Uri = url
        .parse()
        .map_err(|_| broken(format!("{url:?} is no URL")))?;
    let authority = match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(authority)) => authority.clone(),
        // The runtime and the agent are on one machine; containerd has this off unless asked.
        _ => return Err(broken(format!("{url:?} is no plain http:// URL"))),
    };
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host, port)).await.map_err(broken)?;
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(broken)?;
    // Hands the stream over at the 101 and ends; its errors reach us through the response.
    tokio::spawn(connection.with_upgrades());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header("host", authority.as_str())
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", PROTOCOL)
        .body(Empty::<Bytes>::new());
    let response = sender.send_request(request.map_err(broken)?).await;
    let response = response.map_err(broken)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = response.status();
        let body = Limited::new(response.into_body(), WORDS_BYTES_MAX);
        let body = body.collect().await.map(|body| body.to_bytes());
        let words = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
        return Err(broken(format!("{status} {}", words.trim())));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    Ok(TokioIo::new(upgraded))
}

/// What arrives, by the numbers of the streams.
#[derive(Default)]
struct Arriving {
    error: u32,
    stdout: Option<(u32, DuplexStream)>,
    stderr: Option<(u32, DuplexStream)>,
}

/// Everything ends when the exit is let go of.
fn streams_of(
    connection: impl AsyncRead + AsyncWrite + Send + 'static,
    wanted: AttachConfig,
) -> ExecStreams {
    let (reads, writes) = tokio::io::split(connection);
    let (frames, queue) = mpsc::channel(FRAMES_MAX);
    let (resize, sizes) = mpsc::channel(RESIZES_MAX);
    let mut packer = Packer::default();
    let (mut last, mut first) = (None, BytesMut::new());
    let mut number = |kind: &str| {
        // Those of a client are odd.
        let stream: StreamId = last.map_or(1, |last| last + 2);
        last = Some(stream);
        let block = packer.pack(&[("streamtype", kind)]);
        first.extend_from_slice(&frame::open(stream, &block));
        stream
    };
    let pipe = || tokio::io::duplex(STREAM_BYTES);
    let mut tasks = JoinSet::new();
    let mut arriving = Arriving {
        error: number("error"),
        ..Arriving::default()
    };
    let stdin = wanted.stdin.then(|| {
        let (near, far) = pipe();
        tasks.spawn(feed(number("stdin"), far, frames.clone()));
        near
    });
    let stdout = wanted.stdout.then(|| {
        let (near, far) = pipe();
        arriving.stdout = Some((number("stdout"), far));
        near
    });
    let stderr = wanted.stderr.then(|| {
        let (near, far) = pipe();
        arriving.stderr = Some((number("stderr"), far));
        near
    });
    if wanted.tty {
        tasks.spawn(tell_sizes(number("resize"), sizes, frames.clone()));
    }
    tasks.spawn(write(writes, first.freeze(), queue));
    ExecStreams {
        stdin: stdin.map(|stream| Box::new(stream) as _),
        stdout: stdout.map(|stream| Box::new(stream) as _),
        stderr: stderr.map(|stream| Box::new(stream) as _),
        resize,
        exit: Box::pin(async move {
            let ended = listen(reads, arriving, frames).await;
            drop(tasks);
            ended
        }),
    }
}

/// Until the caller closes the input, which the runtime is told.
async fn feed(stream: u32, mut fed: DuplexStream, frames: mpsc::Sender<Bytes>) {
    let mut block = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = fed.read(&mut block).await {
        let frame = frame::data(stream, &block[..count], false);
        if frames.send(frame).await.is_err() {
            return;
        }
    }
    // A command that has ended needs no end of its input.
    let _ = frames.send(frame::data(stream, &[], true)).await;
}

async fn tell_sizes(
    stream: u32,
    mut sizes: mpsc::Receiver<TerminalSize>,
    frames: mpsc::Sender<Bytes>,
) {
    while let Some(TerminalSize { width, height }) = sizes.recv().await {
        let size = format!("{{\"Width\":{width},\"Height\":{height}}}\n");
        if frames
            .send(frame::data(stream, size.as_bytes(), false))
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn write(
    mut writes: impl AsyncWrite + Unpin,
    first: Bytes,
    mut queue: mpsc::Receiver<Bytes>,
) {
    let mut next = Some(first);
    while let Some(frame) = next {
        let written = async {
            writes.write_all(&frame).await?;
            writes.flush().await
        };
        if written.await.is_err() {
            return;
        }
        next = queue.recv().await;
    }
}

/// Sorts what arrives, until the status has come.
async fn listen(
    mut reads: impl AsyncRead + Unpin,
    mut arriving: Arriving,
    frames: mpsc::Sender<Bytes>,
) -> Result<i32, RuntimeError> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut words = Vec::new();
    loop {
        let read = reads.read_buf(&mut buffer).await.map_err(broken)?;
        while let Some(arrived) = frame::decode(&mut buffer).map_err(broken)? {
            match arrived {
                Frame::Data {
                    id: stream,
                    is_last,
                    payload,
                } if stream == arriving.error => {
                    words.extend_from_slice(&payload);
                    if is_last || words.len() > WORDS_BYTES_MAX {
                        return exit_code(&words);
                    }
                }
                Frame::Data {
                    id: stream,
                    is_last,
                    payload,
                } => arriving.pass(stream, &payload, is_last).await,
                Frame::Reset { id: stream } if stream == arriving.error => {
                    return exit_code(&words);
                }
                Frame::Reset { id: stream } => arriving.pass(stream, &[], true).await,
                // The writer is gone with the connection, which is read to its end.
                Frame::Ping(id) => drop(frames.send(frame::ping(id)).await),
                Frame::Open { .. } | Frame::Headers { .. } | Frame::GoAway | Frame::Other => {}
            }
        }
        if read == 0 {
            return exit_code(&words);
        }
    }
}

impl Arriving {
    /// Who reads no more gets no more.
    async fn pass(&mut self, stream: u32, payload: &[u8], is_last: bool) {
        for output in [&mut self.stdout, &mut self.stderr] {
            if let Some((number, open)) = output
                && *number == stream
                && (open.write_all(payload).await.is_err() || is_last)
            {
                *output = None;
            }
        }
    }
}

/// From the `Status` at the end.
fn exit_code(words: &[u8]) -> Result<i32, RuntimeError> {
    let status: Value = match serde_json::from_slice(words) {
        Ok(status) => status,
        Err(_) if words.is_empty() => return Err(broken("it did not say how it ended")),
        Err(_) => {
            return Err(RuntimeError::Failed(
                String::from_utf8_lossy(words).into_owned(),
            ));
        }
    };
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array();
    let code = causes.and_then(|causes| {
        let cause = causes.iter().find(|cause| cause["reason"] == "ExitCode")?;
        cause["message"].as_str()?.parse().ok()
    });
    match code {
        Some(code) if status["reason"] == "NonZeroExitCode" => Ok(code),
        _ => {
            let message = status["message"].as_str().unwrap_or_default();
            Err(RuntimeError::Failed(message.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests;
