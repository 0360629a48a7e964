//! The figures against values worked out by hand.

use super::*;

fn millis(range: std::ops::RangeInclusive<u64>) -> Vec<Duration> {
    range.rev().map(Duration::from_millis).collect()
}

#[test]
fn percentiles_are_of_nearest_rank() {
    let report = Report::new("get", millis(1..=200), 0, Duration::from_secs(2));
    assert_eq!(report.p50, Duration::from_millis(100));
    assert_eq!(report.p90, Duration::from_millis(180));
    assert_eq!(report.p99, Duration::from_millis(198));
    assert_eq!(report.max, Duration::from_millis(200));
    assert_eq!(report.rate(), 100.0);
}

#[test]
fn one_value_is_every_percentile() {
    let report = Report::new("get", millis(7..=7), 0, Duration::from_secs(1));
    assert_eq!(
        [report.p50, report.p99, report.max],
        [Duration::from_millis(7); 3]
    );
}

#[test]
fn nothing_measured_is_all_zero() {
    let report = Report::new("get", Vec::new(), 3, Duration::ZERO);
    assert_eq!((report.count, report.failed, report.rate()), (0, 3, 0.0));
    assert_eq!(report.max, Duration::ZERO);
}

#[test]
fn json_and_table_say_the_same() {
    let report = Report::new("list", millis(1..=4), 1, Duration::from_secs(2));
    let json = report.json();
    assert_eq!(json["p50Ms"], 2.0);
    assert_eq!(json["rate"], 2.0);
    let table = report.table();
    let figures: Vec<_> = table
        .lines()
        .last()
        .expect("two lines")
        .split_whitespace()
        .collect();
    assert_eq!(
        figures,
        ["list", "4", "1", "2.0", "2.00", "4.00", "4.00", "4.00"]
    );
}
