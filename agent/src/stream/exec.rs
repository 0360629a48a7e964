//! `POST /exec/{namespace}/{pod}/{uid}/{container}`: runs a command in a container, and
//! `/attach/...`: its own process.
//!
//! Both bodies are frames. The last frame is a `Status` on the error channel, with the exit code
//! among its causes. When the caller hangs up, the command is hung up on too.

use super::answer::{Body, channel, refuse};
use super::request::{Command, Query};
use super::serve::Server;
use crate::runtime::{
    AttachConfig, ContainerId, ContainerState, ExecConfig, ExecStreams, RuntimeError, TerminalSize,
};
use bytes::{Bytes, BytesMut};
use coracle_api::frames::{Channel, Decoder, Encoder};
use coracle_streams::command::Wanted;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Read from a command at one time.
const BLOCK_BYTES: usize = 32 * 1024;
/// After a command has ended, its outputs may be held open by others for this long.
const DRAIN_MAX: Duration = Duration::from_secs(1);

type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Output = Box<dyn AsyncRead + Send + Unpin>;

pub async fn exec(
    server: &Server,
    command: &Command,
    words: Vec<String>,
    wanted: Wanted,
    input: Body,
) -> Response<Body> {
    let id = match running(server, command).await {
        Ok(id) => id,
        Err(refusal) => return refusal,
    };
    let config = ExecConfig {
        command: words,
        tty: wanted.tty,
        stdin: wanted.stdin,
        stdout: wanted.stdout,
        stderr: wanted.stderr && !wanted.tty,
    };
    let words = config.command.clone();
    match server.stats.context.runtime.exec(&id, config).await {
        Ok(streams) => {
            let (frames, body) = channel();
            tokio::spawn(session(streams, Ending::Command(words), input, frames));
            Response::new(body)
        }
        Err(error) => {
            let text = format!("error executing command in container: {error}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

/// `POST /attach/{namespace}/{pod}/{uid}/{container}`: the same with the container's own process.
pub async fn attach(
    server: &Server,
    command: &Command,
    wanted: Wanted,
    input: Body,
) -> Response<Body> {
    let id = match running(server, command).await {
        Ok(id) => id,
        Err(refusal) => return refusal,
    };
    let config = AttachConfig {
        tty: wanted.tty,
        stdin: wanted.stdin,
        stdout: wanted.stdout,
        stderr: wanted.stderr && !wanted.tty,
    };
    match server.stats.context.runtime.attach(&id, config).await {
        Ok(streams) => {
            let (frames, body) = channel();
            tokio::spawn(session(streams, Ending::Container, input, frames));
            Response::new(body)
        }
        Err(error) => {
            let text = format!("error attaching to container: {error}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

/// `POST /run/...`: the same without frames, for scripts: both outputs as they come.
pub async fn run(server: &Server, command: &Command, query: &Query) -> Response<Body> {
    let id = match running(server, command).await {
        Ok(id) => id,
        Err(refusal) => return refusal,
    };
    let config = ExecConfig {
        command: query
            .get("cmd")
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        stdout: true,
        stderr: true,
        ..ExecConfig::default()
    };
    match server.stats.context.runtime.exec(&id, config).await {
        Ok(streams) => {
            let (chunks, body) = channel();
            tokio::spawn(pass_on(streams, chunks));
            Response::new(body)
        }
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

async fn pass_on(streams: ExecStreams, chunks: mpsc::Sender<Bytes>) {
    let outputs = async {
        tokio::join!(
            copy(None, streams.stdout, &chunks),
            copy(None, streams.stderr, &chunks),
        );
    };
    tokio::select! {
        ((), _) = async { tokio::join!(outputs, streams.exit) } => {}
        () = chunks.closed() => {}
    }
}

/// The container that a command goes to, or the refusal.
pub async fn running(server: &Server, command: &Command) -> Result<ContainerId, Response<Body>> {
    let (_, observed) = server
        .find(&command.namespace, &command.pod, &command.uid)
        .await?;
    let latest = observed.latest(&command.container);
    let running = latest.filter(|latest| latest.state == ContainerState::Running);
    running.map(|running| running.id.clone()).ok_or_else(|| {
        let text = format!(
            "unable to upgrade connection: container not found ({:?})",
            command.container
        );
        refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

/// Whose end ends a session.
enum Ending {
    Command(Vec<String>),
    Container,
}

async fn session(streams: ExecStreams, ending: Ending, input: Body, frames: mpsc::Sender<Bytes>) {
    let ExecStreams {
        stdin,
        stdout,
        stderr,
        resize,
        mut exit,
    } = streams;
    let outputs = async {
        tokio::join!(
            copy(Some(Channel::Stdout), stdout, &frames),
            copy(Some(Channel::Stderr), stderr, &frames),
        );
    };
    tokio::pin!(outputs);
    let feeding = feed(input, stdin, resize);
    tokio::pin!(feeding);
    let (mut is_copied, mut is_fed) = (false, false);
    let code = loop {
        tokio::select! {
            code = &mut exit => break code,
            () = &mut outputs, if !is_copied => is_copied = true,
            () = &mut feeding, if !is_fed => is_fed = true,
            // Dropping the streams hangs up on the command.
            () = frames.closed() => return,
        }
    };
    let status = match ending {
        Ending::Command(words) => {
            if !is_copied {
                let _ = tokio::time::timeout(DRAIN_MAX, outputs).await;
            }
            status(&words, code)
        }
        // Nobody else holds these outputs: they end when they are read.
        Ending::Container => {
            if !is_copied {
                outputs.await;
            }
            status(&[], code)
        }
    };
    let mut last = BytesMut::new();
    Encoder.encode(Channel::Error, status.to_string().as_bytes(), &mut last);
    let _ = frames.send(last.freeze()).await;
}

/// The `Status` that says how a command ended, as the kubelet makes it.
fn status(command: &[String], exit: Result<i32, RuntimeError>) -> Value {
    match exit {
        Ok(0) => json!({ "metadata": {}, "status": "Success" }),
        Ok(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!(
                "command terminated with non-zero exit code: error executing command [{}], exit \
                 code {code}",
                command.join(" ")
            ),
            "reason": "NonZeroExitCode",
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        Err(error) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("error executing command in container: {error}"),
            "reason": "InternalError",
            "details": { "causes": [{ "message": error.to_string() }] },
            "code": 500,
        }),
    }
}

/// In frames of a channel, or as it is.
async fn copy(channel: Option<Channel>, output: Option<Output>, frames: &mpsc::Sender<Bytes>) {
    let Some(mut output) = output else {
        return;
    };
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        // A terminal that was hung up on reads as an error: it is the end.
        let count = match output.read(&mut block).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let chunk = match channel {
            Some(channel) => {
                let mut frame = BytesMut::new();
                Encoder.encode(channel, &block[..count], &mut frame);
                frame.freeze()
            }
            None => Bytes::copy_from_slice(&block[..count]),
        };
        if frames.send(chunk).await.is_err() {
            return;
        }
    }
}

/// Passes input and sizes on until the caller has no more. Keeps the terminal's size open.
async fn feed(mut input: Body, mut stdin: Option<Input>, resize: mpsc::Sender<TerminalSize>) {
    let mut buffer = BytesMut::new();
    while let Some(Ok(frame)) = input.frame().await {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        buffer.extend_from_slice(&data);
        loop {
            match Decoder.decode(&mut buffer) {
                Ok(Some(frame)) => match frame.channel {
                    Channel::Stdin => write(&mut stdin, &frame.payload).await,
                    Channel::Resize => {
                        if let Some(size) = size(&frame.payload) {
                            let _ = resize.send(size).await;
                        }
                    }
                    Channel::Close if frame.payload.first() == Some(&0) => stdin = None,
                    _ => {}
                },
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "a command's input is cut off");
                    return;
                }
            }
        }
    }
}

/// A command that reads no more gets no more.
async fn write(stdin: &mut Option<Input>, payload: &[u8]) {
    let Some(open) = stdin else {
        return;
    };
    let written = async {
        open.write_all(payload).await?;
        open.flush().await
    };
    if written.await.is_err() {
        *stdin = None;
    }
}

fn size(payload: &[u8]) -> Option<TerminalSize> {
    let size: Value = serde_json::from_slice(payload).ok()?;
    let side = |name: &str| u16::try_from(size.get(name)?.as_u64()?).ok();
    Some(TerminalSize {
        width: side("Width")?,
        height: side("Height")?,
    })
}

#[cfg(test)]
mod tests;
