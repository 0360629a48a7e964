//! The delays of a container that keeps failing, and of one that recovers.

use super::{BackOff, go_seconds};
use jiff::Timestamp;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn doubles_up_to_five_minutes() {
    let mut last = None;
    let mut delays = Vec::new();
    for round in 0..7 {
        let next = BackOff::after(last.as_ref(), at(round), at(round));
        delays.push(go_seconds(next.seconds));
        last = Some(next);
    }
    assert_eq!(
        delays,
        ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]
    );
}

#[test]
fn ends_and_is_forgotten() {
    let first = BackOff::after(None, at(0), at(0));
    assert_eq!(first.until(at(100), at(105)), Some(at(110)));
    assert_eq!(first.until(at(100), at(110)), None);
    assert_eq!(first.until(at(601), at(602)), None);
    assert_eq!(BackOff::after(Some(&first), at(601), at(602)).seconds, 10);
}
