//! Streams of one SPDY connection.
//!
//! One task reads, one writes. A stream's reader that falls behind holds up the reading of all;
//! a client that does not read holds up who writes to it. Dropping the session ends both.

use super::frame::{self, Frame, StreamId};
use super::headers::{Headers, Packer, Unpacker};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Open at one time in one connection: forwarding a browser's page takes a pair for each of its
/// connections.
const STREAMS_MAX: usize = 1000;
/// Chunks on their way to a stream's reader, and frames on their way to the client.
const CHUNKS_MAX: usize = 16;
const FRAMES_MAX: usize = 32;
/// Streams that wait to be looked at.
const ARRIVALS_MAX: usize = 16;
const READ_BYTES: usize = 32 * 1024;
/// The kubelet's bound on a connection on which nothing happens.
const IDLE_MAX: Duration = Duration::from_secs(4 * 60 * 60);
/// For the client's own end: a connection that ends with something unread throws away what the
/// client has not read.
const FAREWELL_MAX: Duration = Duration::from_secs(5);
/// How long the last words may take to get out.
const FLUSH_MAX: Duration = Duration::from_secs(10);

/// A stream that the client opened.
#[derive(Debug)]
pub struct Stream {
    pub id: StreamId,
    pub headers: Headers,
    pub reader: Reader,
    pub writer: Writer,
}

/// What the client sends on a stream, until it closes its side.
#[derive(Debug)]
pub struct Reader(mpsc::Receiver<Bytes>);

impl Reader {
    pub async fn read(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }
}

/// Our side of a stream. Nothing is told of a client that is gone: its reader ends.
#[derive(Clone, Debug)]
pub struct Writer {
    id: StreamId,
    frames: mpsc::Sender<Bytes>,
}

/// The client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

impl Writer {
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Closed> {
        for piece in bytes.chunks(READ_BYTES) {
            self.send(frame::data(self.id, piece, false)).await?;
        }
        Ok(())
    }

    /// Nothing more comes from us.
    pub async fn finish(&self) -> Result<(), Closed> {
        self.send(frame::data(self.id, &[], true)).await
    }

    pub async fn reset(&self) -> Result<(), Closed> {
        self.send(frame::reset(self.id, frame::CANCEL)).await
    }

    async fn send(&self, frame: Bytes) -> Result<(), Closed> {
        self.frames.send(frame).await.map_err(|_| Closed)
    }
}

/// One connection. When it is dropped, what was written is sent and the connection closed.
#[derive(Debug)]
pub struct Session {
    arrivals: mpsc::Receiver<Stream>,
    _stop: DropGuard,
}

impl Session {
    pub fn start(connection: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (mut reads, writes) = tokio::io::split(connection);
        let (frames, queue) = mpsc::channel(FRAMES_MAX);
        let (arrive, arrivals) = mpsc::channel(ARRIVALS_MAX);
        let stop = CancellationToken::new();
        let reading = Reading {
            streams: BTreeMap::new(),
            unpacker: Unpacker::default(),
            packer: Packer::default(),
            frames,
            arrive,
        };
        let ended = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = reading.run(&mut reads) => {}
                () = ended.cancelled() => {}
            }
            let mut nowhere = tokio::io::sink();
            let unread = tokio::io::copy(&mut reads, &mut nowhere);
            let _ = tokio::time::timeout(FAREWELL_MAX, unread).await;
        });
        tokio::spawn(write(writes, queue));
        Self {
            arrivals,
            _stop: stop.drop_guard(),
        }
    }

    /// The next stream that the client opens; `None` when the connection is at its end.
    pub async fn accept(&mut self) -> Option<Stream> {
        self.arrivals.recv().await
    }
}

struct Reading {
    /// Those whose client's side is open.
    streams: BTreeMap<StreamId, mpsc::Sender<Bytes>>,
    unpacker: Unpacker,
    packer: Packer,
    frames: mpsc::Sender<Bytes>,
    arrive: mpsc::Sender<Stream>,
}

impl Reading {
    async fn run(mut self, reads: &mut (impl AsyncRead + Unpin)) {
        let mut buffer = BytesMut::with_capacity(READ_BYTES);
        loop {
            let read = tokio::time::timeout(IDLE_MAX, reads.read_buf(&mut buffer)).await;
            if !matches!(read, Ok(Ok(1..))) {
                return;
            }
            loop {
                match frame::decode(&mut buffer) {
                    Ok(Some(frame)) => {
                        if self.take(frame).await.is_none() {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        return tracing::debug!(%error, "a SPDY connection is cut off");
                    }
                }
            }
        }
    }

    /// None ends the connection.
    async fn take(&mut self, frame: Frame) -> Option<()> {
        match frame {
            Frame::Open { id, is_last, block } => self.open(id, is_last, &block).await,
            Frame::Headers { id, is_last, block } => {
                self.unpacker.unpack(&block).ok()?;
                self.end_if(id, is_last);
                Some(())
            }
            Frame::Data {
                id,
                is_last,
                payload,
            } => {
                if let Some(stream) = self.streams.get(&id)
                    && !payload.is_empty()
                    && stream.send(payload).await.is_err()
                {
                    // Nobody reads it any more; the client learns that from our end of it.
                    self.streams.remove(&id);
                }
                self.end_if(id, is_last);
                Some(())
            }
            Frame::Reset { id } => {
                self.streams.remove(&id);
                Some(())
            }
            // Ours would have even numbers, and we send none.
            Frame::Ping(id) => self.frames.send(frame::ping(id)).await.ok(),
            Frame::GoAway | Frame::Other => Some(()),
        }
    }

    async fn open(&mut self, id: StreamId, is_last: bool, block: &[u8]) -> Option<()> {
        let headers = self.unpacker.unpack(block);
        let headers = headers
            .inspect_err(|error| tracing::debug!(%error, "a SPDY connection is cut off"))
            .ok()?;
        if self.streams.len() >= STREAMS_MAX || self.streams.contains_key(&id) {
            let refused = frame::reset(id, frame::REFUSED_STREAM);
            return self.frames.send(refused).await.ok();
        }
        let block = self.packer.pack(&[]);
        self.frames.send(frame::reply(id, &block)).await.ok()?;
        let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
        self.streams.insert(id, sender);
        self.end_if(id, is_last);
        let stream = Stream {
            id,
            headers,
            reader: Reader(receiver),
            writer: Writer {
                id,
                frames: self.frames.clone(),
            },
        };
        self.arrive.send(stream).await.ok()
    }

    fn end_if(&mut self, id: StreamId, is_last: bool) {
        if is_last {
            self.streams.remove(&id);
        }
    }
}

/// Ends when nobody can write any more, or the client does not take it.
async fn write(mut writes: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Bytes>) {
    while let Some(frame) = queue.recv().await {
        let written = async {
            writes.write_all(&frame).await?;
            if queue.is_empty() {
                writes.flush().await?;
            }
            std::io::Result::Ok(())
        };
        if written.await.is_err() {
            return;
        }
    }
    // The client may be gone already; there is nobody left to tell.
    let _ = tokio::time::timeout(FLUSH_MAX, writes.shutdown()).await;
}
