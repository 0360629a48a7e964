//! For tests: a loop in trouble. It dies at its calls, before or after they were done, and a
//! successor takes its place. What either watches comes late, and much of it twice, so that
//! news of one kind overtake those of another and older ones come again after newer ones; now and
//! then a watch breaks, or what it asks for is forgotten.

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
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::chance::next;
use super::{Calls, Death, FakeCluster, clock_of_2030, start};
use crate::{Config, Context};

/// How late news are, at most.
const LATE_MAX_MS: u64 = 30;
/// Of so many pieces of news one is not told: the watch breaks.
const BREAK_ONE_IN: u64 = 12;
/// Of so many watches one asks for what is forgotten.
const FORGET_ONE_IN: u64 = 8;
/// Writes, and reads, after which none is refused any more, so that there is an end.
const REFUSED_UNTIL: usize = 12;
const READS_REFUSED_UNTIL: usize = 24;

/// How the lives of a loop end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lives {
    /// The first at its death, if it has one; the second never.
    Two(Option<Death>),
    /// One, two or three writes each, in turn. The last is done; its answer does not come back.
    Short,
    /// Each after fewer calls than this, as the seed says; the last of them is done or not.
    Chance(usize),
    /// There is one. Of three calls about one is refused, and of three writes one done and said to
    /// have failed, until there were enough of them.
    Refused,
    /// There is one, and none of its writes is done, ever.
    Poisoned,
}

/// Loops with their lives. They end when it is dropped.
pub(crate) struct Living {
    _end: DropGuard,
    pub(crate) calls: Calls,
    pub(crate) deaths: Arc<AtomicUsize>,
    /// Creations that were done and said to have failed.
    pub(crate) unanswered: Arc<AtomicUsize>,
}

/// Runs a loop that dies, and its successor that does not, until the guard is dropped.
pub(crate) fn spawn_mortal(
    cluster: &FakeCluster,
    run: fn(Context) -> BoxFuture<'static, ()>,
    death: Option<Death>,
) -> Living {
    spawn_lives(cluster, Config::default(), vec![run], Lives::Two(death), 1)
}

/// Runs loops that live and die together. The seed says what comes late and twice, and what breaks.
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
        calls: Calls::default(),
        deaths: Arc::default(),
        unanswered: Arc::default(),
    };
    let (cluster, config, clock) = (cluster.clone(), Arc::new(config), clock_of_2030());
    let (first, deaths) = (living.calls.clone(), living.deaths.clone());
    let unanswered = living.unanswered.clone();
    tokio::spawn(async move {
        for number in 0.. {
            let chance = Arc::new(AtomicU64::new(seed.wrapping_add(number)));
            let life = Life {
                end: end.child_token(),
                lives,
                lives_before: number,
                lasts: next(&chance),
                chance,
                writes: Arc::default(),
                reads: Arc::default(),
                calls_of_first: first.clone(),
                unanswered_of_all: unanswered.clone(),
            };
            let shutdown = life.end.clone();
            let client = troubled(&cluster, life);
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
    /// So many calls, modulo what is the most.
    lasts: u64,
    chance: Arc<AtomicU64>,
    writes: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
    calls_of_first: Calls,
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
    fn fate(&self, is_write: bool) -> Fate {
        let written = self.writes.load(Ordering::Relaxed);
        let read = self.reads.load(Ordering::Relaxed);
        let counted = if is_write { &self.writes } else { &self.reads };
        counted.fetch_add(1, Ordering::Relaxed);
        let is_first = self.lives_before == 0;
        if is_first {
            self.calls_of_first.add(is_write);
        }
        let last = |arrives| match arrives {
            true => Fate::DoneAndLost,
            false => Fate::Lost,
        };
        match self.lives {
            Lives::Two(Some(death)) if is_first && written + read == death.after => {
                last(death.last_arrives)
            }
            Lives::Short if is_write && written as u64 == self.lives_before % 3 => last(true),
            Lives::Chance(most) if written + read == self.lasts as usize % most => {
                last((self.lasts >> 60).is_multiple_of(2))
            }
            Lives::Poisoned if is_write => Fate::Refused,
            Lives::Refused if is_write && written < REFUSED_UNTIL => match next(&self.chance) % 3 {
                0 => Fate::Refused,
                1 => Fate::DoneAndRefused,
                _ => Fate::Answered,
            },
            Lives::Refused
                if !is_write
                    && read < READS_REFUSED_UNTIL
                    && next(&self.chance).is_multiple_of(3) =>
            {
                Fate::Refused
            }
            _ => Fate::Answered,
        }
    }
}

/// Nothing gets through once the life is over.
fn troubled(cluster: &FakeCluster, life: Life) -> Client {
    let inner = cluster.client();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, life) = (inner.clone(), life.clone());
        async move { Ok::<_, Infallible>(answer(&inner, &life, request).await) }
    });
    Client::new(service, "default")
}

