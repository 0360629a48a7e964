use super::Suspects;
use crate::network::view::Key;
use std::time::Duration;

fn looked_at(suspects: &mut Suspects) -> Vec<Key> {
    suspects.look().iter().cloned().collect()
}

#[test]
fn who_was_looked_at_in_vain_is_looked_at_again() {
    let mut suspects = Suspects::new();
    let (a, b): (Key, Key) = ("default/a".into(), "default/b".into());
    suspects.add(a.clone());
    assert_eq!(suspects.look().first(), Some(&a));
    suspects.add(b.clone());
    suspects.looked(false);
    assert_eq!(looked_at(&mut suspects), [a, b.clone()]);
    suspects.add(b.clone());
    suspects.looked(true);
    // It changed while it was looked at.
    assert_eq!(looked_at(&mut suspects), [b]);
    suspects.looked(true);
    assert!(looked_at(&mut suspects).is_empty());
}

#[test]
fn looks_that_fail_come_more_and_more_seldom() {
    let mut suspects = Suspects::new();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        pauses.push(suspects.retry().as_secs());
        suspects.look();
        suspects.looked(false);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    suspects.looked(true);
    assert_eq!(suspects.retry(), Duration::from_secs(1));
}
