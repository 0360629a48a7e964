//! Messages of an answer, taken from its body one after the other, and the status at their end.

use super::frame::take;
use super::status::decode_message;
use super::{Code, Status, chain};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;
use std::marker::PhantomData;

/// The answers to one call. Dropped before their end, they end the call.
pub struct Answers<A> {
    body: Incoming,
    /// What has arrived and was not taken.
    buffer: BytesMut,
    /// An answer without messages has its status here.
    headers: HeaderMap,
    bytes_max: usize,
    is_over: bool,
    kind: PhantomData<fn() -> A>,
}

impl<A> std::fmt::Debug for Answers<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl<A> Answers<A> {
    pub fn new(response: Response<Incoming>, bytes_max: usize) -> Result<Self, Status> {
        let (parts, body) = response.into_parts();
        if let Some(status) = ended(&parts.headers) {
            status?;
        } else if parts.status != StatusCode::OK {
            let code = Code::of_http(parts.status);
            let message = format!("unexpected HTTP status code received: {}", parts.status);
            return Err(Status::new(code, message));
        }
        Ok(Self {
            body,
            buffer: BytesMut::new(),
            headers: parts.headers,
            bytes_max,
            is_over: false,
            kind: PhantomData,
        })
    }

    async fn next_bytes(&mut self) -> Result<Option<Bytes>, Status> {
        while !self.is_over {
            if let Some(message) = take(&mut self.buffer, self.bytes_max)? {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => self.end(frame.into_trailers().unwrap_or_default())?,
                },
                Some(Err(error)) => return Err(Status::unavailable(chain(&error))),
                None => self.end(HeaderMap::new())?,
            }
        }
        Ok(None)
    }

    fn end(&mut self, trailers: HeaderMap) -> Result<(), Status> {
        self.is_over = true;
        let status = ended(&trailers).or_else(|| ended(&self.headers));
        status.unwrap_or_else(|| {
            let message = "server closed the stream without sending trailers";
            Err(Status::internal(message))
        })?;
        if self.buffer.is_empty() {
            Ok(())
        } else {
            Err(Status::internal("unexpected EOF"))
        }
    }
}

impl<A: Message + Default> Answers<A> {
    /// None when the peer has ended them well.
    pub async fn next(&mut self) -> Result<Option<A>, Status> {
        let Some(message) = self.next_bytes().await? else {
            return Ok(None);
        };
        let decoded = A::decode(message);
        decoded.map(Some).map_err(|error| {
            Status::internal(format!(
                "grpc: failed to unmarshal the received message: {error}"
            ))
        })
    }
}

/// What headers or trailers say of the end; None when they say nothing.
fn ended(fields: &HeaderMap) -> Option<Result<(), Status>> {
    let code = fields.get("grpc-status")?;
    let code = code.to_str().ok().and_then(|code| code.parse().ok());
    let code = Code(code.unwrap_or(Code::UNKNOWN.0));
    if code == Code::OK {
        return Some(Ok(()));
    }
    let message = fields.get("grpc-message");
    let message = message.map_or_else(String::new, |text| decode_message(text.as_bytes()));
    Some(Err(Status::new(code, message)))
}
