//! Longer under load, shorter after it.

use super::*;

#[test]
fn a_flood_doubles_the_wait_up_to_a_bound() {
    let mut refusals = Refusals::default();
    assert_eq!(refusals.note(100), 1);
    for second in 100..400 {
        for _ in 0..200 {
            refusals.note(second);
        }
    }
    assert_eq!(refusals.note(400), SECONDS_MAX);
    assert!(refusals.history.len() <= 33);
}

#[test]
fn a_trickle_shortens_it_again() {
    let mut refusals = Refusals::default();
    for second in 0..4 {
        for _ in 0..50 {
            refusals.note(second);
        }
    }
    let long = refusals.note(4);
    assert!(long > 1);
    let mut now = 1000;
    for _ in 0..long {
        now += 100;
        refusals.note(now);
    }
    assert_eq!(refusals.note(now + 100), 1);
}