type Answer = Response<UnsyncBoxBody<Bytes, <Body as http_body::Body>::Error>>;

async fn answer(inner: &Client, life: &Life, request: Request<Body>) -> Answer {
    if life.end.is_cancelled() {
        return std::future::pending().await;
    }
    let path = request.uri().path();
    let is_write = *request.method() != Method::GET && !path.contains("/events");
    let is_creation = is_write && *request.method() == Method::POST;
    let query = request.uri().query().unwrap_or("");
    let is_watch = query.contains("watch=true");
    match life.fate(is_write) {
        Fate::Lost => {
            life.end.cancel();
            std::future::pending().await
        }
        Fate::Refused => refused(),
        Fate::DoneAndLost => {
            drop(inner.send(request).await.expect("the fake answers"));
            life.end.cancel();
            std::future::pending().await
        }
        Fate::DoneAndRefused => {
            let answer = inner.send(request).await.expect("the fake answers");
            if is_creation && answer.status().is_success() {
                life.unanswered_of_all.fetch_add(1, Ordering::Relaxed);
            }
            refused()
        }
        Fate::Answered if is_watch && next(&life.chance).is_multiple_of(FORGET_ONE_IN) => {
            forgotten()
        }
        Fate::Answered => {
            let answer = inner.send(request).await.expect("the fake answers");
            answer.map(|body| match is_watch {
                true => late_and_twice(body, life.chance.clone()).boxed_unsync(),
                false => body.boxed_unsync(),
            })
        }
    }
}

fn refused() -> Answer {
    let status = super::failure(500, "InternalError");
    super::reply(500, &status).map(BodyExt::boxed_unsync)
}

/// How a watch is told that it is too late to begin where it wants to.
fn forgotten() -> Answer {
    let status = super::failure(410, "Expired");
    let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
    let body = Full::from(line).map_err(|never| match never {});
    Response::new(body.boxed_unsync())
}

fn late_and_twice(
    body: Body,
    chance: Arc<AtomicU64>,
) -> impl http_body::Body<Data = Bytes, Error = <Body as http_body::Body>::Error> + Send {
    let frames = http_body_util::BodyStream::new(body).then(move |frame| {
        let (late, more) = (next(&chance) % LATE_MAX_MS, next(&chance));
        async move {
            tokio::time::sleep(Duration::from_millis(late)).await;
            (frame, more)
        }
    });
    // What it breaks before is not seen, until the next watch or list.
    let whole = frames.take_while(|(_, more)| {
        let breaks = (more >> 1).is_multiple_of(BREAK_ONE_IN);
        std::future::ready(!breaks)
    });
    StreamBody::new(whole.flat_map(|(frame, more)| {
        let again = match &frame {
            Ok(frame) if more.is_multiple_of(2) => frame.data_ref().cloned(),
            _ => None,
        };
        let again = again.map(|data| Ok(http_body::Frame::data(data)));
        stream::iter([frame].into_iter().chain(again))
    }))
}
