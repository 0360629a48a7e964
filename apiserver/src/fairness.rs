//! Priority and fairness: no client takes the server away from the others (docs/fairness.md).
//!
//! The thin part with the clock and the waiting; what is decided, the modules below decide, and
//! they are pure. A seat is given back when its `Seat` is dropped, however a request ends.

pub mod borrow; // Divides seats among levels.
pub mod deal; // Which queues a flow may use.
pub mod demand; // How many seats a level could have used.
pub mod dump; // Who waits and who runs, for the operator.
pub mod flow_schema; // Which requests belong to which level.
pub mod follow; // Keeps the state in step with the store.
pub mod level; // What a level is told to do.
pub mod queue_set; // Queues and seats of one level.
pub mod report; // The metrics.
pub mod retry_after; // How long those who are refused stay away.
pub mod state; // Schemas and levels together.
pub mod stats; // What is counted of a schema.
pub mod watchers; // Who would hear of a write.
pub mod width; // How many seats a request takes.

use crate::authenticate::User;
use crate::policy_feed;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond;
use crate::snapshots;
use crate::tunnel::Body;
use crate::view;
use coracle_store::Store;
use flow_schema::{Distinguisher, FlowSchema};
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use level::LevelSpec;
use parking_lot::RwLock;
use queue_set::{Arrival, Ticket, Width};
use state::{Payload, Route, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use watchers::{Watchers, Watching};

const SCHEMA_HEADER: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_HEADER: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Upstream: a quarter of the time that a request has, which is a minute.
const WAIT_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Fairness {
    state: RwLock<Arc<State>>,
    /// Seats of the whole server.
    total: u32,
    begun: Instant,
    store: Store,
    watchers: Arc<Watchers>,
    waiting_reads: AtomicI64,
    waiting_writes: AtomicI64,
}

/// Seats that a request holds until this is dropped.
#[derive(Debug)]
pub struct Seat {
    fairness: Arc<Fairness>,
    route: Arc<Route>,
    ticket: Ticket,
    seats: u32,
    started: Duration,
    is_watch: bool,
}

/// The schema and the level of a request.
#[derive(Debug)]
pub struct Placed(Arc<Route>);

/// There was no seat.
#[derive(Debug)]
pub struct Refused {
    route: Arc<Route>,
    retry_after: u64,
}

impl Fairness {
    pub fn new(total: u32, store: Store) -> Self {
        Self {
            state: RwLock::new(Arc::new(State::initial(total, Duration::ZERO))),
            total,
            begun: Instant::now(),
            store,
            watchers: Arc::default(),
            waiting_reads: AtomicI64::new(0),
            waiting_writes: AtomicI64::new(0),
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// Takes over all levels and schemas there are.
    pub fn configure(&self, levels: Vec<LevelSpec>, schemas: Vec<FlowSchema>) {
        let next = self.state().next(levels, schemas, self.total, self.now());
        for level in next.levels.values() {
            level.inside.lock().wake();
        }
        *self.state.write() = Arc::new(next);
    }

    /// Moves seats to where they are needed; true when a level may be forgotten.
    pub fn rebalance(&self) -> bool {
        let state = self.state();
        state.lend(self.now());
        state.levels.values().any(|level| {
            let inside = level.inside.lock();
            inside.is_quiescing && inside.set.is_idle()
        })
    }

    /// Counts a watch among those that hear of writes, until what is given back is dropped.
    pub fn watching(&self, info: &RequestInfo, query: &Query) -> Watching {
        self.watchers.register(info, query)
    }

    /// Gives a request its seats, now or after a while. Dropped before, it leaves its queue.
    pub async fn admit(
        self: &Arc<Self>,
        user: &Arc<User>,
        info: &Arc<RequestInfo>,
        query: &Query,
    ) -> Result<Seat, Refused> {
        let route = Arc::clone(self.state.read().classify(user, info));
        let width = self.width(&route, info, query);
        route.stats.widths.add(u64::from(width.max()));
        let flow = route.schema.flow(user, info);
        let hash = deal::hash(&route.schema.name, flow);
        let (payload, turn) = payload(&route, user, info);
        let arrived = self.now();
        let arrival = {
            let mut inside = route.level.inside.lock();
            let arrival = inside.set.arrive(arrived, width, hash, payload);
            inside.wake();
            arrival
        };
        match arrival {
            Arrival::Running(ticket) => Ok(self.seat(route, ticket, info, arrived, width)),
            Arrival::Waiting(ticket, length) => {
                route.stats.queue_lengths.add(length as u64);
                let place = Place::new(self, &route, ticket, arrived, width, info);
                self.wait(place, turn, info).await
            }
            Arrival::QueueFull => {
                route.stats.queue_full.fetch_add(1, Ordering::Relaxed);
                Err(self.refuse(&route))
            }
            Arrival::NoSeat => {
                route.stats.no_seat.fetch_add(1, Ordering::Relaxed);
                Err(self.refuse(&route))
            }
        }
    }

    async fn wait(
        self: &Arc<Self>,
        mut place: Place,
        turn: oneshot::Receiver<()>,
        info: &RequestInfo,
    ) -> Result<Seat, Refused> {
        let in_time = tokio::time::timeout(WAIT_MAX, turn).await.is_ok();
        let route = Arc::clone(&place.route);
        if in_time || !place.leave(true) {
            place.is_settled = true;
            let waited = self.now().saturating_sub(place.arrived);
            route.stats.waited_and_ran.add(waited);
            return Ok(self.seat(route, place.ticket, info, self.now(), place.width));
        }
        Err(self.refuse(&route))
    }

    fn width(&self, route: &Route, info: &RequestInfo, query: &Query) -> Width {
        let objects = || {
            let partition = view::partition(&info.group, &info.resource);
            self.store.snapshot(&partition).len()
        };
        let watchers = || self.watchers.interested(info);
        width::estimate(info, query, route.width_max, objects, watchers)
    }

    fn seat(
        self: &Arc<Self>,
        route: Arc<Route>,
        ticket: Ticket,
        info: &RequestInfo,
        started: Duration,
        width: Width,
    ) -> Seat {
        let stats = &route.stats;
        stats.dispatched.fetch_add(1, Ordering::Relaxed);
        stats.running.fetch_add(1, Ordering::Relaxed);
        let seats = width.max();
        stats
            .running_seats
            .fetch_add(i64::from(seats), Ordering::Relaxed);
        Seat {
            fairness: Arc::clone(self),
            route,
            ticket,
            seats,
            started,
            is_watch: info.verb == "watch",
        }
    }

    fn refuse(&self, route: &Arc<Route>) -> Refused {
        let second = self.now().as_secs();
        Refused {
            route: Arc::clone(route),
            retry_after: route.level.refusals.lock().note(second),
        }
    }

    fn waiting(&self, is_write: bool) -> &AtomicI64 {
        if is_write {
            &self.waiting_writes
        } else {
            &self.waiting_reads
        }
    }
}

fn payload(
    route: &Route,
    user: &Arc<User>,
    info: &Arc<RequestInfo>,
) -> (Payload, oneshot::Receiver<()>) {
    let (waker, turn) = oneshot::channel();
    let payload = Payload {
        waker: Some(waker),
        schema: Arc::clone(&route.schema.name),
        user: Arc::clone(user),
        info: Arc::clone(info),
        flow_is_user: match route.schema.distinguisher {
            Distinguisher::None => None,
            Distinguisher::ByUser => Some(true),
            Distinguisher::ByNamespace => Some(false),
        },
    };
    (payload, turn)
}

/// A place in a queue. Dropped, it is left; when it was already its turn, the seat is given back.
struct Place {
    fairness: Arc<Fairness>,
    route: Arc<Route>,
    ticket: Ticket,
    arrived: Duration,
    width: Width,
    is_write: bool,
    is_settled: bool,
}

impl Place {
    fn new(
        fairness: &Arc<Fairness>,
        route: &Arc<Route>,
        ticket: Ticket,
        arrived: Duration,
        width: Width,
        info: &RequestInfo,
    ) -> Self {
        let is_write = !matches!(info.verb.as_str(), "get" | "list" | "watch" | "head");
        fairness.waiting(is_write).fetch_add(1, Ordering::Relaxed);
        let stats = &route.stats;
        stats.waiting.fetch_add(1, Ordering::Relaxed);
        let seats = i64::from(width.max());
        stats.waiting_seats.fetch_add(seats, Ordering::Relaxed);
        Self {
            fairness: Arc::clone(fairness),
            route: Arc::clone(route),
            ticket,
            arrived,
            width,
            is_write,
            is_settled: false,
        }
    }

    /// False when it is the request's turn after all.
    fn leave(&mut self, timed_out: bool) -> bool {
        let now = self.fairness.now();
        let mut inside = self.route.level.inside.lock();
        let left = inside.set.abandon(now, self.ticket, timed_out);
        inside.wake();
        drop(inside);
        if left {
            self.is_settled = true;
            let stats = &self.route.stats;
            stats.waited_in_vain.add(now.saturating_sub(self.arrived));
            let counter = if timed_out {
                &stats.timed_out
            } else {
                &stats.cancelled
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        left
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let waiting = self.fairness.waiting(self.is_write);
        waiting.fetch_sub(1, Ordering::Relaxed);
        let stats = &self.route.stats;
        stats.waiting.fetch_sub(1, Ordering::Relaxed);
        let seats = i64::from(self.width.max());
        stats.waiting_seats.fetch_sub(seats, Ordering::Relaxed);
        if !self.is_settled && !self.leave(false) {
            give_back(&self.fairness, &self.route, self.ticket);
        }
    }
}

impl Seat {
    /// By which schema and level the request was placed.
    pub fn placed(&self) -> Placed {
        Placed(Arc::clone(&self.route))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let ran = self.fairness.now().saturating_sub(self.started);
        let stats = &self.route.stats;
        let seats = i64::from(self.seats);
        stats.running.fetch_sub(1, Ordering::Relaxed);
        stats.running_seats.fetch_sub(seats, Ordering::Relaxed);
        if self.is_watch {
            stats.watches_began.add(ran);
        } else {
            stats.ran.add(ran);
        }
        give_back(&self.fairness, &self.route, self.ticket);
    }
}

/// Ends a request; what lingers is released later.
fn give_back(fairness: &Arc<Fairness>, route: &Arc<Route>, ticket: Ticket) {
    let lingering = {
        let mut inside = route.level.inside.lock();
        let lingering = inside.set.finish(fairness.now(), ticket);
        inside.wake();
        lingering
    };
    let Some(lingering) = lingering else { return };
    let (fairness, route) = (Arc::clone(fairness), Arc::clone(route));
    let release = move || {
        let mut inside = route.level.inside.lock();
        inside.set.release(fairness.now(), ticket);
        inside.wake();
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(async move {
            tokio::time::sleep(lingering).await;
            release();
        })),
        // Dropped while the program ends.
        Err(_) => release(),
    }
}

fn mark(route: &Route, headers: &mut HeaderMap) {
    headers.insert(SCHEMA_HEADER, route.schema.uid.clone());
    headers.insert(LEVEL_HEADER, route.level_uid.clone());
}

impl Placed {
    /// Says so to the client, as upstream: by what only an operator can look up.
    pub fn mark(&self, headers: &mut HeaderMap) {
        mark(&self.0, headers);
    }
}

impl Refused {
    /// Upstream's answer, which is no Status.
    pub fn response(&self) -> Response<Body> {
        let text = "Too many requests, please try again later.\n";
        let mut response = Response::new(respond::full(text));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(CONTENT_TYPE, plain);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        mark(&self.route, headers);
        response
    }
}

/// Requests that stay open by their nature and hold no seat. Watches do, until they have begun.
pub fn is_stream(info: &RequestInfo) -> bool {
    let is_proxy = info.verb == "proxy";
    let streams = ["attach", "exec", "proxy", "log", "portforward"];
    is_proxy
        || policy_feed::is_path(info)
        || snapshots::is_path(info)
        || info.is_resource_request && streams.contains(&info.subresource.as_str())
}

#[cfg(test)]
mod tests;
