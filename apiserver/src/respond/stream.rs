//! Bodies made piece by piece while they are sent: a list of any size needs memory for a piece.

use crate::tunnel::{Body, BoxError};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A piece: large enough that what is done once a piece does not count, small beside a client.
pub const PIECE_BYTES: usize = 64 * 1024;
/// What a producer may overshoot a piece by without a new allocation: an object of usual size.
const SLACK_BYTES: usize = 4 * 1024;

/// Writes the next part, of a few objects' size at most; false when it was the last.
pub trait Produce: Send + 'static {
    fn produce(&mut self, out: &mut Vec<u8>) -> bool;
}

struct Pieces<P> {
    producer: Option<P>,
    first: Option<Bytes>,
    /// What is sure to come, for whoever decides by size.
    least: u64,
}

/// A body whose size is known where it is at most `small_max` bytes, and which is made as it goes
/// where it is larger.
pub fn body<P: Produce + Unpin>(mut producer: P, small_max: usize) -> Body {
    let (first, more) = piece(&mut producer, small_max);
    let Some(first) = first else {
        return super::full(Bytes::new());
    };
    if !more {
        return super::full(first);
    }
    let pieces = Pieces {
        producer: Some(producer),
        least: first.len() as u64,
        first: Some(first),
    };
    pieces.boxed_unsync()
}

fn piece(producer: &mut impl Produce, bytes: usize) -> (Option<Bytes>, bool) {
    let mut out = Vec::with_capacity(bytes.min(PIECE_BYTES) + SLACK_BYTES);
    let mut more = true;
    while more && out.len() <= bytes {
        more = producer.produce(&mut out);
    }
    ((!out.is_empty()).then(|| out.into()), more)
}

impl<P: Produce + Unpin> http_body::Body for Pieces<P> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some(producer) = &mut self.producer else {
            return Poll::Ready(None);
        };
        let (next, more) = piece(producer, PIECE_BYTES);
        if !more {
            // What it holds, such as a snapshot, is free at once.
            self.producer = None;
        }
        Poll::Ready(next.map(|next| Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.producer.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if self.first.is_some() {
            hint.set_lower(self.least);
        }
        hint
    }
}
