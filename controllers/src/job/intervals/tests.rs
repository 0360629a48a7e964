use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn reads_what_it_writes_and_what_others_wrote() {
    let cases = [
        ("", ""),
        ("0", "0"),
        ("0,1", "0,1"),
        ("0-1", "0,1"),
        ("0,1,2", "0-2"),
        ("0-2,4,6-8", "0-2,4,6-8"),
        ("0-2,3,5", "0-3,5"),
        ("x,2,3-y,4", "2,4"),
        ("3-20", "3-9"),
        ("3,10,11", "3"),
    ];
    for (text, expected) in cases {
        assert_eq!(Intervals::parse(text, 10).to_string(), expected, "{text}");
    }
}

#[test]
fn overlaps_are_counted() {
    let cases = [
        ("0-4", "3-9", 2),
        ("0,2,4", "0-4", 3),
        ("0,1", "2,3", 0),
        ("1-2,5-6", "2-5", 2),
        ("", "1", 0),
    ];
    for (one, other, expected) in cases {
        let (a, b) = (Intervals::parse(one, 10), Intervals::parse(other, 10));
        assert_eq!(
            (a.common(&b), b.common(&a)),
            (expected, expected),
            "{one} {other}"
        );
    }
}

proptest! {
    /// The same as a plain set of numbers does.
    #[test]
    fn behaves_as_a_set(
        old in prop::collection::btree_set(0..40_i32, 0..30),
        new in prop::collection::btree_set(0..40_i32, 0..30),
        count in 0..12_usize,
    ) {
        let all: BTreeSet<i32> = old.union(&new).copied().collect();
        let intervals = Intervals::default().with(old.clone()).with(new.clone());
        prop_assert_eq!(intervals.count() as usize, all.len());
        for index in 0..42 {
            prop_assert_eq!(intervals.contains(index), all.contains(&index));
        }
        let common = Intervals::default().with(old.clone());
        let common = common.common(&Intervals::default().with(new.clone()));
        prop_assert_eq!(common as usize, old.intersection(&new).count());
        let missing: Vec<i32> = (0..40).filter(|index| !all.contains(index)).take(count).collect();
        prop_assert_eq!(intervals.missing(40, count), missing);
        prop_assert_eq!(Intervals::parse(&intervals.to_string(), 40), intervals);
    }
}
