//! Time is paused: waits pass at once and exactly.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::clock::Clock;
use crate::fake_api::{FakeApi, eventually};
use crate::informer::Informers;

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
    })
    .telling_by_itself();
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
    let families = families();
    let panics = families
        .iter()
        .find(|family| family.name == "coracle_loop_panics_total");
    let panics = &panics.expect("the family").samples;
    assert!(panics.contains(&("panicking", 1)), "{panics:?}");
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

#[derive(Debug, thiserror::Error)]
#[error("its disk is made of paper")]
struct Poisoned;

/// One key fails for ever beside one that does not.
#[tokio::test(start_paused = true)]
async fn what_fails_again_and_again_is_told_and_keeps_nobody() {
    let (api, shutdown) = (FakeApi::new(), CancellationToken::new());
    for name in ["poison", "sound"] {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        api.put(&path, serde_json::json!({}));
    }
    let informers = Informers::new(api.client(), shutdown.clone());
    let objects: Informer<ConfigMap> = informers.get();
    let recorder = Recorder::with_clock(api.client(), "tester", "", Clock::system());
    let queue = WorkQueue::new();
    let added = queue.clone();
    objects.on_change(move |change| added.add(crate::key_of(&**change.object())));
    let looks = Arc::new(AtomicU32::new(0));
    let reconcile = with(Arc::clone(&looks), |looks, key: &ObjectKey| {
        let is_poison = key.name == "poison";
        Box::pin(async move {
            if is_poison {
                return Err(Poisoned);
            }
            looks.fetch_add(1, Ordering::SeqCst);
            Ok(Requeue::After(Duration::from_secs(1)))
        })
    });
    let reconcile = reconcile.telling(objects, recorder);
    let running = tokio::spawn(run("poisoned", queue, 1, reconcile, shutdown.clone()));
    let told = || api.objects("/api/v1/events");
    eventually("it is told", || !told().is_empty()).await;
    let seen = looks.load(Ordering::SeqCst);
    eventually("the other goes on", || {
        looks.load(Ordering::SeqCst) > seen + 60
    })
    .await;
    let stats = stats_of("poisoned");
    assert_eq!(stats.queue.failing, 1);
    // 5 ms, doubled each time: 14 tries take more than a minute.
    assert!((10..16).contains(&stats.errors), "{stats:?}");
    let told = told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["reason"], "FailedReconcile");
    assert_eq!(told[0]["type"], "Warning");
    assert_eq!(told[0]["message"], "its disk is made of paper");
    assert_eq!(told[0]["involvedObject"]["name"], "poison");
    assert_eq!(told[0]["involvedObject"]["kind"], "ConfigMap");
    shutdown.cancel();
    running.await.expect("the loop ends by itself");
}
