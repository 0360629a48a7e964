//! Streams of a running container, through a connection of their own to its shim.

use super::super::{RuntimeError, contract::*};
use super::watch::connect;
use super::{Inner, io_error};
use bytes::BytesMut;
use coracle_api::frames::{Channel, Decoder, Encoder};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Between the shim and whoever reads: a full one holds up the container.
const STREAM_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 32 << 10;
/// A person drags a window's edge; what the terminal misses comes with the next.
const RESIZES_MAX: usize = 4;

impl Inner {
    pub async fn attach_streams(
        &self,
        id: &ContainerId,
        config: AttachConfig,
    ) -> Result<ExecStreams, RuntimeError> {
        let container = self.container(id)?;
        if !container.is_running() {
            return Err(RuntimeError::Failed(format!(
                "container {id} is not running"
            )));
        }
        let failed = || io_error("cannot reach the shim".into());
        let mut shim = connect(&container.directory).map_err(failed())?;
        let streams = [
            (config.stdin, "stdin"),
            (config.stdout, "stdout"),
            (config.stderr, "stderr"),
        ];
        let wanted = streams.iter().filter(|(is_wanted, _)| *is_wanted);
        let words: String = wanted.flat_map(|(_, name)| [" ", name]).collect();
        let line = format!("attach{words}\n");
        let written = shim.write_all(line.as_bytes()).await;
        written.map_err(failed())?;
        let (resize, mut sizes) = mpsc::channel::<TerminalSize>(RESIZES_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Some(TerminalSize { width, height }) = sizes.recv().await {
                // A container that has ended has no size to set.
                let _ = container.request(&format!("resize {width} {height}")).await;
            }
        });
        Ok(streams_of(shim, config, resize, tasks))
    }
}

/// Everything ends when the exit is let go of.
fn streams_of(
    shim: UnixStream,
    config: AttachConfig,
    resize: mpsc::Sender<TerminalSize>,
    mut tasks: JoinSet<()>,
) -> ExecStreams {
    let pipe = |is_wanted: bool| is_wanted.then(|| tokio::io::duplex(STREAM_BYTES)).unzip();
    let (reads, writes) = shim.into_split();
    let (stdin, fed) = pipe(config.stdin);
    let (stdout, out) = pipe(config.stdout);
    let (stderr, err) = pipe(config.stderr);
    // Kept for as long as the rest: a closed half says that nobody is attached any more.
    let writes = Arc::new(tokio::sync::Mutex::new(writes));
    if let Some(fed) = fed {
        tasks.spawn(feed(fed, Arc::clone(&writes)));
    }
    ExecStreams {
        stdin: stdin.map(|stream| Box::new(stream) as _),
        stdout: stdout.map(|stream| Box::new(stream) as _),
        stderr: stderr.map(|stream| Box::new(stream) as _),
        resize,
        exit: Box::pin(async move {
            let ended = listen(reads, out, err).await;
            drop((tasks, writes));
            ended
                .map(|()| 0)
                .map_err(io_error("the shim broke off".into()))
        }),
    }
}

/// Until the caller closes the input, which is told to the shim.
async fn feed(mut fed: DuplexStream, shim: Arc<tokio::sync::Mutex<OwnedWriteHalf>>) {
    let mut block = vec![0; READ_BYTES];
    let mut shim = shim.lock().await;
    let mut frame = BytesMut::new();
    while let Ok(count @ 1..) = fed.read(&mut block).await {
        Encoder.encode(Channel::Stdin, &block[..count], &mut frame);
        if shim.write_all(&frame).await.is_err() {
            return;
        }
        frame.clear();
    }
    Encoder.close(Channel::Stdin, &mut frame);
    // A container that has ended needs no end of its input.
    let _ = shim.write_all(&frame).await;
}

/// Sorts what the container says, until it ends.
async fn listen(
    mut shim: OwnedReadHalf,
    mut stdout: Option<DuplexStream>,
    mut stderr: Option<DuplexStream>,
) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    while shim.read_buf(&mut buffer).await? > 0 {
        while let Some(frame) = Decoder.decode(&mut buffer).map_err(io::Error::other)? {
            match frame.channel {
                Channel::Stdout => pass(&mut stdout, &frame.payload).await,
                Channel::Stderr => pass(&mut stderr, &frame.payload).await,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Who reads no more gets no more.
async fn pass(stream: &mut Option<impl AsyncWrite + Unpin>, payload: &[u8]) {
    if let Some(open) = stream
        && open.write_all(payload).await.is_err()
    {
        *stream = None;
    }
}
