//! The queues and seats of one priority level: fair queuing by virtual time.
//!
//! Pure: the time is an argument, and whoever calls runs what is let through. A request arrives, is
//! let through at once, waits, or is refused; it ends by `finish`, or by `abandon` when nobody
//! waits for it any more. After each call `next_dispatched` names those whose turn it is now.
//!
//! Virtual time `R` rises by the seats that each active queue gets, in seat-nanoseconds, a whole
//! number that never runs over. A queue's `next_dispatch` is the `R` at which its next request would
//! begin if every queue were served at once; the queue whose first request would end earliest is
//! served next. What a request will take is guessed when it begins and mended when it ends.
//!
//! Invariants: seats in use exceed the limit only by one request that is wider than it, or when
//! the limit was lowered; a queue exists only while requests are in it or linger.

use super::deal::deal;
use super::demand::Integrator;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Upstream's guess of how long a request takes.
const SERVICE_GUESS: Duration = Duration::from_millis(3);

/// How many seats a request takes, and how long some of them stay taken after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    pub initial: u32,
    pub lasting: u32,
    pub lingering: Duration,
}

impl Width {
    pub const ONE: Self = Self {
        initial: 1,
        lasting: 0,
        lingering: Duration::ZERO,
    };

    pub fn max(&self) -> u32 {
        self.initial.max(self.lasting)
    }

    fn work(&self) -> i128 {
        seat_time(self.initial, SERVICE_GUESS) + seat_time(self.lasting, self.lingering)
    }
}

fn seat_time(seats: u32, time: Duration) -> i128 {
    i128::from(seats) * time.as_nanos() as i128
}

/// What a level does with requests for which there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// There is always a seat.
    Exempt,
    Reject,
    Queue(Queuing),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queuing {
    pub queues: u32,
    pub hand: usize,
    pub length_max: usize,
}

/// Names a request for as long as it is in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Running(Ticket),
    /// With the length of its queue.
    Waiting(Ticket, usize),
    /// Its queue is full.
    QueueFull,
    /// No seat, and this level does not queue.
    NoSeat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Lingering,
}

#[derive(Debug)]
pub struct Request<T> {
    pub payload: T,
    pub width: Width,
    pub arrived: Duration,
    /// When it began to run.
    pub started: Option<Duration>,
    pub queue: Option<u32>,
    arrival_r: i128,
    phase: Phase,
}

impl<T> Request<T> {
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}

#[derive(Debug, Default)]
pub struct Queue {
    pub waiting: VecDeque<Ticket>,
    pub running: usize,
    pub seats_in_use: u32,
    pub waiting_seats: u32,
    pub waiting_initial_seats: u32,
    waiting_work: i128,
    next_dispatch: i128,
}

impl Queue {
    fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.running > 0
    }

    pub fn next_dispatch_seconds(&self) -> f64 {
        self.next_dispatch as f64 / 1e9
    }

    pub fn waiting_work_seconds(&self) -> f64 {
        self.waiting_work as f64 / 1e9
    }
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub dispatched: u64,
    pub rejected: u64,
    pub timed_out: u64,
    pub cancelled: u64,
}

#[derive(Debug)]
pub struct QueueSet<T> {
    discipline: Discipline,
    limit: u32,
    queues: BTreeMap<u32, Queue>,
    requests: BTreeMap<Ticket, Request<T>>,
    dispatched: VecDeque<Ticket>,
    next_ticket: u64,
    /// The queue served last.
    robin: u32,
    enqueued: u64,
    active_queues: u32,
    waiting: usize,
    running: usize,
    seats_in_use: u32,
    seats_waiting: u32,
    r: i128,
    last: Duration,
    demand: Integrator,
    totals: Totals,
}

impl<T> QueueSet<T> {
    pub fn new(discipline: Discipline, limit: u32, now: Duration) -> Self {
        Self {
            discipline,
            limit,
            queues: BTreeMap::new(),
            requests: BTreeMap::new(),
            dispatched: VecDeque::new(),
            next_ticket: 0,
            robin: 0,
            enqueued: 0,
            active_queues: 0,
            waiting: 0,
            running: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            r: 0,
            last: now,
            demand: Integrator::new(now),
            totals: Totals::default(),
        }
    }

    /// `hash` is the flow's; it deals the hand.
    pub fn arrive(&mut self, now: Duration, width: Width, hash: u64, payload: T) -> Arrival {
        self.advance(now);
        let Discipline::Queue(queuing) = self.discipline else {
            return self.arrive_without_queue(now, width, payload);
        };
        let card = self.choose(queuing, hash);
        let length = self
            .queues
            .get(&card)
            .map_or(0, |queue| queue.waiting.len());
        if self.seats_in_use >= self.limit && length >= queuing.length_max {
            self.totals.rejected += 1;
            return Arrival::QueueFull;
        }
        let ticket = self.add(now, width, payload, Some(card), Phase::Waiting);
        let queue = self.queues.entry(card).or_default();
        if !queue.is_active() {
            queue.next_dispatch = self.r;
            self.active_queues += 1;
        }
        queue.waiting.push_back(ticket);
        queue.waiting_work += width.work();
        queue.waiting_seats += width.max();
        queue.waiting_initial_seats += width.initial;
        self.waiting += 1;
        self.seats_waiting += width.max();
        self.bound_next_dispatch(card);
        self.note_demand(now);
        self.dispatch(now);
        // When it is its turn already, nobody needs to be told.
        if self.requests.get(&ticket).is_some_and(Request::is_running) {
            self.dispatched.retain(|own| *own != ticket);
            return Arrival::Running(ticket);
        }
        Arrival::Waiting(ticket, length + 1)
    }

