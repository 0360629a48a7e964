use super::super::steps::{ListId, Step, Target};
use super::arrange;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn target(number: u8) -> Target {
    Target {
        address: [10, 0, 0, number].into(),
        port: 80,
    }
}

fn targets(numbers: &[u8]) -> Vec<Target> {
    numbers.iter().copied().map(target).collect()
}

/// The kernel's map, as strict as the kernel.
fn apply(map: &mut BTreeMap<u32, Target>, steps: &[Step]) {
    for step in steps {
        match step {
            Step::AddTarget { place, target, .. } => {
                assert_eq!(map.insert(*place, *target), None, "{step:?}");
            }
            Step::DeleteTarget { place, target, .. } => {
                assert_eq!(map.remove(place), Some(*target), "{step:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

fn check(now: &[u8], wanted: &[u8], expected: &[u8], steps: usize) {
    let (places, done) = arrange(ListId(1), &targets(now), &targets(wanted));
    assert_eq!(places, targets(expected));
    assert_eq!(done.len(), steps, "{done:?}");
}

#[test]
fn few_steps_lead_to_few_changes() {
    check(&[], &[1, 2], &[1, 2], 2);
    check(&[1, 2, 3], &[1, 2, 3], &[1, 2, 3], 0);
    check(&[1, 2, 3], &[1, 2, 3, 4], &[1, 2, 3, 4], 1);
    // The last one moves.
    check(&[1, 2, 3, 4], &[2, 3, 4], &[4, 2, 3], 3);
    check(&[1, 2, 3, 4], &[1, 2, 3], &[1, 2, 3], 1);
    // One comes where another went.
    check(&[1, 2, 3, 4], &[1, 3, 4, 5], &[1, 5, 3, 4], 2);
    check(&[1, 2, 3, 4], &[], &[], 4);
    check(&[1, 2, 3, 4], &[5], &[5], 5);
    check(&[1, 2, 3, 4, 5], &[5, 3], &[3, 5], 7);
}

proptest! {
    #[test]
    fn the_kernel_follows_any_way(ways in prop::collection::vec(prop::collection::btree_set(0u8..20, 0..20), 1..12)) {
        let mut map = BTreeMap::new();
        let mut now = Vec::new();
        for wanted in ways {
            let wanted: Vec<_> = wanted.into_iter().map(target).collect();
            let before: BTreeSet<_> = now.iter().copied().collect();
            let (places, steps) = arrange(ListId(1), &now, &wanted);
            apply(&mut map, &steps);
            let changed = before.symmetric_difference(&wanted.iter().copied().collect()).count();
            prop_assert!(steps.len() <= 3 * changed, "{} steps for {changed} changes", steps.len());
            let held: Vec<_> = map.values().copied().collect();
            prop_assert_eq!(&held, &places);
            prop_assert!(map.keys().copied().eq(0..map.len() as u32));
            prop_assert_eq!(held.iter().copied().collect::<BTreeSet<_>>(), wanted.into_iter().collect());
            now = places;
        }
    }
}
