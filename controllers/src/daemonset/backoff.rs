//! For how long a failed pod is left alone before it is replaced. Pure: the time is an argument.
//!
//! A node that refuses the pod would fail each successor at once: from one replacement to the
//! next the wait doubles. Another generation of the set starts anew.

use std::collections::HashMap;
use std::time::Duration;

use coracle_client::clock::Instant;

/// Upstream's limits.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// After this the failures were not in a row.
const FORGOTTEN_AFTER: Duration = LONGEST.saturating_mul(2);
/// How often what is forgotten is thrown away; bounds it by the failures of that time.
const SWEEP_PERIOD: Duration = Duration::from_secs(60);

/// Whose failures: of one generation of a set, on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub uid: String,
    pub generation: i64,
    pub node: String,
}

#[derive(Debug, Default)]
pub(super) struct Backoff {
    by_place: HashMap<Place, Wait>,
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Wait {
    delay: Duration,
    since: Instant,
}

impl Wait {
    fn left(&self, now: Instant) -> Duration {
        self.delay.saturating_sub(now.duration_since(self.since))
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.duration_since(self.since) > FORGOTTEN_AFTER
    }
}

impl Backoff {
    /// `None` when the failed pod may be replaced now, which starts the next wait; else what is
    /// left of the wait.
    pub(super) fn ask(&mut self, place: Place, now: Instant) -> Option<Duration> {
        self.sweep(now);
        let last = self.by_place.get(&place);
        let last = last.filter(|wait| !wait.is_forgotten(now));
        let delay = match last.map(|wait| (wait.delay, wait.left(now))) {
            None => FIRST,
            Some((last, Duration::ZERO)) => (last * 2).min(LONGEST),
            Some((_, left)) => return Some(left),
        };
        self.by_place.insert(place, Wait { delay, since: now });
        None
    }

    fn sweep(&mut self, now: Instant) {
        let due = |swept: Instant| now.duration_since(swept) > SWEEP_PERIOD;
        if self.swept.is_none_or(due) {
            self.by_place.retain(|_, wait| !wait.is_forgotten(now));
            self.swept = Some(now);
        }
    }
}
