use super::*;

fn check(schedule: &str, zone: &str, after: &str, expected: &[&str]) {
    let table = Timetable::parse(schedule, Some(zone)).unwrap();
    let mut time: Timestamp = after.parse().unwrap();
    for expected in expected {
        let next = table.next(time);
        let said = next.map_or("never".to_owned(), |next| next.to_string());
        assert_eq!(said, *expected, "{schedule} {zone} {after}");
        time = next.unwrap_or(time);
    }
}

/// Schedule, time, and the next one, which upstream's parser gives as well.
const NEXT: [(&str, &str, &str); 16] = [
    (
        "0/15 * * * *",
        "2012-07-09T14:45:00Z",
        "2012-07-09T15:00:00Z",
    ),
    (
        "0/15 * * * *",
        "2012-07-09T14:59:59Z",
        "2012-07-09T15:00:00Z",
    ),
    (
        "20-35/15 * * * *",
        "2012-07-09T15:45:00Z",
        "2012-07-09T16:20:00Z",
    ),
    (
        "*/15 * * * *",
        "2012-12-31T23:59:45Z",
        "2013-01-01T00:00:00Z",
    ),
    ("0 0 9 * *", "2012-07-09T23:35:00Z", "2012-08-09T00:00:00Z"),
    (
        "0 0 * * Mon",
        "2012-07-09T23:35:00Z",
        "2012-07-16T00:00:00Z",
    ),
    (
        "0 0 1,15 * Sun",
        "2012-07-09T23:35:00Z",
        "2012-07-15T00:00:00Z",
    ),
    (
        "0 0 */5 * Mon",
        "2012-07-09T23:35:00Z",
        "2012-07-11T00:00:00Z",
    ),
    (
        "0 0 1 * Mon",
        "2012-07-25T00:00:00Z",
        "2012-07-30T00:00:00Z",
    ),
    (
        "0 0 29 Feb ?",
        "2012-07-09T23:35:00Z",
        "2016-02-29T00:00:00Z",
    ),
    ("59 23 31 2 *", "2012-07-09T23:35:00Z", "never"),
    (
        "0 0 31 Dec *",
        "2012-12-31T00:00:00Z",
        "2013-12-31T00:00:00Z",
    ),
    ("@hourly", "2012-07-09T14:45:00Z", "2012-07-09T15:00:00Z"),
    (
        "@every 1h30m",
        "2012-07-09T14:45:10.5Z",
        "2012-07-09T16:15:10Z",
    ),
    (
        "@every 10ms",
        "2012-07-09T14:45:10.5Z",
        "2012-07-09T14:45:11Z",
    ),
    (
        "30 6-16/4 * * 1-5",
        "2012-07-06T14:31:00Z",
        "2012-07-09T06:30:00Z",
    ),
];

#[test]
fn the_next_time_is_found() {
    for (schedule, after, expected) in NEXT {
        check(schedule, "UTC", after, &[expected]);
    }
}

#[test]
fn zones_say_when_a_day_begins() {
    check(
        "0 0 * * *",
        "Asia/Tokyo",
        "2022-06-01T10:00:00Z",
        &["2022-06-01T15:00:00Z"],
    );
    check(
        "TZ=Asia/Tokyo 0 0 * * *",
        "UTC",
        "2022-06-01T10:00:00Z",
        &["2022-06-01T15:00:00Z"],
    );
    check(
        "30 5 * * *",
        "Asia/Kolkata",
        "2022-06-01T00:30:00Z",
        &["2022-06-02T00:00:00Z"],
    );
}

#[test]
fn clocks_that_are_put_forward_or_back() {
    // 02:00 to 03:00 is skipped on 11 March 2012, and half past two with it.
    let zone = "America/New_York";
    check(
        "30 2 * * *",
        zone,
        "2012-03-10T12:00:00Z",
        &["2012-03-12T06:30:00Z"],
    );
    check(
        "0 * * * *",
        zone,
        "2012-03-11T06:00:00Z",
        &["2012-03-11T07:00:00Z", "2012-03-11T08:00:00Z"],
    );
    // 01:00 to 02:00 comes twice on 4 November.
    check(
        "30 1 * * *",
        zone,
        "2012-11-04T00:00:00Z",
        &[
            "2012-11-04T05:30:00Z",
            "2012-11-04T06:30:00Z",
            "2012-11-05T06:30:00Z",
        ],
    );
    // Midnight itself is skipped: the day begins at one.
    check(
        "0 * * * 0",
        "America/Sao_Paulo",
        "2018-11-03T12:00:00Z",
        &["2018-11-04T03:00:00Z"],
    );
}

#[test]
fn what_cannot_be_read_is_said() {
    for (schedule, zone) in [("* *", None), ("* * * * *", Some("Mars/Olympus"))] {
        assert!(
            Timetable::parse(schedule, zone).is_err(),
            "{schedule} {zone:?}"
        );
    }
}
