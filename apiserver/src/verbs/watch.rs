//! A watch: what changes in a collection, as a stream of events.
//!
//! No task and no queue of its own: whoever writes to the client asks for the next bytes, which
//! are all that has come in since. What must be made of an event is made once and shared by all
//! watchers ([`frame`]). With a selector, an object that begins to match is ADDED and one that
//! ceases to is DELETED. Once a watch is granted, what goes wrong is an event of it, not an answer.

use super::asked::Asked;
use super::list::too_new;
use crate::Api;
use crate::custom::convert::Converter;
use crate::fairness::Seat;
use crate::fairness::watchers::Watching;
use crate::metrics::LongRunning;
use crate::options::{self, ListOptions, Selection};
use crate::registry;
use crate::tunnel::{Body, BoxError};
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_store::{Event, Revision, Snapshot, Watch, WatchClosed, WatchError};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

mod frame; // From a change to the bytes of an event.
mod shared; // What all watchers of an event use.
mod websocket; // A watch as messages of a WebSocket.

use super::list::page::Walk;
use frame::{Framer, Frames};

/// Events written at a time: what a watcher that keeps up never reaches.
const EVENTS_MAX: usize = 256;
/// As upstream: an idle watch that asked for bookmarks gets one about this often, and one this
/// long before its end, so that its client goes on from there.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Upstream ends a watch after half an hour to an hour, so that clients spread over servers.
pub const LIFE_SECONDS: std::ops::Range<u64> = 1800..3600;
/// What one round over the watchers of a kind costs for each. Nobody is woken again before the
/// round is over: under load more events share one write, and a lone watcher waits for nothing.
const ROUND_PER_WATCHER: Duration = Duration::from_micros(10);
const ROUND_MAX: Duration = Duration::from_millis(10);
/// Shorter than the timer can tell.
const ROUND_MIN: Duration = Duration::from_millis(1);

pub fn watch(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let options = ListOptions::parse(asked.resource, &asked.query, &asked.info.name)?;
    let revision = options::revision(&options.resource_version)
        .map_err(options::unreadable_revision)?
        .unwrap_or_default();
    let upgrade = websocket::Upgrade::asked(asked.request)?;
    let framer = Framer::new(asked, Arc::clone(&api.clock), upgrade.is_none());
    let content_type = framer.content_type();
    let stream = Stream::new(api, asked, &options, revision, framer);
    if let Some(upgrade) = upgrade {
        return Ok(upgrade.serve(stream, content_type));
    }
    let frames = futures::stream::unfold(stream, |mut stream| async {
        let frames = stream.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(frames.joined())), stream))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

struct Stream {
    phase: Phase,
    framer: Framer,
    resource: &'static Resource,
    converter: Converter,
    /// A webhook knows how the objects look in this version.
    is_converted: bool,
    selection: Selection,
    namespace_prefix: String,
    /// The end of its time.
    until: Pin<Box<Sleep>>,
    /// When the next bookmark is due; absent when none was asked for.
    bookmark: Option<Pin<Box<Sleep>>>,
    ends_at: Instant,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The end of the kind, or of what was known of it.
    life: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Set after events were written: the next look waits for the round to be over.
    pause: Option<Duration>,
    /// Given back once all that was there has been sent.
    seat: Option<Seat>,
    _watching: Watching,
    running: LongRunning,
}

enum Phase {
    /// What was there when the watch began, then what changes.
    Initial(Box<Walk>, Box<Live>),
    Live(Box<Live>),
    Failed(Status),
    Ended,
}

/// The changes.
struct Live {
    watch: Watch,
    /// Up to here nothing is shown: the client begins in the future.
    after: Revision,
    /// Says with a bookmark that all that was there at this revision has been sent.
    mark_end: Option<Revision>,
}

