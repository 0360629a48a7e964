//! A watch: what changes in a collection, as a stream of events.
//!
//! An event's bytes are the stored bytes with a frame around them. With a selector, an object that
//! begins to match is ADDED and one that ceases to is DELETED.

use super::asked::Asked;
use super::list::too_new;
use crate::Api;
use crate::metrics::LongRunning;
use crate::options::{ListOptions, Match, forbidden_match};
use crate::registry;
use crate::tunnel::{Body, BoxError};
use bytes::Bytes;
use coracle_api::status::Status;
use coracle_store::{Event, Snapshot, Watch, WatchClosed, WatchError};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod frame; // From a change to the bytes of an event.

use frame::Framer;

/// Events on their way to a client that does not read them yet; then the store's bound counts.
const QUEUE_MAX: usize = 64;
/// As upstream: an idle watch that asked for bookmarks gets one about this often.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Upstream ends a watch after half an hour to an hour, so that clients spread over servers.
const LIFE_SECONDS: std::ops::Range<u64> = 1800..3600;

pub fn watch(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let options = ListOptions::parse(asked.resource, &asked.query, &asked.info.name)?;
    let begin = begin(api, asked, &options)?;
    let seconds = options
        .timeout_seconds
        .filter(|seconds| *seconds > 0)
        .unwrap_or_else(|| rand::random_range(LIFE_SECONDS));
    let (sender, receiver) = mpsc::channel::<Bytes>(QUEUE_MAX);
    let framer = Framer::new(asked, &options, Arc::clone(&api.clock));
    let content_type = framer.content_type();
    let stream = Stream {
        framer,
        sender,
        until: Instant::now() + Duration::from_secs(seconds),
        bookmarks: options.allow_bookmarks,
        namespace_prefix: registry::prefix(asked.namespace()),
        shutdown: api.shutdown.clone(),
        _running: api.metrics.long_running(asked.info),
    };
    tokio::spawn(stream.run(begin));
    let frames = futures::stream::unfold(receiver, |mut receiver| async {
        let bytes = receiver.recv().await?;
        Some((Ok::<_, BoxError>(Frame::data(bytes)), receiver))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// Where a watch begins: with what is there, or after a revision.
struct Begin {
    initial: Option<Snapshot>,
    /// Says with a bookmark that all that was there has been sent.
    mark_end: bool,
    watch: Watch,
}

fn begin(api: &Api, asked: &Asked<'_>, options: &ListOptions) -> Result<Begin, Status> {
    let partition = registry::partition(asked.resource);
    let store = &api.registry.store;
    let from = |revision| store.watch(&partition, revision).map_err(refused);
    if let Some(wanted) = options.send_initial_events {
        check_initial(options)?;
        if wanted {
            let snapshot = store.snapshot(&partition);
            let least = options.resource_version.unwrap_or_default();
            if least > snapshot.revision() {
                return Err(too_new(least, snapshot.revision()));
            }
            let watch = from(snapshot.revision())?;
            return Ok(Begin {
                initial: Some(snapshot),
                mark_end: true,
                watch,
            });
        }
        let newest = store.snapshot(&partition).revision();
        let after = options
            .resource_version
            .filter(|revision| revision.0 > 0)
            .unwrap_or(newest);
        return Ok(Begin {
            initial: None,
            mark_end: false,
            watch: from(after)?,
        });
    }
    if !options.resource_version_match.is_empty() {
        return Err(forbidden_match(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    match options.resource_version {
        Some(revision) if revision.0 > 0 => Ok(Begin {
            initial: None,
            mark_end: false,
            watch: from(revision)?,
        }),
        _ => {
            let snapshot = store.snapshot(&partition);
            let watch = from(snapshot.revision())?;
            Ok(Begin {
                initial: Some(snapshot),
                mark_end: false,
                watch,
            })
        }
    }
}

fn check_initial(options: &ListOptions) -> Result<(), Status> {
    if options.resource_version_match != "NotOlderThan" {
        return Err(forbidden_match(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    match options.list_match() {
        Ok(Match::Exact(_)) | Err(_) if options.resource_version.is_some() => {
            options.list_match().map(drop)
        }
        _ => Ok(()),
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

struct Stream {
    framer: Framer,
    sender: mpsc::Sender<Bytes>,
    until: Instant,
    bookmarks: bool,
    namespace_prefix: String,
    shutdown: CancellationToken,
    _running: LongRunning,
}

/// The client went away, or its time is over: the stream just ends.
struct Ended;

impl Stream {
    async fn run(mut self, begin: Begin) {
        drop(self.serve(begin).await);
    }

    async fn serve(&mut self, begin: Begin) -> Result<(), Ended> {
        let Begin {
            initial,
            mark_end,
            mut watch,
        } = begin;
        if let Some(snapshot) = initial {
            self.initial(&snapshot).await?;
            if mark_end {
                let bytes = self.framer.bookmark(snapshot.revision(), true);
                self.send(bytes).await?;
            }
        }
        let mut next_bookmark = Instant::now() + BOOKMARK_EVERY;
        let (until, closed) = (self.until, self.sender.clone());
        loop {
            tokio::select! {
                event = watch.next() => match event {
                    Ok(event) => self.event(&event).await?,
                    Err(closed) => return self.close(&closed).await,
                },
                () = tokio::time::sleep_until(until) => return Ok(()),
                () = self.shutdown.cancelled() => return Ok(()),
                () = closed.closed() => return Err(Ended),
                () = tokio::time::sleep_until(next_bookmark), if self.bookmarks => {
                    next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    let bytes = self.framer.bookmark(watch.revision(), false);
                    self.send(bytes).await?;
                }
            }
        }
    }

    async fn initial(&mut self, snapshot: &Snapshot) -> Result<(), Ended> {
        let prefix = self.namespace_prefix.clone();
        for (_, entry) in snapshot.range_from("", &prefix) {
            if let Some(bytes) = self.framer.added(&entry.value) {
                self.send(bytes).await?;
            }
        }
        Ok(())
    }

    async fn event(&mut self, event: &Event) -> Result<(), Ended> {
        if !event.key.starts_with(&self.namespace_prefix) {
            return Ok(());
        }
        match self.framer.event(event) {
            Some(bytes) => self.send(bytes).await,
            None => Ok(()),
        }
    }

    /// A watch that cannot go on says why, so that the client lists again.
    async fn close(&mut self, why: &WatchClosed) -> Result<(), Ended> {
        let status = match why {
            WatchClosed::StoreClosed => return Ok(()),
            WatchClosed::TooSlow | WatchClosed::Compacted => {
                Status::expired(format!("too old resource version: {why}"))
            }
            WatchClosed::Backend(why) => Status::internal(why),
        };
        let bytes = self.framer.error(&status);
        self.send(bytes).await
    }

    async fn send(&self, bytes: Bytes) -> Result<(), Ended> {
        tokio::select! {
            sent = self.sender.send(bytes) => sent.map_err(|_| Ended),
            () = tokio::time::sleep_until(self.until) => Err(Ended),
            () = self.shutdown.cancelled() => Err(Ended),
        }
    }
}
