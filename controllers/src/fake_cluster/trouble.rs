//! For tests: a loop in trouble. It dies at its writes, before or after they were done, and a
//! successor takes its place; what either watches comes late, and much of it twice, so that
//! news of one kind overtake those of another and older ones come again after newer ones.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coracle_client::Client;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Death, FakeCluster, clock_of_2030, start};
use crate::{Config, Context};

/// How late news are, at most.
const LATE_MAX_MS: u64 = 30;
/// Writes after which none is refused any more, so that there is an end.
const REFUSED_UNTIL: usize = 12;

/// How the lives of a loop end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lives {
    /// The first at its death, if it has one; the second never.
    Two(Option<Death>),
    /// One, two or three writes each, in turn. The last is done; its answer does not come back.
    Short,
    /// There is one. Of three writes about one is refused, and one done and said to have failed,
    /// until there were enough of them.
    Refused,
}

/// Loops with their lives. They end when it is dropped.
pub(crate) struct Living {
    _end: DropGuard,
    /// Of all lives; events are none.
    pub(crate) writes: Arc<AtomicUsize>,
    pub(crate) deaths: Arc<AtomicUsize>,
    /// Creations that were done and said to have failed.
    pub(crate) unanswered: Arc<AtomicUsize>,
}

/// Runs a loop that dies, and its successor that does not, until the guard is dropped. The death is
/// after so many writes, of which both are counted; events are none.
pub(crate) fn spawn_mortal(
    cluster: &FakeCluster,
    run: fn(Context) -> BoxFuture<'static, ()>,
    death: Option<Death>,
) -> (DropGuard, Arc<AtomicUsize>) {
    let lives = Lives::Two(death);
    let living = spawn_lives(cluster, Config::default(), vec![run], lives, 1);
    (living._end, living.writes)
}

/// Runs loops that live and die together. The seed says what comes late and twice.
pub(crate) fn spawn_lives(
    cluster: &FakeCluster,
    config: Config,
    runs: Vec<fn(Context) -> BoxFuture<'static, ()>>,
    lives: Lives,
    seed: u64,
) -> Living {
    let end = CancellationToken::new();
    let living = Living {
        _end: end.clone().drop_guard(),
        writes: Arc::default(),
        deaths: Arc::default(),
        unanswered: Arc::default(),
    };
    let (cluster, config, clock) = (cluster.clone(), Arc::new(config), clock_of_2030());
    let (writes, deaths) = (living.writes.clone(), living.deaths.clone());
    let unanswered = living.unanswered.clone();
    tokio::spawn(async move {
        for number in 0.. {
            let life = Life {
                end: end.child_token(),
                lives,
                lives_before: number,
                writes: Arc::default(),
                writes_of_all: writes.clone(),
                unanswered_of_all: unanswered.clone(),
            };
            let shutdown = life.end.clone();
            let client = troubled(&cluster, life, seed.wrapping_add(number));
            for run in &runs {
                let (client, clock) = (client.clone(), clock.clone());
                start(client, config.clone(), *run, clock, shutdown.clone());
            }
            shutdown.cancelled().await;
            if end.is_cancelled() {
                return;
            }
            deaths.fetch_add(1, Ordering::Relaxed);
        }
    });
    living
}

#[derive(Clone)]
struct Life {
    end: CancellationToken,
    lives: Lives,
    /// Before this one.
    lives_before: u64,
    writes: Arc<AtomicUsize>,
    writes_of_all: Arc<AtomicUsize>,
    unanswered_of_all: Arc<AtomicUsize>,
}

/// What becomes of a request.
#[derive(Clone, Copy)]
enum Fate {
    Answered,
    Refused,
    DoneAndRefused,
    Lost,
    DoneAndLost,
}

impl Life {
    fn fate(&self, chance: &AtomicU64) -> Fate {
        self.writes_of_all.fetch_add(1, Ordering::Relaxed);
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        match self.lives {
            Lives::Two(Some(death)) if self.lives_before == 0 && number == death.after => {
                match death.last_arrives {
                    true => Fate::DoneAndLost,
                    false => Fate::Lost,
                }
            }
            Lives::Two(_) => Fate::Answered,
            Lives::Short if number as u64 == self.lives_before % 3 => Fate::DoneAndLost,
            Lives::Short => Fate::Answered,
            Lives::Refused if number >= REFUSED_UNTIL => Fate::Answered,
            Lives::Refused => match next(chance) % 3 {
                0 => Fate::Refused,
                1 => Fate::DoneAndRefused,
                _ => Fate::Answered,
            },
        }
    }
}

/// Nothing gets through once the life is over.
fn troubled(cluster: &FakeCluster, life: Life, seed: u64) -> Client {
    let (inner, chance) = (cluster.client(), Arc::new(AtomicU64::new(seed)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, life, chance) = (inner.clone(), life.clone(), chance.clone());
        let path = request.uri().path();
        let is_write = *request.method() != Method::GET && !path.contains("/events");
        let is_creation = *request.method() == Method::POST;
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        async move {
            let fate = match is_write && !life.end.is_cancelled() {
                true => life.fate(&chance),
                false => Fate::Answered,
            };
            if matches!(fate, Fate::Lost) {
                life.end.cancel();
            }
            if life.end.is_cancelled() {
                return std::future::pending().await;
            }
            if matches!(fate, Fate::Refused) {
                return Ok(refused());
            }
            let answer = inner.send(request).await.expect("the fake answers");
            if matches!(fate, Fate::DoneAndLost) {
                life.end.cancel();
                return std::future::pending().await;
            }
            if matches!(fate, Fate::DoneAndRefused) {
                if is_creation && answer.status().is_success() {
                    life.unanswered_of_all.fetch_add(1, Ordering::Relaxed);
                }
                return Ok(refused());
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

fn refused() -> Response<UnsyncBoxBody<Bytes, <Body as http_body::Body>::Error>> {
    let status = super::failure(500, "InternalError");
    super::reply(500, &status).map(BodyExt::boxed_unsync)
}

fn late_and_twice(
    body: Body,
    chance: Arc<AtomicU64>,
) -> impl http_body::Body<Data = Bytes, Error = <Body as http_body::Body>::Error> + Send {
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
