//! How often a zone may lose a node: one at a time, then so many a second. Pure.

use std::time::Duration;

use coracle_client::clock::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limiter {
    per_second: f64,
    /// From when on the next one is allowed.
    free_at: Instant,
}

impl Limiter {
    pub(super) fn new(per_second: f64, now: Instant) -> Self {
        Self {
            per_second,
            free_at: now,
        }
    }

    /// Never, when the rate is zero.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        (self.per_second > 0.0).then(|| self.free_at.saturating_duration_since(now))
    }

    pub(super) fn try_take(&mut self, now: Instant) -> bool {
        let free = self.wait(now) == Some(Duration::ZERO);
        if free {
            self.free_at = now + self.interval();
        }
        free
    }

    /// Changes the rate. Who has to wait now waits a whole interval of the new rate.
    pub(super) fn set_rate(&mut self, per_second: f64, now: Instant) {
        // The rates are constants, handed around and not computed with.
        if (self.per_second - per_second).abs() < f64::EPSILON {
            return;
        }
        let waits = self.wait(now) != Some(Duration::ZERO);
        self.per_second = per_second;
        self.free_at = now;
        if waits && per_second > 0.0 {
            self.free_at += self.interval();
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.per_second)
    }
}
