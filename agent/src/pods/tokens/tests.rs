//! When a token is renewed.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_token_is_renewed_at_four_fifths_of_its_life_or_after_a_day() {
    let kept = |seconds: i64| Kept {
        token: "t".to_owned(),
        issued: at(0),
        ends: at(seconds),
    };
    assert!(!kept(1000).is_due(at(800)));
    assert!(kept(1000).is_due(at(801)));
    let day = 24 * 60 * 60;
    assert!(!kept(10 * day).is_due(at(day)));
    assert!(kept(10 * day).is_due(at(day + 1)));
}
