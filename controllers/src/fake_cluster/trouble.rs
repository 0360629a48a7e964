//! For tests: a loop in trouble. It dies at one of its writes, before or after that was done, and
//! a successor takes its place; what either watches comes late, and much of it twice, so that
//! news of one kind overtake those of another and older ones come again after newer ones.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use coracle_client::Client;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request};
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Death, FakeCluster, start};
use crate::Context;

/// How late news are, at most.
const LATE_MAX_MS: u64 = 30;

/// Runs a loop that dies, and its successor that does not, until the guard is dropped. The death is
/// after so many writes, of which both are counted; events are none.
pub(crate) fn spawn_mortal(
    cluster: &FakeCluster,
    run: fn(Context) -> BoxFuture<'static, ()>,
    death: Option<Death>,
) -> (DropGuard, Arc<AtomicUsize>) {
    let (end, writes) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let life = end.child_token();
    let mortal = troubled(cluster, death, life.clone(), writes.clone());
    start(mortal, crate::Config::default(), run, life.clone());
    let (cluster, rest, counted) = (cluster.clone(), end.clone(), writes.clone());
    tokio::spawn(async move {
        life.cancelled().await;
        if !rest.is_cancelled() {
            let successor = troubled(&cluster, None, rest.child_token(), counted);
            start(successor, crate::Config::default(), run, rest);
        }
    });
    (end.drop_guard(), writes)
}

/// Nothing gets through once the life is over.
fn troubled(
    cluster: &FakeCluster,
    death: Option<Death>,
    life: CancellationToken,
    writes: Arc<AtomicUsize>,
) -> Client {
    let (inner, chance) = (cluster.client(), Arc::new(AtomicU64::new(1)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, life, chance) = (inner.clone(), life.clone(), chance.clone());
        let path = request.uri().path();
        let is_write = *request.method() != Method::GET && !path.contains("/events");
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let number = is_write.then(|| writes.fetch_add(1, Ordering::Relaxed));
        let dies = match (death, number) {
            (Some(death), Some(number)) if number == death.after => Some(death.last_arrives),
            _ => None,
        };
        async move {
            if dies == Some(false) {
                life.cancel();
            }
            if life.is_cancelled() {
                return std::future::pending().await;
            }
            let answer = inner.send(request).await.expect("the fake answers");
            if dies == Some(true) {
                life.cancel();
                return std::future::pending().await;
            }
            let answer = answer.map(|body| match is_watch {
                true => late_and_twice(body, chance).boxed_unsync(),
                false => body.boxed_unsync(),
            });
            Ok::<_, Infallible>(answer)
        }
    });
    Client::new(service, "default")
}

fn late_and_twice(
    body: Body,
    chance: Arc<AtomicU64>,
) -> impl http_body::Body<Data = bytes::Bytes, Error = <Body as http_body::Body>::Error> + Send {
    let frames = http_body_util::BodyStream::new(body).then(move |frame| {
        let chance = next(&chance);
        async move {
            tokio::time::sleep(Duration::from_millis(chance % LATE_MAX_MS)).await;
            (frame, chance.is_multiple_of(2))
        }
    });
    StreamBody::new(frames.flat_map(|(frame, twice)| {
        let again = match &frame {
            Ok(frame) if twice => frame.data_ref().cloned(),
            _ => None,
        };
        let again = again.map(|data| Ok(http_body::Frame::data(data)));
        stream::iter([frame].into_iter().chain(again))
    }))
}

/// The same numbers each time: splitmix64.
fn next(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
