//! Thresholds: how many answers of one kind in a row make an outcome. Pure.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    Success,
    Failure,
}

#[derive(Debug)]
pub struct Count {
    success_threshold: i32,
    failure_threshold: i32,
    last: Option<bool>,
    in_a_row: i32,
}

impl Count {
    pub fn new(success_threshold: i32, failure_threshold: i32) -> Self {
        Self {
            success_threshold: success_threshold.max(1),
            failure_threshold: failure_threshold.max(1),
            last: None,
            in_a_row: 0,
        }
    }

    /// The outcome, from the answer that reaches the threshold on.
    pub fn add(&mut self, is_success: bool) -> Option<Outcome> {
        if self.last == Some(is_success) {
            self.in_a_row = self.in_a_row.saturating_add(1);
        } else {
            self.last = Some(is_success);
            self.in_a_row = 1;
        }
        let (threshold, outcome) = if is_success {
            (self.success_threshold, Outcome::Success)
        } else {
            (self.failure_threshold, Outcome::Failure)
        };
        (self.in_a_row >= threshold).then_some(outcome)
    }
}
