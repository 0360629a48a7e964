//! Compression of large answers, for clients that take it, as they are sent.

use crate::tunnel::{Body, BoxError};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY,
};
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Smaller answers go out as they are: upstream's threshold.
pub const THRESHOLD_BYTES: usize = 128 * 1024;
/// Compressed bytes are passed on when there are this many.
const PIECE_BYTES: usize = 32 * 1024;

pub fn is_wanted(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(',').any(|one| one.trim() == "gzip"))
}

/// Compresses an answer that is large enough and no stream without an end.
pub fn compress(response: Response<Body>) -> Response<Body> {
    let size = response.body().size_hint();
    let is_large = size.lower() > THRESHOLD_BYTES as u64;
    let headers = response.headers();
    if !is_large
        || response.status() != StatusCode::OK
        || headers.contains_key(CONTENT_ENCODING)
        || !headers.contains_key(CONTENT_TYPE)
    {
        return response;
    }
    let mut response = response.map(|body| Gzip::new(body).boxed_unsync());
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

struct Gzip {
    body: Body,
    /// Absent once the end is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Gzip {
    fn new(body: Body) -> Self {
        Self {
            body,
            // The least work; higher levels save little and cost much.
            encoder: Some(GzEncoder::new(Vec::new(), Compression::new(1))),
        }
    }

    /// What is compressed and not passed on yet.
    fn take(&mut self) -> Option<Bytes> {
        let out = self.encoder.as_mut()?.get_mut();
        (out.len() >= PIECE_BYTES).then(|| std::mem::take(out).into())
    }
}

impl http_body::Body for Gzip {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if self.encoder.is_none() {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    if let Some(encoder) = &mut self.encoder {
                        encoder.write_all(&data)?;
                    }
                    if let Some(bytes) = self.take() {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let last = self.encoder.take().map(GzEncoder::finish).transpose()?;
                    return Poll::Ready(last.map(|last| Ok(Frame::data(last.into()))));
                }
            }
        }
    }
}
