//! When a part of the network writes what is its own in the table: changes at once, all of it after
//! a failure or a stranger, and sweeps of chains that nothing needs any more. Pure but for the wait.

use coracle_client::clock::Instant;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep_until;

/// What follows a change within this goes into the same batch.
pub const GATHER: Duration = Duration::from_millis(5);
/// From one sweep to the next, whatever is changed meanwhile.
pub const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// After a batch that was not taken; doubled up to the second each time.
pub const RETRY_MIN: Duration = Duration::from_millis(500);
pub const RETRY_MAX: Duration = Duration::from_secs(30);

/// Begins with all of it.
#[derive(Debug)]
pub struct Pace {
    /// All is to be written, not the changes alone.
    is_whole: bool,
    sweep_at: Option<Instant>,
    retry_at: Option<Instant>,
    retry: Duration,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Due {
    Sweep,
    Retry,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            is_whole: true,
            sweep_at: None,
            retry_at: None,
            retry: RETRY_MIN,
        }
    }
}

impl Pace {
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn ask_whole(&mut self) {
        self.is_whole = true;
    }

    /// Not before a retry that is to come.
    pub fn may_write(&self, now: Instant) -> bool {
        self.retry_at.is_none_or(|at| at <= now)
    }

    pub fn written(&mut self, now: Instant, has_stale: bool) {
        self.is_whole = false;
        self.retry_at = None;
        self.retry = RETRY_MIN;
        self.sweep_later(now, has_stale);
    }

    /// There is nothing to write before the next change.
    pub fn idle(&mut self) {
        self.retry_at = None;
    }

    pub fn swept(&mut self, now: Instant, has_stale: bool) {
        self.sweep_at = None;
        self.sweep_later(now, has_stale);
    }

    /// Gives how long until it is tried again.
    pub fn failed(&mut self, now: Instant) -> Duration {
        let retry = self.retry;
        self.is_whole = true;
        self.sweep_at = None;
        self.retry_at = Some(now + retry);
        self.retry = (retry * 2).min(RETRY_MAX);
        retry
    }

    /// One that is to come is not put off by what is written before it.
    fn sweep_later(&mut self, now: Instant, has_stale: bool) {
        if self.sweep_at.is_none() && has_stale {
            self.sweep_at = Some(now + SWEEP_AFTER);
        }
    }

    /// Waits for what is next, for ever when nothing is. Of what has passed it is told until
    /// something was done about it.
    pub async fn due(&self) -> Due {
        tokio::select! {
            biased;
            () = at(self.sweep_at) => Due::Sweep,
            () = at(self.retry_at) => Due::Retry,
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
