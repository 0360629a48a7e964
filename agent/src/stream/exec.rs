//! `POST /exec/{namespace}/{pod}/{uid}/{container}`: runs a command in a container, and
//! `/attach/...`: its own process.
//!
//! Both bodies are frames. The last frame is a `Status` on the error channel, with the exit code
//! among its causes. When the caller hangs up, the command is hung up on too.

use super::answer::{Body, channel, full, refuse};
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
use tokio_util::sync::CancellationToken;

/// Read from a command at one time.
const BLOCK_BYTES: usize = 32 * 1024;
/// After a command has ended, others may hold its outputs open and say nothing for this long.
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

/// `POST /run/...`: for scripts, what a command said by its end.
pub async fn run(server: &Server, command: &Command, query: &Query) -> Response<Body> {
    let id = match running(server, command).await {
        Ok(id) => id,
        Err(refusal) => return refusal,
    };
    let words = query.get("cmd").unwrap_or_default().split_whitespace();
    let words: Vec<String> = words.map(str::to_owned).collect();
    let runtime = &server.stats.context.runtime;
    match runtime.exec_sync(&id, words.clone()).await {
        Ok((0, said)) => Response::new(full(said)),
        Ok((code, said)) => {
            let (words, said) = (words.join(" "), String::from_utf8_lossy(&said).into_owned());
            let text = format!("command '{words}' exited with {code}: {said}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
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
    let has_ended = CancellationToken::new();
    let outputs = async {
        tokio::join!(
            copy(Channel::Stdout, stdout, &frames, &has_ended),
            copy(Channel::Stderr, stderr, &frames, &has_ended),
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
            has_ended.cancel();
            if !is_copied {
                outputs.await;
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

/// Until the output ends, or is silent once the command `has_ended`. Who takes it may take its time.
async fn copy(
    channel: Channel,
    output: Option<Output>,
    frames: &mpsc::Sender<Bytes>,
    has_ended: &CancellationToken,
) {
    let Some(mut output) = output else {
        return;
    };
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let is_over = async {
            has_ended.cancelled().await;
            tokio::time::sleep(DRAIN_MAX).await;
        };
        let read = tokio::select! {
            biased;
            read = output.read(&mut block) => read,
            () = is_over => return,
        };
        // A terminal that was hung up on reads as an error: it is the end.
        let count = match read {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let mut frame = BytesMut::new();
        Encoder.encode(channel, &block[..count], &mut frame);
        if frames.send(frame.freeze()).await.is_err() {
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