impl Phase {
    fn begin(
        api: &Api,
        asked: &Asked<'_>,
        options: &ListOptions,
        revision: Revision,
        namespace_prefix: &str,
    ) -> Result<Self, Status> {
        let partition = registry::partition(asked.resource);
        let store = &api.registry.store;
        let live = |watch, after, mark_end| {
            Box::new(Live {
                watch,
                after,
                mark_end,
            })
        };
        let with_initial = match options.send_initial_events {
            Some(wanted) => wanted,
            None => revision.0 == 0,
        };
        if with_initial {
            let snapshot: Snapshot = store.snapshot(&partition);
            let at = snapshot.revision();
            if revision > at {
                return Err(too_new(revision, at));
            }
            let watch = store.watch(&partition, at).map_err(refused)?;
            let is_marked = options.send_initial_events == Some(true) && options.allow_bookmarks;
            let selection = if Converter::is_needed(asked.resource) {
                options.before_conversion().selection
            } else {
                options.selection.clone()
            };
            let walk = Walk::new(
                asked.resource,
                selection,
                snapshot,
                namespace_prefix.to_owned(),
                "",
            );
            let live = live(watch, at, is_marked.then_some(at));
            return Ok(Self::Initial(Box::new(walk), live));
        }
        let from = if revision.0 == 0 {
            store.snapshot(&partition).revision()
        } else {
            revision
        };
        let watch = match store.watch(&partition, from) {
            Err(WatchError::Future { current, .. }) => store.watch(&partition, current),
            other => other,
        };
        Ok(Self::Live(live(watch.map_err(refused)?, from, None)))
    }
}

fn refused(error: WatchError) -> Status {
    match error {
        WatchError::Compacted { asked, oldest } => {
            Status::expired(format!("too old resource version: {asked} ({oldest})"))
        }
        WatchError::Future { asked, current } => too_new(asked, current),
    }
}

/// Why there is nothing more. A watch that cannot go on says so, so that the client lists again.
fn closed(why: &WatchClosed) -> Option<Status> {
    match why {
        WatchClosed::StoreClosed => None,
        WatchClosed::TooSlow | WatchClosed::Compacted => {
            Some(Status::expired(format!("too old resource version: {why}")))
        }
        WatchClosed::Backend(why) => Some(Status::internal(why)),
    }
}

impl Stream {
    fn new(
        api: &Api,
        asked: &Asked<'_>,
        options: &ListOptions,
        revision: Revision,
        framer: Framer,
    ) -> Self {
        let seconds = options
            .timeout_seconds
            .filter(|seconds| *seconds > 0)
            .unwrap_or_else(|| rand::random_range(LIFE_SECONDS));
        let namespace_prefix = registry::prefix(asked.namespace());
        let phase = Phase::begin(api, asked, options, revision, &namespace_prefix);
        let life = api.registry.customs.life(asked.resource);
        let now = Instant::now();
        let ends_at = now
            .checked_add(Duration::from_secs(seconds))
            .unwrap_or(now + Duration::from_secs(LIFE_SECONDS.end));
        let bookmark = options.allow_bookmarks.then(|| {
            let due = next_bookmark(now, ends_at);
            Box::pin(tokio::time::sleep_until(due))
        });
        Self {
            phase: phase.unwrap_or_else(Phase::Failed),
            framer,
            resource: asked.resource,
            converter: api.converter.clone(),
            is_converted: Converter::is_needed(asked.resource),
            selection: options.selection.clone(),
            namespace_prefix,
            until: Box::pin(tokio::time::sleep_until(ends_at)),
            bookmark,
            ends_at,
            shutdown: Box::pin(api.shutdown.clone().cancelled_owned()),
            life: Box::pin(life.unwrap_or_default().cancelled_owned()),
            pause: None,
            seat: asked.seat.lock().take(),
            _watching: api.fairness.watching(asked.info, &asked.query),
            running: api.metrics.long_running(asked.info, asked.resource),
        }
    }

