//! How long those who are refused should stay away: longer while many are refused.
//!
//! Pure. Upstream's rule, after TCP's: doubled when at least three a second were refused for as
//! long as the answer was, shorter by one when fewer than one a second were.

use std::collections::VecDeque;

const SECONDS_MAX: u64 = 32;

/// The refusals of one level. `second` is a count of seconds that only goes up.
#[derive(Debug)]
pub struct Refusals {
    /// Finished seconds with refusals in them: at most 32.
    history: VecDeque<(u64, u64)>,
    second: u64,
    count: u64,
    retry_after: u64,
    raised: Option<u64>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            history: VecDeque::new(),
            second: 0,
            count: 0,
            retry_after: 1,
            raised: None,
        }
    }
}

impl Refusals {
    /// Counts one more; gives the seconds to wait.
    pub fn note(&mut self, second: u64) -> u64 {
        if second > self.second || self.count == 0 {
            if self.count > 0 {
                self.history.push_back((self.second, self.count));
            }
            let oldest = second.saturating_sub(SECONDS_MAX);
            while self.history.front().is_some_and(|(old, _)| *old < oldest) {
                self.history.pop_front();
            }
            (self.second, self.count) = (second, 0);
            self.adjust();
        }
        self.count += 1;
        self.retry_after
    }

    fn adjust(&mut self) {
        let from = self.second.saturating_sub(self.retry_after);
        let recent = self.history.iter().filter(|(second, _)| *second >= from);
        let refused: u64 = recent.map(|(_, count)| count).sum();
        let may_rise = self
            .raised
            .is_none_or(|raised| self.second - raised >= self.retry_after);
        if may_rise && refused >= 3 * self.retry_after {
            self.retry_after = (self.retry_after * 2).min(SECONDS_MAX);
            self.raised = Some(self.second);
        } else if refused < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
