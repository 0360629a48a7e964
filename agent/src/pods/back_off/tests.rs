//! The delays of a container that keeps failing, and of one that recovers.

use super::{BackOff, Pace, go_seconds};
use jiff::Timestamp;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn doubles_up_to_five_minutes() {
    let mut last = None;
    let mut delays = Vec::new();
    for round in 0..7 {
        let next = BackOff::after(Pace::CONTAINER, last.as_ref(), at(round), at(round));
        delays.push(go_seconds(next.seconds));
        last = Some(next);
    }
    assert_eq!(
        delays,
        ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]
    );
}

#[test]
fn sandboxes_are_tried_again_soon_at_first() {
    let (mut last, mut now) = (None, 0);
    let mut delays = Vec::new();
    for _ in 0..9 {
        let next = BackOff::after(Pace::SANDBOX, last.as_ref(), at(now), at(now));
        delays.push(next.seconds);
        now += next.seconds;
        last = Some(next);
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 122, 122]);
}

#[test]
fn ends_and_is_forgotten() {
    let first = BackOff::after(Pace::CONTAINER, None, at(0), at(0));
    assert_eq!(first.until(at(100), at(105)), Some(at(110)));
    assert_eq!(first.until(at(100), at(110)), None);
    assert_eq!(first.until(at(601), at(602)), None);
    assert_eq!(
        BackOff::after(Pace::CONTAINER, Some(&first), at(601), at(602)).seconds,
        10
    );
}

#[test]
fn durations_are_written_as_go_writes_them() {
    let written = [0, 59, 60, 3599, 3600, 7325].map(go_seconds);
    assert_eq!(written, ["0s", "59s", "1m0s", "59m59s", "1h0m0s", "2h2m5s"]);
}
