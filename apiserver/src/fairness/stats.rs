//! What is counted of one flow schema on its level. Cheap: atomics, no lock.

use coracle_api::exposition::histogram::{Durations, Sizes};
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Upstream's buckets.
pub const SECONDS: &[f64] = &[
    0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
];
pub const QUEUE_LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
pub const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];

#[derive(Debug)]
pub struct Stats {
    pub dispatched: AtomicU64,
    pub queue_full: AtomicU64,
    pub no_seat: AtomicU64,
    pub timed_out: AtomicU64,
    pub cancelled: AtomicU64,
    pub running: AtomicI64,
    pub running_seats: AtomicI64,
    pub waiting: AtomicI64,
    pub waiting_seats: AtomicI64,
    pub waited_and_ran: Durations,
    pub waited_in_vain: Durations,
    pub ran: Durations,
    pub watches_began: Durations,
    pub queue_lengths: Sizes,
    pub widths: Sizes,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            dispatched: AtomicU64::new(0),
            queue_full: AtomicU64::new(0),
            no_seat: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            running: AtomicI64::new(0),
            running_seats: AtomicI64::new(0),
            waiting: AtomicI64::new(0),
            waiting_seats: AtomicI64::new(0),
            waited_and_ran: Durations::new(SECONDS),
            waited_in_vain: Durations::new(SECONDS),
            ran: Durations::new(SECONDS),
            watches_began: Durations::new(SECONDS),
            queue_lengths: Sizes::new(QUEUE_LENGTHS),
            widths: Sizes::new(SEATS),
        }
    }
}
