//! Time is paused: waits pass at once and exactly.

use super::*;

async fn take(queue: &WorkQueue<&'static str>) -> &'static str {
    tokio::time::timeout(Duration::from_secs(3600), queue.next())
        .await
        .expect("a key in an hour")
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_once_however_often_it_is_added() {
    let queue = WorkQueue::new();
    for _ in 0..3 {
        queue.add("a");
        queue.add("b");
    }
    assert_eq!(queue.len(), 2);
    assert_eq!((take(&queue).await, take(&queue).await), ("a", "b"));
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_worked_on_comes_again_after_done() {
    let queue = WorkQueue::new();
    queue.add("a");
    let held = take(&queue).await;
    queue.add("a");
    assert!(queue.is_empty(), "never with two workers at once");
    queue.done(&held);
    assert_eq!(take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_due_times_wins() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    queue.add_after("late", Duration::from_secs(9));
    queue.add_after("a", Duration::from_secs(5));
    queue.add_after("a", Duration::from_secs(2));
    queue.add_after("a", Duration::from_secs(7));
    assert_eq!(take(&queue).await, "a");
    assert_eq!(start.elapsed().as_secs(), 2);
    queue.done(&"a");
    assert_eq!(take(&queue).await, "late");
    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_by_doubling_until_forgotten() {
    let queue = WorkQueue::new();
    let mut waits = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        queue.add_backoff("a");
        queue.done(&take(&queue).await);
        waits.push(start.elapsed().as_millis());
    }
    assert_eq!(waits[..4], [5, 10, 20, 40]);
    assert_eq!(waits[19], 1_000_000);
    queue.forget(&"a");
    assert_eq!(queue.failures(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_takes_over_a_due_time_from_a_busy_one() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    let idle = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    // This worker takes what is ready and then stays busy past the due time.
    queue.add_after("due", Duration::from_secs(3));
    queue.add("ready");
    let mut got = vec![take(&queue).await, idle.await.expect("the worker runs on")];
    got.sort_unstable();
    assert_eq!(got, ["due", "ready"]);
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_nothing() {
    let queue = WorkQueue::new();
    queue.add_after("a", Duration::from_secs(5));
    let soon = Duration::from_secs(1);
    assert!(tokio::time::timeout(soon, queue.next()).await.is_err());
    assert_eq!(take(&queue).await, "a");
    let expected = Counters {
        adds: 1,
        retries: 0,
        depth: 0,
        delayed: 0,
        processing: 1,
        failing: 0,
    };
    assert_eq!(queue.counters(), expected);
}
