//! Bodies that pass through and are kept on the way, up to a bound; and a word when one has ended.

use crate::tunnel::{Body, BoxError};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// More of a body than this is not recorded: the log is for reading, and memory is small.
pub const KEPT_MAX: usize = 4 * 1024 * 1024;

/// What has passed so far.
#[derive(Debug, Default)]
pub struct Kept {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

impl Kept {
    fn add(&mut self, bytes: &Bytes) {
        if self.is_cut || self.bytes.len() + bytes.len() > KEPT_MAX {
            self.is_cut = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

type OnEnd = Box<dyn FnOnce() + Send>;

struct Capture {
    inner: Body,
    kept: Option<Arc<Mutex<Kept>>>,
    /// Called once: at the end, or when the body is dropped before.
    on_end: Option<OnEnd>,
}

/// Keeps what passes.
pub fn keep(inner: Body, kept: Arc<Mutex<Kept>>) -> Body {
    let capture = Capture {
        inner,
        kept: Some(kept),
        on_end: None,
    };
    capture.boxed_unsync()
}

/// Keeps what passes where asked to, and calls when no more comes.
pub fn until_end(inner: Body, kept: Option<Arc<Mutex<Kept>>>, on_end: OnEnd) -> Body {
    let capture = Capture {
        inner,
        kept,
        on_end: Some(on_end),
    };
    capture.boxed_unsync()
}

impl Capture {
    fn end(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end();
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.end();
    }
}

impl HttpBody for Capture {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(kept), Some(data)) = (&self.kept, frame.data_ref()) {
                    kept.lock().add(data);
                }
            }
            Poll::Ready(None) => self.end(),
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
