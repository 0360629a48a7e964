//! A server of gRPC on a socket, whose answers a test makes up.

use super::Code;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use tokio::net::UnixListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A call as it came: path, headers and the message.
pub struct Call {
    pub path: String,
    pub headers: HeaderMap,
    pub message: Bytes,
}

impl Call {
    pub fn read<Q: Message + Default>(&self) -> Q {
        Q::decode(self.message.clone()).unwrap()
    }
}

/// Parts of a body, then the trailers; None never ends.
pub struct Reply {
    pub parts: Vec<Bytes>,
    pub trailers: Option<Vec<(&'static str, String)>>,
    pub http_status: u16,
}

impl Reply {
    pub fn of(messages: &[&[u8]]) -> Self {
        Self {
            parts: messages.iter().map(|message| framed(message)).collect(),
            trailers: Some(vec![("grpc-status", "0".to_owned())]),
            http_status: 200,
        }
    }

    pub fn message(message: &impl Message) -> Self {
        Self::of(&[&message.encode_to_vec()])
    }

    pub fn status(code: Code, message: &str) -> Self {
        let code = code.0.to_string();
        Self {
            trailers: Some(vec![
                ("grpc-status", code),
                ("grpc-message", message.to_owned()),
            ]),
            ..Self::of(&[])
        }
    }

    pub fn never() -> Self {
        Self {
            trailers: None,
            ..Self::of(&[])
        }
    }
}

pub fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap());
    framed.extend_from_slice(message);
    framed.freeze()
}

/// Dropped, it is gone with all its connections.
pub struct Server {
    _stop: DropGuard,
}

type Answer = Arc<dyn Fn(Call) -> Reply + Send + Sync>;

/// Takes the place of a socket that a former one left.
pub fn serve(path: &Path, answer: impl Fn(Call) -> Reply + Send + Sync + 'static) -> Server {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    let (stop, answer): (_, Answer) = (CancellationToken::new(), Arc::new(answer));
    let guard = stop.clone().drop_guard();
    tokio::spawn(async move {
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted.unwrap().0,
            };
            let (answer, stop) = (answer.clone(), stop.clone());
            let service = service_fn(move |request| respond(request, answer.clone()));
            tokio::spawn(async move {
                let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = serving => {}
                }
            });
        }
    });
    Server { _stop: guard }
}

async fn respond(
    request: Request<Incoming>,
    answer: Answer,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let (parts, body) = request.into_parts();
    let asked = body.collect().await.unwrap().to_bytes();
    let reply = answer(Call {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        message: asked.slice(5..),
    });
    let data = reply.parts.into_iter().map(|part| Ok(Frame::data(part)));
    let mut frames: Vec<Result<_, Infallible>> = data.collect();
    let goes_on = reply.trailers.is_none();
    if let Some(fields) = reply.trailers {
        let mut trailers = HeaderMap::new();
        for (name, value) in fields {
            trailers.insert(name, HeaderValue::from_str(&value).unwrap());
        }
        frames.push(Ok(Frame::trailers(trailers)));
    }
    let frames = futures::stream::iter(frames);
    let body = if goes_on {
        let frames = futures::StreamExt::chain(frames, futures::stream::pending());
        BodyExt::boxed(StreamBody::new(frames))
    } else {
        BodyExt::boxed(StreamBody::new(frames))
    };
    let response = Response::builder().status(reply.http_status).body(body);
    Ok(response.unwrap())
}
