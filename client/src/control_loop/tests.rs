//! Time is paused: waits pass at once and exactly.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::fake_api::eventually;

#[derive(Debug, thiserror::Error)]
#[error("not yet")]
struct NotYet;

/// How often a key was looked at, and what comes of each look.
struct Told<F> {
    count: AtomicU32,
    outcome: F,
}

/// Runs one key through a loop until it has been reconciled `times` times.
async fn run_until(
    name: &'static str,
    times: u32,
    outcome: impl Fn(u32) -> Result<Requeue, NotYet> + Send + Sync + 'static,
) -> Duration {
    let queue = WorkQueue::new();
    let (count, shutdown) = (AtomicU32::new(0), CancellationToken::new());
    let told = Arc::new(Told { count, outcome });
    let reconcile = with(Arc::clone(&told), |told, _: &String| {
        let outcome = (told.outcome)(told.count.fetch_add(1, Ordering::SeqCst));
        Box::pin(async { outcome })
    });
    let start = tokio::time::Instant::now();
    queue.add("key".to_owned());
    let running = tokio::spawn(run(name, queue, 2, reconcile, shutdown.clone()));
    eventually("reconciled", || told.count.load(Ordering::SeqCst) >= times).await;
    let took = start.elapsed();
    shutdown.cancel();
    running.await.expect("the loop ends by itself");
    took
}

fn stats_of(name: &str) -> LoopStats {
    stats()
        .into_iter()
        .find(|one| one.name == name)
        .expect("the loop was registered")
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again() {
    run_until("failing", 3, |run| {
        if run < 2 {
            Err(NotYet)
        } else {
            Ok(Requeue::Never)
        }
    })
    .await;
    let stats = stats_of("failing");
    assert_eq!((stats.runs, stats.errors, stats.panics), (3, 2, 0));
    assert_eq!(stats.queue.retries, 2);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_tried_again() {
    run_until("panicking", 2, |run| {
        assert_ne!(run, 0, "the first time");
        Ok(Requeue::Never)
    })
    .await;
    let stats = stats_of("panicking");
    assert_eq!((stats.runs, stats.errors, stats.panics), (2, 0, 1));
    let text = prometheus_text();
    assert!(
        text.contains("coracle_loop_panics_total{name=\"panicking\"} 1\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_comes_again_when_asked_to() {
    let minute = Duration::from_secs(60);
    let took = run_until("periodic", 3, move |_| Ok(Requeue::After(minute))).await;
    assert_eq!(took.as_secs(), 120);
}

#[test]
fn a_chain_says_each_cause_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot create pod")]
    struct Outer(#[source] NotYet);
    assert_eq!(
        Chain(&Outer(NotYet)).to_string(),
        "cannot create pod: not yet"
    );
}

#[test]
fn a_refused_patch_is_said_in_the_servers_words() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot write the node a")]
    struct Outer(#[source] PatchError);
    let status = kube::core::Status::failure("the object has been modified", "Conflict");
    let refused = kube::Error::Api(Box::new(status.with_code(409)));
    let error = Outer(PatchError::Api(refused));
    assert!(is_expected(&error));
    let told = "cannot write the node a: the object has been modified";
    assert_eq!(Chain(&error).to_string(), told);
}
