//! Counting answers.

use super::count::{Count, Outcome};

#[test]
fn an_outcome_needs_its_threshold_in_a_row() {
    let mut count = Count::new(2, 3);
    let answers = [
        true, true, false, false, true, false, false, false, true, true,
    ];
    let outcomes: Vec<_> = answers.iter().map(|answer| count.add(*answer)).collect();
    let (yes, no) = (Some(Outcome::Success), Some(Outcome::Failure));
    assert_eq!(
        outcomes,
        [None, yes, None, None, None, None, None, no, None, yes]
    );
}
