//! A stream whose client must begin in time.
//!
//! The first bytes say whether HTTP/1.1 or HTTP/2 follows. Nothing else bounds the wait for them:
//! the time for headers and the pings of HTTP/2 begin when the version is known. Past that this
//! only passes bytes on.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// RFC 9113, 3.4.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub struct Beginning<S> {
    stream: S,
    /// Until the version is known.
    awaited: Option<Awaited>,
}

struct Awaited {
    /// Bytes of the preface of HTTP/2 that have come.
    seen: usize,
    end: Pin<Box<Sleep>>,
}

impl Awaited {
    fn is_over_with(&mut self, bytes: &[u8]) -> bool {
        let rest = &HTTP2[self.seen..];
        self.seen += bytes.len();
        !rest.starts_with(bytes) || rest.len() == bytes.len()
    }
}

impl<S> Beginning<S> {
    pub fn new(stream: S, within: Duration) -> Self {
        let end = Box::pin(tokio::time::sleep(within));
        Self {
            stream,
            awaited: Some(Awaited { seen: 0, end }),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Beginning<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(awaited) = &mut this.awaited else {
            return read;
        };
        if read.is_pending() {
            ready!(awaited.end.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if awaited.is_over_with(&buffer.filled()[before..]) {
            this.awaited = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Beginning<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::{Instant, sleep};

    const WITHIN: Duration = Duration::from_secs(25);

    /// Says each part ten seconds after the other; what is read, and when that ended.
    async fn read(parts: &[&[u8]]) -> (usize, io::Result<()>, Duration) {
        let (mut client, server) = tokio::io::duplex(1024);
        let (mut server, begun) = (Beginning::new(server, WITHIN), Instant::now());
        let saying = async {
            for part in parts {
                client.write_all(part).await.unwrap();
                sleep(Duration::from_secs(10)).await;
            }
            sleep(Duration::from_secs(100)).await;
            drop(client);
        };
        let reading = async {
            let (mut count, mut buffer) = (0, [0; 64]);
            loop {
                match server.read(&mut buffer).await {
                    Ok(0) => return (count, Ok(()), begun.elapsed()),
                    Ok(read) => count += read,
                    Err(error) => return (count, Err(error), begun.elapsed()),
                }
            }
        };
        tokio::join!(saying, reading).1
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_begin_is_cut_off() {
        let half: &[&[u8]] = &[b"PRI * ", b"HTTP/2.0\r\n", b"\r\n", b"SM", b"\r\n"];
        let silent: &[&[u8]] = &[];
        for (said, count) in [(silent, 0), (&[b"P"], 1), (half, 18)] {
            let (read, ended, after) = read(said).await;
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert_eq!(after, WITHIN, "{said:?}");
            assert_eq!(read, count, "{said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_began_may_wait() {
        let slow: &[&[u8]] = &[b"PRI * HTTP/2.0\r\n", b"\r\nSM\r\n\r\n", b"", b"more"];
        let other: &[&[u8]] = &[b"P", b"UT / HTTP/1.1\r\n"];
        let (one, all): (&[&[u8]], &[&[u8]]) = (&[b"GET"], &[HTTP2]);
        for said in [one, all, slow, other] {
            let (read, ended, after) = read(said).await;
            ended.unwrap();
            assert!(after > 3 * WITHIN, "{said:?}");
            assert_eq!(read, said.concat().len());
        }
    }
}
