use super::*;
use std::time::Duration;

fn names() -> Vec<String> {
    vec!["a".to_owned(), "b".to_owned()]
}

#[test]
fn sides_take_turns_in_who_is_first() {
    let order: Vec<_> = (0..4).flat_map(|round| turn(2, round)).collect();
    assert_eq!(order, [0, 1, 1, 0, 0, 1, 1, 0]);
    assert_eq!(turn(1, 1), [0]);
}

#[test]
fn a_median_is_the_middle_or_the_mean_of_the_two_there() {
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    assert_eq!(median(&[]), None);
}

#[test]
fn ratios_are_of_the_pairs_and_not_of_the_medians() {
    let mut pairs = Pairs::new(2);
    for (side, round, value) in [
        (0, 0, 10.0),
        (1, 0, 5.0),
        (1, 1, 2.0),
        (0, 1, 8.0),
        (0, 2, 9.0),
    ] {
        pairs.add(side, round, Figure::new("get, rate", "/s", value));
    }
    assert_eq!(pairs.rows[0].ratios(), [2.0, 4.0]);
    let json = pairs.json(&names());
    let row = &json["rows"][0];
    assert_eq!(row["ratioMedian"], 3.0);
    assert_eq!(row["sides"][0]["median"], 9.0);
    assert_eq!(row["sides"][0]["min"], 8.0);
    assert_eq!(row["sides"][1]["max"], 5.0);
    let table = pairs.table(&names());
    assert!(table.contains("9.00 (8.00..10.0)"), "{table}");
    assert!(table.contains("2.00, 4.00"), "{table}");
}

#[test]
fn nothing_is_divided_by_nothing() {
    let mut pairs = Pairs::new(2);
    pairs.add(0, 0, Figure::new("flushes", "", 3.0));
    pairs.add(1, 0, Figure::new("flushes", "", 0.0));
    assert!(pairs.rows[0].ratios().is_empty());
    assert!(pairs.json(&names())["rows"][0]["ratioMedian"].is_null());
}

#[test]
fn one_side_has_no_ratios() {
    let mut pairs = Pairs::new(1);
    pairs.add(0, 0, Figure::new("get, rate", "/s", 3.0));
    let names = &names()[..1];
    assert!(!pairs.table(names).contains("second"));
    assert_eq!(pairs.json(names)["rows"][0]["ratios"], json!([]));
}

#[test]
fn a_report_tells_its_failures_and_a_table_only_those_that_there_were() {
    let report = |failed| {
        let times = vec![Duration::from_millis(4); 10];
        Report::new("get", times, failed, Duration::from_secs(2))
    };
    let fine = figures(&report(0));
    let expected = [
        ("get, rate", 5.0),
        ("get, p50", 4.0),
        ("get, p99", 4.0),
        ("get, failed", 0.0),
    ];
    let found: Vec<_> = fine.iter().map(|f| (f.what.as_str(), f.value)).collect();
    assert_eq!(found, expected);
    let of_rounds = |rounds: [usize; 3]| {
        let mut pairs = Pairs::new(1);
        for (round, failed) in rounds.into_iter().enumerate() {
            for figure in figures(&report(failed)) {
                pairs.add(0, round, figure);
            }
        }
        pairs.table(&names()[..1])
    };
    assert!(!of_rounds([0, 0, 0]).contains("failed"));
    let table = of_rounds([0, 2, 0]);
    assert!(table.contains("0.00 (0.00..2.00)"), "{table}");
}

#[test]
fn what_nobody_counted_in_a_round_was_none() {
    let mut pairs = Pairs::new(2);
    pairs.add(0, 1, Figure::new("PUT pods", "", 6.0));
    pairs.add(1, 0, Figure::new("PUT pods", "", 2.0));
    pairs.add(1, 1, Figure::new("PUT pods", "", 3.0));
    pairs.add(0, 0, Figure::new("p50", "ms", 1.0));
    pairs.end(3);
    assert_eq!(pairs.rows[0].values, [[0.0, 6.0, 0.0], [2.0, 3.0, 0.0]]);
    assert_eq!(pairs.rows[0].ratios(), [0.0, 2.0]);
    assert_eq!(pairs.rows[1].values, [vec![1.0], vec![]]);
}

#[test]
fn a_page_has_a_row_a_figure() {
    let mut pairs = Pairs::new(2);
    for (side, round, value) in [(0, 0, 10.0), (1, 0, 5.0), (0, 1, 30.0), (1, 1, 10.0)] {
        pairs.add(side, round, Figure::new("get, rate", "/s", value));
        pairs.add(side, round, Figure::new("get, failed", "", 0.0));
    }
    pairs.add(0, 0, Figure::new("resident", "MiB", 7.0));
    expect_test::expect![[r#"
        | what | a | b | first / second: median (each round) |
        | --- | --- | --- | --- |
        | get, rate (/s) | 20.0 (10.0..30.0) | 7.50 (5.00..10.0) | 2.50 (2.00, 3.00) |
        | resident (MiB) | 7.00 | - |  |"#]]
    .assert_eq(&pairs.markdown(&names()));
}
