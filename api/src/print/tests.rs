//! Ages as people read them.

use super::*;
use expect_test::{Expect, expect};

fn check(seconds: &[i64], expected: Expect) {
    let texts: Vec<String> = seconds.iter().map(|s| human_duration(*s)).collect();
    expected.assert_eq(&texts.join(" "));
}

#[test]
fn ages_show_two_units_at_most() {
    check(
        &[
            -5, -1, 0, 59, 119, 120, 125, 599, 600, 3599, 10_799, 10_800, 10_860, 28_799,
        ],
        expect!["<invalid> 0s 0s 59s 119s 2m 2m5s 9m59s 10m 59m 179m 3h 3h1m 7h59m"],
    );
    check(
        &[
            28_800, 172_799, 172_800, 180_000, 691_200, 63_071_999, 63_072_000, 64_000_000,
        ],
        expect!["8h 47h 2d 2d2h 8d 729d 2y 2y10d"],
    );
}

#[test]
fn an_age_without_a_time_is_unknown() {
    assert_eq!(age("", 10), "<unknown>");
    assert_eq!(age("1970-01-01T00:00:10Z", 40), "30s");
}