    fn arrive_without_queue(&mut self, now: Duration, width: Width, payload: T) -> Arrival {
        if self.discipline == Discipline::Reject && !self.has_room(width.max()) {
            self.totals.rejected += 1;
            return Arrival::NoSeat;
        }
        let ticket = self.add(now, width, payload, None, Phase::Running);
        self.begin(now, ticket);
        Arrival::Running(ticket)
    }

    fn add(
        &mut self,
        now: Duration,
        width: Width,
        payload: T,
        queue: Option<u32>,
        phase: Phase,
    ) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let request = Request {
            payload,
            width,
            arrived: now,
            started: None,
            queue,
            arrival_r: self.r,
            phase,
        };
        self.requests.insert(ticket, request);
        ticket
    }

    /// The queue of the hand in which the least work waits. The hand is looked through from another
    /// card each time, so that flows with overlapping hands do not meet in the same one.
    fn choose(&mut self, queuing: Queuing, hash: u64) -> u32 {
        let hand = deal(hash, queuing.queues, queuing.hand);
        let cards = hand.cards();
        let offset = (self.enqueued % cards.len() as u64) as usize;
        self.enqueued += 1;
        let (before, from) = cards.split_at(offset);
        let work = |card: &u32| self.queues.get(card).map_or(0, |queue| queue.waiting_work);
        *from
            .iter()
            .chain(before)
            .min_by_key(|card| work(card))
            .expect("a hand has a card at least")
    }

    /// A running request ends. What is given back is for how long its seats stay taken; then
    /// `release` is due.
    pub fn finish(&mut self, now: Duration, ticket: Ticket) -> Option<Duration> {
        self.advance(now);
        let request = self.requests.get_mut(&ticket)?;
        if request.phase != Phase::Running {
            return None;
        }
        request.phase = Phase::Lingering;
        let (width, card) = (request.width, request.queue);
        let took = now.saturating_sub(request.started.unwrap_or(now));
        self.running -= 1;
        if let Some(queue) = card.and_then(|card| self.queues.get_mut(&card)) {
            queue.running -= 1;
            queue.next_dispatch +=
                seat_time(width.initial, took) - seat_time(width.initial, SERVICE_GUESS);
            if !queue.is_active() {
                self.active_queues -= 1;
            }
        }
        if let Some(card) = card {
            self.bound_next_dispatch(card);
        }
        if width.lingering.is_zero() {
            self.give_back(now, ticket);
            self.dispatch(now);
            return None;
        }
        self.dispatch(now);
        Some(width.lingering)
    }

    /// The seats of a request that ended are free now.
    pub fn release(&mut self, now: Duration, ticket: Ticket) {
        self.advance(now);
        self.give_back(now, ticket);
        self.dispatch(now);
    }

    fn give_back(&mut self, now: Duration, ticket: Ticket) {
        let Some(request) = self.requests.remove(&ticket) else {
            return;
        };
        self.seats_in_use -= request.width.max();
        if let Some(card) = request.queue
            && let Some(queue) = self.queues.get_mut(&card)
        {
            queue.seats_in_use -= request.width.max();
            self.forget_if_empty(card);
        }
        self.note_demand(now);
    }

    /// Nobody waits for a request any more. True when it had not begun.
    pub fn abandon(&mut self, now: Duration, ticket: Ticket, timed_out: bool) -> bool {
        self.advance(now);
        let Some(request) = self.requests.get(&ticket) else {
            return false;
        };
        let (width, card) = (request.width, request.queue);
        if request.phase != Phase::Waiting {
            return false;
        }
        self.requests.remove(&ticket);
        if let Some(card) = card {
            if let Some(queue) = self.queues.get_mut(&card) {
                queue.waiting.retain(|own| *own != ticket);
                queue.leave(width);
                if !queue.is_active() {
                    self.active_queues -= 1;
                }
            }
            self.bound_next_dispatch(card);
            self.forget_if_empty(card);
        }
        self.waiting -= 1;
        self.seats_waiting -= width.max();
        self.totals.rejected += 1;
        if timed_out {
            self.totals.timed_out += 1;
        } else {
            self.totals.cancelled += 1;
        }
        self.note_demand(now);
        // It may have been a wide one for which others had to wait.
        self.dispatch(now);
        true
    }

    pub fn set_limit(&mut self, now: Duration, limit: u32) {
        self.advance(now);
        self.limit = limit;
        self.dispatch(now);
    }

    /// Requests that are in queues already stay in them until it is their turn.
    pub fn set_discipline(&mut self, now: Duration, discipline: Discipline) {
        self.advance(now);
        self.discipline = discipline;
        self.dispatch(now);
    }

    /// One more request that waited and runs now.
    pub fn next_dispatched(&mut self) -> Option<Ticket> {
        self.dispatched.pop_front()
    }

    fn dispatch(&mut self, now: Duration) {
        while self.waiting > 0 && (self.seats_in_use < self.limit || self.is_exempt()) {
            let Some(card) = self.next_queue() else {
                return;
            };
            let Some(queue) = self.queues.get_mut(&card) else {
                return;
            };
            let Some(ticket) = queue.waiting.front().copied() else {
                return;
            };
            let Some(width) = self.requests.get(&ticket).map(|request| request.width) else {
                return;
            };
            if !self.has_room(width.max()) {
                return;
            }
            self.robin = card;
            self.take(card, ticket, width);
            self.begin(now, ticket);
            self.dispatched.push_back(ticket);
        }
    }

    /// Takes the first of a queue out of it, to be run.
    fn take(&mut self, card: u32, ticket: Ticket, width: Width) {
        let narrowed = width.within(self.limit);
        if let Some(queue) = self.queues.get_mut(&card) {
            queue.waiting.pop_front();
            queue.leave(width);
            queue.running += 1;
            queue.seats_in_use += narrowed.max();
            queue.next_dispatch += width.work();
        }
        self.bound_next_dispatch(card);
        self.waiting -= 1;
        self.seats_waiting -= width.max();
        if let Some(request) = self.requests.get_mut(&ticket) {
            request.width = narrowed;
        }
    }

    fn begin(&mut self, now: Duration, ticket: Ticket) {
        if let Some(request) = self.requests.get_mut(&ticket) {
            request.started = Some(now);
            request.phase = Phase::Running;
            self.seats_in_use += request.width.max();
        }
        self.running += 1;
        self.totals.dispatched += 1;
        self.note_demand(now);
    }

    /// The queue whose first request would end earliest in virtual time; among equals the one after
    /// that which was served last.
    fn next_queue(&self) -> Option<u32> {
        let after = self.queues.range(self.robin.saturating_add(1)..);
        let mut best: Option<(i128, u32)> = None;
        for (card, queue) in after.chain(self.queues.range(..=self.robin)) {
            let Some(first) = queue.waiting.front() else {
                continue;
            };
            let work = self.requests.get(first).map_or(0, |one| one.width.work());
            let end = queue.next_dispatch + work;
            if best.is_none_or(|(earliest, _)| end < earliest) {
                best = Some((end, *card));
            }
        }
        best.map(|(_, card)| card)
    }

    /// A request wider than the level runs alone.
    fn has_room(&self, seats: u32) -> bool {
        if self.is_exempt() {
            return true;
        }
        if seats > self.limit {
            return self.running == 0;
        }
        self.seats_in_use + seats <= self.limit
    }

    fn is_exempt(&self) -> bool {
        self.discipline == Discipline::Exempt
    }

    /// In the virtual world too nothing begins before it arrived: a queue that cannot use its part
    /// saves up nothing.
    fn bound_next_dispatch(&mut self, card: u32) {
        if let Some(queue) = self.queues.get_mut(&card)
            && let Some(first) = queue.waiting.front()
            && let Some(request) = self.requests.get(first)
        {
            queue.next_dispatch = queue.next_dispatch.max(request.arrival_r);
        }
    }

    fn forget_if_empty(&mut self, card: u32) {
        if let Some(queue) = self.queues.get(&card)
            && !queue.is_active()
            && queue.seats_in_use == 0
        {
            self.queues.remove(&card);
        }
    }

    /// Brings virtual time up to now; to be done before anything changes.
    fn advance(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        if self.active_queues > 0 {
            let seats = (self.seats_in_use + self.seats_waiting).min(self.limit);
            self.r += seat_time(seats, elapsed) / i128::from(self.active_queues);
        }
    }

    fn note_demand(&mut self, now: Duration) {
        let seats = self.seats_in_use + self.seats_waiting;
        self.demand.set(now, f64::from(seats));
    }
}

impl Queue {
    fn leave(&mut self, width: Width) {
        self.waiting_work -= width.work();
        self.waiting_seats -= width.max();
        self.waiting_initial_seats -= width.initial;
    }
}

impl Width {
    /// What lasts fits the level: the same work over fewer seats takes longer.
    fn within(self, limit: u32) -> Self {
        if self.lasting <= limit || limit == 0 {
            return self;
        }
        Self {
            lasting: limit,
            lingering: self.lingering * self.lasting / limit,
            ..self
        }
    }
}

mod look; // What may be seen from outside.

#[cfg(test)]
mod tests;
