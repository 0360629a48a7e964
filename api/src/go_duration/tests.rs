//! Durations, and what Go says of those that are none.

use super::*;

#[test]
fn durations_are_nanoseconds() {
    let cases: &[(&str, i64)] = &[
        ("0", 0),
        ("-0", 0),
        ("1ns", 1),
        ("1h30m", 5_400_000_000_000),
        ("-1.5s", -1_500_000_000),
        ("+.25ms", 250_000),
        ("2.s", 2_000_000_000),
        ("1\u{b5}s1us", 2_000),
        ("9223372036854775807ns", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Ok(*expected), "{text}");
    }
}

#[test]
fn what_is_none_is_told_in_gos_words() {
    let cases = [
        ("", "time: invalid duration \"\""),
        ("-", "time: invalid duration \"-\""),
        ("x", "time: invalid duration \"x\""),
        (".s", "time: invalid duration \".s\""),
        ("1s.", "time: invalid duration \"1s.\""),
        ("5", "time: missing unit in duration \"5\""),
        ("1h5", "time: missing unit in duration \"1h5\""),
        ("5x", "time: unknown unit \"x\" in duration \"5x\""),
        ("5sx", "time: unknown unit \"sx\" in duration \"5sx\""),
        (
            "9223372036854775808ns",
            "time: invalid duration \"9223372036854775808ns\"",
        ),
        ("\u{e9}\n\"", r#"time: invalid duration "\xc3\xa9\x0a\"""#),
        ("9999999h", "time: invalid duration \"9999999h\""),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn what_is_written_is_what_go_writes() {
    let cases = [
        (0, "0s"),
        (7, "7ns"),
        (1_100, "1.1\u{b5}s"),
        (2_000_000, "2ms"),
        (999_999_999, "999.999999ms"),
        (SECOND, "1s"),
        (15_004_000_000, "15.004s"),
        (MINUTE, "1m0s"),
        (HOUR + 500_000_000, "1h0m0.5s"),
        (25 * HOUR + 61 * SECOND, "25h1m1s"),
    ];
    for (nanoseconds, expected) in cases {
        assert_eq!(format(nanoseconds), expected);
        assert_eq!(parse(expected), Ok(nanoseconds.cast_signed()));
    }
}
