//! Who gets what when.

use super::{Ask, Ledger};
use crate::pods::sizes::Amounts;
use jiff::Timestamp;
use std::sync::Arc;
use tokio::sync::Notify;

fn cpu(cpu_milli: i64) -> Amounts {
    Amounts {
        cpu_milli,
        memory_bytes: 0,
    }
}

fn ask(uid: &str, wanted: i64, priority: i32, since: i64) -> Ask {
    Ask {
        uid: uid.to_owned(),
        wanted: cpu(wanted),
        priority,
        is_guaranteed: false,
        since: Timestamp::from_second(since).unwrap(),
        wake: Arc::new(Notify::new()),
    }
}

/// 2 cpus, of which a, b and c have 500m each.
fn ledger() -> Ledger {
    let ledger = Ledger::new(Amounts {
        cpu_milli: 2000,
        memory_bytes: 1 << 30,
    });
    for uid in ["a", "b", "c"] {
        ledger.hold(uid, cpu(500));
    }
    ledger
}

#[test]
fn what_fits_is_given_and_counts() {
    let ledger = ledger();
    assert_eq!(ledger.ask(ask("a", 1000, 0, 1)), Ok(()));
    assert_eq!(
        ledger.ask(ask("b", 501, 0, 1)).unwrap_err(),
        "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000"
    );
    // To ask again for what it has is no wait.
    assert_eq!(ledger.ask(ask("a", 1000, 0, 1)), Ok(()));
}

#[tokio::test]
async fn who_waits_is_served_by_priority_and_then_by_time() {
    let ledger = ledger();
    ledger.hold("d", cpu(500));
    let (early, late, high) = (
        ask("a", 800, 0, 1),
        ask("b", 800, 0, 2),
        ask("c", 800, 5, 3),
    );
    let wakes = [&early, &late, &high].map(|ask| ask.wake.clone());
    for one in [early, late, high] {
        ledger.ask(one).unwrap_err();
    }
    let is_woken = async |wake: &Notify| {
        tokio::select! { biased; () = wake.notified() => true, () = std::future::ready(()) => false }
    };
    ledger.release("d"); // 500m more: one of them.
    assert!(!is_woken(&wakes[0]).await && !is_woken(&wakes[1]).await);
    assert!(is_woken(&wakes[2]).await);
    // Less than it has: given at once, and what it gives back goes on.
    assert_eq!(ledger.ask(ask("c", 400, 0, 9)), Ok(()));
    assert!(is_woken(&wakes[0]).await && is_woken(&wakes[1]).await);
}

#[test]
fn who_went_or_wants_no_more_does_not_wait() {
    let ledger = ledger();
    ledger.ask(ask("a", 1900, 9, 1)).unwrap_err();
    ledger.hold("a", cpu(500));
    ledger.ask(ask("b", 1900, 9, 1)).unwrap_err();
    ledger.release("b");
    assert_eq!(ledger.ask(ask("c", 1500, 0, 1)), Ok(()));
}

#[test]
fn what_is_given_back_by_holding_less_goes_to_who_waits() {
    let ledger = ledger();
    assert_eq!(ledger.ask(ask("a", 1000, 0, 1)), Ok(()));
    ledger.ask(ask("b", 1000, 0, 2)).unwrap_err();
    ledger.hold("a", cpu(500));
    let full = ledger.ask(ask("c", 501, 0, 3)).unwrap_err();
    assert!(full.ends_with("used: 1500, capacity: 2000"), "{full}");
}
