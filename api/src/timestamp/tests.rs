//! Times are written in UTC and read strictly.

use super::*;

#[test]
fn times_are_written_in_utc() {
    let at = parse("2026-01-02T03:04:05.678901234+02:00").unwrap();
    assert_eq!(format_time(at), "2026-01-02T01:04:05Z");
    assert_eq!(format_micro_time(at), "2026-01-02T01:04:05.678901Z");
    let at = parse("2026-01-02T03:04:05Z").unwrap();
    assert_eq!(format_micro_time(at), "2026-01-02T03:04:05.000000Z");
}

#[test]
fn only_rfc_3339_is_read() {
    for good in [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.1Z",
        "2026-02-28T23:59:59-11:30",
    ] {
        assert!(parse(good).is_some(), "{good}");
    }
    let bad = [
        "",
        "2026-01-02",
        "2026-01-02T03:04Z",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05z",
        "2026-02-30T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T25:04:05Z",
        "2026-01-02T03:04:05+0200",
        "2026-01-02T03:04:05Z[UTC]",
    ];
    for text in bad {
        assert!(parse(text).is_none(), "{text}");
    }
}

#[test]
fn times_before_the_epoch_are_cut_down() {
    let at = parse("1969-12-31T23:59:59.5Z").unwrap();
    assert_eq!(format_time(at), "1969-12-31T23:59:59Z");
}

/// An offset may lead to a year that cannot be written.
#[test]
fn years_have_four_digits() {
    let first = parse("0000-01-01T00:00:00Z").unwrap();
    assert_eq!(format_time(first), "0000-01-01T00:00:00Z");
    assert_eq!(parse("0000-01-01T03:04:06+20:00"), None);
    assert_eq!(parse("9999-12-31T23:59:59-20:00"), None);
}

#[test]
fn a_day_is_written_and_read_in_one_form() {
    let late = parse("2026-01-02T23:59:59Z").unwrap();
    assert_eq!(format_day(late), "2026-01-02");
    let day = parse_day("2026-01-02").unwrap();
    assert_eq!((day.year(), day.month(), day.day()), (2026, 1, 2));
    let bad = [
        "",
        "2026-1-2",
        "20260102",
        "2026-02-30",
        "2026-01-02T00:00:00Z",
        " 2026-01-02",
        "026-01-02",
        "yesterday",
    ];
    for text in bad {
        assert!(parse_day(text).is_none(), "{text}");
    }
}
