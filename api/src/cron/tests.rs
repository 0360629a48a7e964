//! What is read, and what is said of the rest.

use super::*;

fn calendar_of(text: &str) -> Calendar {
    match parse(text).unwrap() {
        Schedule::Calendar(calendar) => calendar,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_ranges_steps_and_names() {
    let schedule = calendar_of("0,30 9-17/4 1 JAN-mar mon");
    assert_eq!(schedule.minutes, 1 | 1 << 30);
    assert_eq!(schedule.hours, 1 << 9 | 1 << 13 | 1 << 17);
    assert_eq!(schedule.days_of_month, 1 << 1);
    assert_eq!(schedule.months, 0b1110);
    assert_eq!(schedule.days_of_week, 1 << 1);
    assert_eq!(calendar_of("*/20 * * * ?").minutes, 1 | 1 << 20 | 1 << 40);
    assert_eq!(calendar_of("0 * * * *").hours, ((1 << 24) - 1) | STAR);
    assert_eq!(calendar_of("@weekly").days_of_week, 1);
    assert_eq!(
        calendar_of("TZ=Asia/Tokyo 0 3 * * *").time_zone.as_deref(),
        Some("Asia/Tokyo")
    );
    assert_eq!(
        parse("@every 1h30m").unwrap(),
        Schedule::Every { seconds: 5400 }
    );
    assert_eq!(
        parse("@every 0.5s").unwrap(),
        Schedule::Every { seconds: 1 }
    );
}

#[test]
fn errors_in_upstreams_words() {
    let error = |text: &str| parse(text).unwrap_err();
    assert_eq!(error(""), "empty spec string");
    assert_eq!(
        error("a b c"),
        "expected exactly 5 fields, found 3: [a b c]"
    );
    assert_eq!(
        error("60 * * * *"),
        "end of range (60) above maximum (59): 60"
    );
    assert_eq!(
        error("* * 0 * *"),
        "beginning of range (0) below minimum (1): 0"
    );
    assert_eq!(
        error("5-2 * * * *"),
        "beginning of range (5) beyond end of range (2): 5-2"
    );
    assert_eq!(
        error("*/0 * * * *"),
        "step of range should be a positive number: */0"
    );
    assert_eq!(error("1-2-3 * * * *"), "too many hyphens: 1-2-3");
    assert_eq!(error("1/2/3 * * * *"), "too many slashes: 1/2/3");
    assert_eq!(
        error("x * * * *"),
        "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"
    );
    assert_eq!(error("@often"), "unrecognized descriptor: @often");
    assert_eq!(
        error("@every 5"),
        "failed to parse duration @every 5: time: missing unit in duration \"5\""
    );
    assert_eq!(
        error("@every 5x"),
        "failed to parse duration @every 5x: time: unknown unit \"x\" in duration \"5x\""
    );
    assert_eq!(
        error("@every 1.5.5s"),
        "failed to parse duration @every 1.5.5s: time: missing unit in duration \"1.5.5s\""
    );
    assert_eq!(
        error("TZ=Mars * * * * *"),
        "provided bad location Mars: unknown time zone Mars"
    );
}

#[test]
fn zones_by_their_exact_names() {
    assert_eq!(zone_error("Europe/Berlin"), None);
    assert!(zone_error("europe/berlin").is_some());
    assert_eq!(zone_error("Etc/GMT+3"), None);
}
