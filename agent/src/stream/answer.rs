//! Bodies of answers, and refusals in the kubelet's plain text.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde::Serialize;
use tokio::sync::mpsc;

/// Chunks on their way to the server; a full queue slows their source down.
const CHUNKS_MAX: usize = 16;

pub use coracle_streams::Body;

pub fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub fn json(document: &impl Serialize) -> Response<Body> {
    let text = match serde_json::to_vec(document) {
        Ok(text) => text,
        Err(error) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let mut response = Response::new(full(text));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

pub fn refuse(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    response
}

/// What a refusal says.
pub async fn text(refusal: Response<Body>) -> String {
    match refusal.into_body().collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A body that is fed while it is sent. The sender sees it closed when the other side hung up.
pub fn channel() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    let chunks = futures::stream::unfold(receiver, |mut receiver| async {
        let chunk = receiver.recv().await?;
        Some((Ok(Frame::data(chunk)), receiver))
    });
    (sender, StreamBody::new(chunks).boxed_unsync())
}
