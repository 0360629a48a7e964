//! How long a request may take: as long as its `timeout` says, and a minute at most.
//!
//! What is no stream is cut off then: with a 504 while nothing of the answer has gone out, and by
//! the end of the connection after that. A write that has begun is not undone.

use crate::fairness;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond;
use crate::tunnel::{Body, BoxError};
use bytes::Bytes;
use coracle_api::go_duration;
use coracle_api::status::Status;
use http::Response;
use http::request::Parts;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Upstream's default.
pub const REQUEST_MAX: Duration = Duration::from_secs(60);

/// Its time was over before its answer had gone out.
#[derive(Debug, thiserror::Error)]
#[error("the request did not complete within its time")]
pub struct Over;

/// When the answer must be there. Streams last as long as they like.
pub fn of(info: &RequestInfo, query: &Query, begun: Instant) -> Result<Option<Instant>, Status> {
    if info.verb == "watch" || fairness::is_stream(info) {
        return Ok(None);
    }
    let asked = match query.text("timeout") {
        "" => 0,
        text => go_duration::parse(text).map_err(|why| {
            let what = "invalid timeout specified in the request URL";
            Status::bad_request(format!("{what} - {why}"))
        })?,
    };
    let asked = u64::try_from(asked).unwrap_or_default();
    let allowed = match Duration::from_nanos(asked) {
        Duration::ZERO => REQUEST_MAX,
        asked => asked.min(REQUEST_MAX),
    };
    Ok(Some(begun + allowed))
}

/// An extension of a request: until when there is time for it.
#[derive(Clone, Copy, Debug)]
pub struct Noted(Instant);

/// Notes the time on the request, for those who ask others on its way.
pub fn note(request: &mut Parts, deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        request.extensions.insert(Noted(deadline));
    }
}

pub fn noted(request: &Parts) -> Option<Instant> {
    request.extensions.get().map(|Noted(deadline)| *deadline)
}

/// The answer, or the failure to make it in time.
pub async fn meet(
    deadline: Option<Instant>,
    answer: impl Future<Output = Result<Response<Body>, Status>>,
) -> Result<Response<Body>, Status> {
    let Some(deadline) = deadline else {
        return answer.await;
    };
    match tokio::time::timeout_at(deadline, answer).await {
        Ok(Ok(response)) => Ok(bounded(response, deadline)),
        Ok(Err(status)) => Err(status),
        Err(_) => Ok(respond::timed_out()),
    }
}

/// A body that is made while it is sent ends with the time of its request. One that is complete
/// holds nothing that others need.
fn bounded(response: Response<Body>, deadline: Instant) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let bounded = Bounded {
            body,
            until: Box::pin(tokio::time::sleep_until(deadline)),
        };
        bounded.boxed_unsync()
    })
}

struct Bounded {
    body: Body,
    until: Pin<Box<Sleep>>,
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.until.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Over.into())));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
