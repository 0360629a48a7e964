//! What is due when, on a clock that stands still until someone waits.

use super::*;
use tokio::time::timeout;

/// Longer than anything waits here.
const EVER: Duration = Duration::from_secs(3600);

async fn next(pace: &Pace) -> Option<(Due, Duration)> {
    let begun = Instant::now();
    let due = timeout(EVER, pace.due()).await.ok()?;
    Some((due, begun.elapsed()))
}

fn about(found: Option<(Due, Duration)>, due: Due, after: Duration) {
    let (found, took) = found.expect("something is due");
    assert_eq!(found, due);
    let slack = Duration::from_millis(2);
    assert!(took >= after && took <= after + slack, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sweep_is_not_put_off_by_what_is_written_before_it() {
    let mut pace = Pace::default();
    assert_eq!(next(&pace).await, None);
    let begun = Instant::now();
    pace.written(begun, true);
    for _ in 0..5 {
        tokio::time::advance(SWEEP_AFTER / 10).await;
        pace.written(Instant::now(), true);
    }
    about(next(&pace).await, Due::Sweep, SWEEP_AFTER / 2);
    // What is left then is swept later.
    pace.swept(Instant::now(), true);
    about(next(&pace).await, Due::Sweep, SWEEP_AFTER);
    pace.swept(Instant::now(), false);
    assert_eq!(next(&pace).await, None);
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_all_is_written_later_each_time() {
    let mut pace = Pace::default();
    assert!(pace.is_whole());
    pace.written(Instant::now(), true);
    assert!(!pace.is_whole());
    let mut expected = RETRY_MIN;
    for _ in 0..8 {
        assert_eq!(pace.failed(Instant::now()), expected);
        assert!(pace.is_whole() && !pace.may_write(Instant::now()));
        // No sweep: what is stale is found out anew.
        about(next(&pace).await, Due::Retry, expected);
        assert!(pace.may_write(Instant::now()));
        expected = (expected * 2).min(RETRY_MAX);
    }
    pace.written(Instant::now(), false);
    assert_eq!(next(&pace).await, None);
    assert_eq!(pace.failed(Instant::now()), RETRY_MIN);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_due_while_there_is_nothing_to_write() {
    let mut pace = Pace::default();
    pace.failed(Instant::now());
    about(next(&pace).await, Due::Retry, RETRY_MIN);
    pace.idle();
    assert_eq!(next(&pace).await, None);
    assert!(pace.is_whole() && pace.may_write(Instant::now()));
}
