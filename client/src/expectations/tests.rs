//! Time is paused, so that expiry is exact.

use super::*;

fn key() -> ObjectKey {
    ObjectKey::new("default", "web")
}

#[tokio::test(start_paused = true)]
async fn creations_are_waited_for_one_by_one() {
    let expectations = Expectations::new();
    assert!(
        expectations.satisfied(&key()),
        "nothing is expected at first"
    );
    expectations.expect_creations(&key(), 2);
    expectations.creation_observed(&key());
    assert!(!expectations.satisfied(&key()));
    expectations.creation_observed(&key());
    assert!(expectations.satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_seen_twice_counts_once() {
    let expectations = Expectations::new();
    expectations.expect_deletions(&key(), ["a".to_owned(), "b".to_owned()]);
    expectations.deletion_observed(&key(), "a");
    expectations.deletion_observed(&key(), "a");
    expectations.deletion_observed(&key(), "stranger");
    assert!(!expectations.satisfied(&key()));
    expectations.deletion_observed(&key(), "b");
    assert!(expectations.satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn a_lost_event_is_waited_for_five_minutes() {
    let expectations = Expectations::new();
    expectations.expect_creations(&key(), 1);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert!(!expectations.satisfied(&key()));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(expectations.satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_expects_nothing() {
    let expectations = Expectations::new();
    expectations.expect_creations(&key(), 1);
    expectations.forget(&key());
    assert!(expectations.satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn a_pass_may_expect_both() {
    let expectations = Expectations::new();
    expectations.expect(&key(), 1, HashSet::from(["a".to_owned()]));
    expectations.creation_observed(&key());
    assert!(!expectations.satisfied(&key()));
    expectations.deletion_observed(&key(), "a");
    assert!(expectations.satisfied(&key()));
}
