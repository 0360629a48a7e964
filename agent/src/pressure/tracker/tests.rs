//! A line a look in, what follows out.

use super::super::threshold::{Words, pairs, thresholds};
use super::*;
use coracle_api::quantity::Format;
use expect_test::expect;

fn settings() -> Settings {
    let words = Words {
        hard: pairs(&[("memory.available", "100"), ("nodefs.available", "10%")]),
        soft: pairs(&[("memory.available", "200")]),
        soft_grace: pairs(&[("memory.available", "30s")]),
        minimum_reclaim: pairs(&[("nodefs.available", "50")]),
    };
    Settings {
        thresholds: thresholds(&words).unwrap(),
        max_pod_grace_seconds: 5,
        transition: Duration::from_secs(60),
    }
}

/// `SECOND SIGNAL=AVAILABLE..`, each of a capacity of 1000.
fn check(looks: &str, expected: expect_test::Expect) {
    let (settings, mut tracker) = (settings(), Tracker::default());
    let mut said = Vec::new();
    for look in looks.lines().map(str::trim).filter(|look| !look.is_empty()) {
        let mut words = look.split_whitespace();
        let second: u64 = words.next().unwrap().parse().unwrap();
        let seen = words.map(|word| {
            let (name, available) = word.split_once('=').unwrap();
            let available = Quantity::parse(available).unwrap();
            let capacity = Quantity::from_units(1000, Format::BinarySi);
            let observed = Observation {
                available,
                capacity,
            };
            (Signal::named(name).unwrap(), observed)
        });
        let now = Duration::from_secs(second);
        let step = tracker.step(&settings, &seen.collect(), now);
        let conditions: Vec<_> = step.conditions.iter().map(ToString::to_string).collect();
        let due = step.due.iter().map(|due| {
            let kind = if due.is_hard() { "hard" } else { "soft" };
            format!("{kind} {}", due.signal.name())
        });
        let due: Vec<_> = due.collect();
        said.push(format!("{second} {conditions:?} {due:?}"));
    }
    expected.assert_eq(&said.join("\n"));
}

#[test]
fn a_soft_threshold_waits_and_a_hard_one_does_not() {
    check(
        "0 memory.available=150
         20 memory.available=150
         30 memory.available=150
         40 memory.available=99",
        expect![[r#"
            0 ["MemoryPressure"] []
            20 ["MemoryPressure"] []
            30 ["MemoryPressure"] ["soft memory.available"]
            40 ["MemoryPressure"] ["hard memory.available", "soft memory.available"]"#]],
    );
}

#[test]
fn a_soft_threshold_that_was_left_waits_again() {
    check(
        "0 memory.available=150
         20 memory.available=250
         35 memory.available=150
         65 memory.available=150",
        expect![[r#"
            0 ["MemoryPressure"] []
            20 ["MemoryPressure"] []
            35 ["MemoryPressure"] []
            65 ["MemoryPressure"] ["soft memory.available"]"#]],
    );
}

#[test]
fn what_was_met_is_left_by_the_minimum_and_the_condition_after_its_period() {
    check(
        "0 nodefs.available=99
         10 nodefs.available=120
         20 nodefs.available=150
         69 nodefs.available=150
         70 nodefs.available=150",
        expect![[r#"
            0 ["DiskPressure"] ["hard nodefs.available"]
            10 ["DiskPressure"] ["hard nodefs.available"]
            20 ["DiskPressure"] []
            69 ["DiskPressure"] []
            70 [] []"#]],
    );
}

#[test]
fn memory_comes_first_and_what_cannot_be_read_is_no_distress() {
    check(
        "0 nodefs.available=1 memory.available=1 pid.available=1
         10",
        expect![[r#"
            0 ["DiskPressure", "MemoryPressure"] ["hard memory.available", "hard nodefs.available"]
            10 ["DiskPressure", "MemoryPressure"] []"#]],
    );
}
