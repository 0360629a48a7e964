//! The one clock: wall time for what is written into objects, monotonic time for waiting.
//!
//! Everything else takes time as an argument. Monotonic time is tokio's, so that a test with
//! paused time moves both: `Clock::starting_at` derives its wall time from it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
pub use tokio::time::Instant;

/// Cheap to clone; clones agree.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Derived { start: Timestamp, since: Instant },
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that says `start` now and then follows tokio's time, paused or not.
    pub fn starting_at(start: Timestamp) -> Self {
        Self(Source::Derived {
            start,
            since: Instant::now(),
        })
    }

    /// Wall time. May jump when the machine's clock is set: never measure durations with it.
    #[allow(clippy::disallowed_methods)] // This is the one clock.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Derived { start, since } => start
                .saturating_add(since.elapsed())
                .expect("a std duration never fails to convert with saturation"),
        }
    }

    /// Time that never goes back, for timeouts and grace periods.
    pub fn monotonic(&self) -> Instant {
        Instant::now()
    }

    /// Wall time as most objects carry it: whole seconds.
    pub fn time(&self) -> Time {
        Time(seconds(self.now()))
    }

    /// Wall time as leases and events carry it: microseconds.
    pub fn micro_time(&self) -> MicroTime {
        MicroTime(self.now())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

/// Drops what `metav1.Time` does not carry on the wire, so that a time read back compares equal.
pub fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("whole seconds of a valid time are in range")
}