    /// The next events; `None` at the end. The future is to be polled until it is done: what a
    /// webhook is asked for was taken out already, so one that is dropped meanwhile ends the watch.
    async fn next(&mut self) -> Option<Frames> {
        loop {
            let mut frames = Frames::default();
            match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Ended => return None,
                Phase::Failed(status) => self.framer.error(&status, &mut frames),
                Phase::Initial(walk, live) => self.initial(walk, live, &mut frames).await,
                Phase::Live(live) => {
                    self.phase = Phase::Live(live);
                    self.wait().await?;
                    self.live(&mut frames).await;
                }
            }
            if !frames.is_empty() {
                let (events, bytes) = frames.sizes();
                self.running.sent(events, bytes);
                return Some(frames);
            }
        }
    }

    async fn initial(&mut self, mut walk: Box<Walk>, mut live: Box<Live>, frames: &mut Frames) {
        let Some(step) = walk.step() else {
            if let Some(at) = live.mark_end.take() {
                self.framer.bookmark(at, true, frames);
            }
            self.seat = None;
            self.phase = Phase::Live(live);
            return;
        };
        let step = if self.is_converted {
            let converted = self.converter.in_version(self.resource, step);
            let ends = (&mut self.until, &mut self.shutdown);
            let Some(converted) = unless_over(ends, converted).await else {
                return;
            };
            converted.map(|mut step| {
                step.retain(|value| self.selection.matches_stored(self.resource, value));
                step
            })
        } else {
            Ok(step)
        };
        match step {
            Ok(step) => {
                step.iter()
                    .for_each(|value| self.framer.added(value, frames));
                self.phase = Phase::Initial(walk, live);
            }
            Err(status) => self.phase = Phase::Failed(status),
        }
    }

    /// Until there is something to say; `None` at the end.
    async fn wait(&mut self) -> Option<()> {
        self.seat = None;
        let Phase::Live(live) = &mut self.phase else {
            return Some(());
        };
        if let Some(pause) = self.pause.take() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.until.as_mut() => return None,
                () = self.shutdown.as_mut() => return None,
            }
        }
        let bookmark = async {
            match &mut self.bookmark {
                Some(due) => due.as_mut().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shutdown.as_mut() => None,
            () = self.until.as_mut() => None,
            () = live.watch.ready() => Some(()),
            // What went before is told first.
            () = self.life.as_mut() => None,
            () = bookmark => Some(()),
        }
    }

    async fn live(&mut self, frames: &mut Frames) {
        let Phase::Live(live) = &mut self.phase else {
            return;
        };
        match live.watch.take(EVENTS_MAX) {
            Ok(mut events) => {
                if !events.is_empty() {
                    self.pause = pause(live.watch.audience());
                }
                let after = live.after;
                events.retain(|event| event.revision > after);
                if self.is_converted {
                    let is_chosen = !self.selection.is_all();
                    let converter = &self.converter;
                    let converted = converter.events_in_version(self.resource, events, is_chosen);
                    let ends = (&mut self.until, &mut self.shutdown);
                    match unless_over(ends, converted).await {
                        Some(Ok(converted)) => events = converted,
                        Some(Err(status)) => {
                            self.phase = Phase::Failed(status);
                            return;
                        }
                        None => {
                            self.phase = Phase::Ended;
                            return;
                        }
                    }
                }
                events.iter().for_each(|event| self.event(event, frames));
            }
            Err(why) => {
                self.phase = closed(&why).map_or(Phase::Ended, Phase::Failed);
                return;
            }
        }
        self.bookmark_if_due(frames);
    }

    fn event(&mut self, event: &Event, frames: &mut Frames) {
        if event.key.starts_with(&self.namespace_prefix) {
            self.framer.event(event, &self.selection, frames);
        }
    }

    fn bookmark_if_due(&mut self, frames: &mut Frames) {
        let (Some(due), Phase::Live(live)) = (&mut self.bookmark, &mut self.phase) else {
            return;
        };
        if !due.is_elapsed() {
            return;
        }
        let now = Instant::now();
        due.as_mut().reset(next_bookmark(now, self.ends_at));
        let at = live.watch.revision();
        if at >= live.after {
            self.framer.bookmark(at, false, frames);
        }
    }
}

/// `None` when the watch ends before what a webhook is asked for is there: its client goes on from
/// what it was sent.
async fn unless_over<T>(
    (until, shutdown): (
        &mut Pin<Box<Sleep>>,
        &mut Pin<Box<WaitForCancellationFutureOwned>>,
    ),
    asked: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown.as_mut() => None,
        () = until.as_mut() => None,
        told = asked => Some(told),
    }
}

fn next_bookmark(now: Instant, ends_at: Instant) -> Instant {
    let regular = now + BOOKMARK_EVERY;
    match ends_at.checked_sub(BOOKMARK_BEFORE_END) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}

fn pause(audience: usize) -> Option<Duration> {
    let audience = u32::try_from(audience).unwrap_or(u32::MAX);
    let round = ROUND_PER_WATCHER.saturating_mul(audience).min(ROUND_MAX);
    (round >= ROUND_MIN).then_some(round)
}
