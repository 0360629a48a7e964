//! Our side of a terminal, as a stream.
#![allow(unsafe_code)] // Tokio cannot know that a descriptor stays open; we do.

use super::super::contract::TerminalSize;
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// A cheap handle. The terminal's end reads as EIO, which is an end here.
#[derive(Clone)]
pub struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    pub fn new(terminal: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&terminal, true)?;
        // SAFETY: an OwnedFd is one open descriptor until the AsyncFd that owns it is dropped.
        let terminal = unsafe { AsyncFd::register(terminal) }?;
        Ok(Self(Arc::new(terminal)))
    }

    /// Until the sender is dropped.
    pub async fn resize(self, mut sizes: mpsc::Receiver<TerminalSize>) {
        while let Some(size) = sizes.recv().await {
            let size = Winsize {
                ws_row: size.height,
                ws_col: size.width,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            // A terminal whose command has ended has no size to set.
            let _ = tcsetwinsize(self.0.get_ref(), size);
        }
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();
            let read = guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut *space)?));
            match read {
                Ok(Ok(count)) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            match guard.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?)) {
                Ok(written) => return Poll::Ready(written),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// A terminal's input has no end of its own.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
