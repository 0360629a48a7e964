//! Flags in, thresholds out.

use super::*;

fn words(hard: &[(&str, &str)], soft: &[(&str, &str)], grace: &[(&str, &str)]) -> Words {
    Words {
        hard: pairs(hard),
        soft: pairs(soft),
        soft_grace: pairs(grace),
        minimum_reclaim: BTreeMap::new(),
    }
}

#[test]
fn defaults_are_in_the_order_of_signals_and_count_the_pods_bound() {
    let settings = Settings::default();
    let names: Vec<_> = settings
        .thresholds
        .iter()
        .map(|threshold| threshold.signal.name())
        .collect();
    assert_eq!(
        names,
        [
            "memory.available",
            "allocatableMemory.available",
            "nodefs.available",
            "nodefs.inodesFree",
            "imagefs.available",
            "imagefs.inodesFree",
            "pid.available",
        ]
    );
    let capacity = Quantity::from_units(1 << 30, Format::BinarySi);
    let of = |at: usize| settings.thresholds[at].value.of(capacity).to_string();
    assert_eq!(of(0), "100Mi");
    assert_eq!(of(2), "53687092");
}

#[test]
fn soft_ones_have_a_grace_and_both_a_reclaim() {
    let given = Words {
        minimum_reclaim: pairs(&[("memory.available", "10%")]),
        ..words(
            &[("memory.available", "100Mi"), ("nodefs.available", "0%")],
            &[("memory.available", "200Mi")],
            &[("memory.available", "1m30s")],
        )
    };
    let found = thresholds(&given).unwrap();
    assert_eq!(found.len(), 3, "0% is none: {found:?}");
    let soft = found.iter().find(|found| !found.is_hard()).unwrap();
    assert_eq!(soft.grace, Duration::from_secs(90));
    assert!(found.iter().all(|found| found.min_reclaim.is_some()));
}

#[test]
fn bad_ones_say_what_is_right() {
    let said = |words: &Words| {
        let bad = thresholds(words).unwrap_err();
        format!("--{} {:?}: {}", bad.flag, bad.value, bad.expected)
    };
    expect_test::expect![[r#"--eviction-hard "disk.available<1Gi": the signal must be one of memory.available, allocatableMemory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available"#]]
        .assert_eq(&said(&words(&[("disk.available", "1Gi")], &[], &[])));
    expect_test::expect![[r#"--eviction-soft-grace-period "": must have a period for memory.available, which is in --eviction-soft"#]]
        .assert_eq(&said(&words(&[], &[("memory.available", "1Gi")], &[])));
    for bad in ["-1Gi", "0", "101%", "-1%", "much", "", "%", "NaN%"] {
        let said = said(&words(&[("memory.available", bad)], &[], &[]));
        assert!(said.contains("must be a quantity above 0"), "{bad}: {said}");
    }
    for bad in ["-1s", "1", ""] {
        let soft = [("memory.available", "1Gi")];
        let said = said(&words(&[], &soft, &[("memory.available", bad)]));
        assert!(said.contains("must be a duration"), "{bad}: {said}");
    }
}
