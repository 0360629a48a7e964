//! What may be seen of a queue set from outside.

use super::{Discipline, Queue, QueueSet, Request, Ticket, Totals};
use crate::fairness::demand::Observed;
use std::time::Duration;

impl<T> QueueSet<T> {
    pub fn request_mut(&mut self, ticket: Ticket) -> Option<&mut Request<T>> {
        self.requests.get_mut(&ticket)
    }

    /// All requests that wait or run, oldest first.
    pub fn requests(&self) -> impl Iterator<Item = (Ticket, &Request<T>)> {
        self.requests.iter().map(|(ticket, one)| (*ticket, one))
    }

    /// The queues that are in use.
    pub fn queues(&self) -> impl Iterator<Item = (u32, &Queue)> {
        self.queues.iter().map(|(card, queue)| (*card, queue))
    }

    pub fn discipline(&self) -> Discipline {
        self.discipline
    }

    pub fn limit(&self) -> u32 {
        self.limit
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn running(&self) -> usize {
        self.running
    }

    pub fn seats_in_use(&self) -> u32 {
        self.seats_in_use
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Virtual time, in seat-seconds.
    pub fn r_seconds(&self) -> f64 {
        self.r as f64 / 1e9
    }

    /// The demand for seats since this was last asked.
    pub fn take_demand(&mut self, now: Duration) -> Observed {
        self.demand.take(now)
    }
}
