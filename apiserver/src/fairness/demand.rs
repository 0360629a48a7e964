//! How many seats a level could have used: measured over a period, then smoothed over many.
//!
//! Pure: the time is an argument.

use std::time::Duration;

/// Upstream's decay: at one step every ten seconds, half of it is gone after five minutes.
const SMOOTHING: f64 = 0.977;

/// Gathers mean, deviation and maximum of a number that stays the same between changes.
#[derive(Clone, Debug)]
pub struct Integrator {
    since: Duration,
    last: Duration,
    value: f64,
    integral: f64,
    integral_of_squares: f64,
    max: f64,
}

/// What an `Integrator` saw since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    pub elapsed: Duration,
    pub average: f64,
    pub deviation: f64,
    pub max: f64,
}

impl Integrator {
    pub fn new(now: Duration) -> Self {
        Self {
            since: now,
            last: now,
            value: 0.0,
            integral: 0.0,
            integral_of_squares: 0.0,
            max: 0.0,
        }
    }

    pub fn set(&mut self, now: Duration, value: f64) {
        self.advance(now);
        self.value = value;
        self.max = self.max.max(value);
    }

    fn advance(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.integral += self.value * seconds;
        self.integral_of_squares += self.value * self.value * seconds;
    }

    /// Ends a period and begins the next.
    pub fn take(&mut self, now: Duration) -> Observed {
        self.advance(now);
        let elapsed = self.last.saturating_sub(self.since);
        let seconds = elapsed.as_secs_f64();
        let observed = if seconds > 0.0 {
            let average = self.integral / seconds;
            let variance = self.integral_of_squares / seconds - average * average;
            Observed {
                elapsed,
                average,
                deviation: variance.max(0.0).sqrt(),
                max: self.max,
            }
        } else {
            Observed {
                max: self.max,
                ..Observed::default()
            }
        };
        let value = self.value;
        *self = Self::new(self.last);
        self.value = value;
        self.max = value;
        observed
    }
}

/// What is remembered of a level's demand from period to period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    pub average: f64,
    pub deviation: f64,
    pub high_watermark: u32,
    /// Rises at once with what a level needs, and falls slowly.
    pub smoothed: f64,
}

impl Demand {
    pub fn update(&mut self, observed: &Observed) {
        self.high_watermark = observed.max.round() as u32;
        if observed.elapsed.is_zero() {
            return;
        }
        self.average = observed.average;
        self.deviation = observed.deviation;
        let envelope = observed.average + observed.deviation;
        let decayed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * envelope;
        self.smoothed = envelope.max(decayed);
    }
}

#[cfg(test)]
mod tests;
