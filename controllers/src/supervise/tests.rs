//! Time is paused; the loop under test panics on purpose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::informer::Informers;
use kube::client::Body;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Config, LOOPS};

static RUNS: AtomicU32 = AtomicU32::new(0);

fn panics_twice(context: Context) -> futures::future::BoxFuture<'static, ()> {
    async move {
        assert!(RUNS.fetch_add(1, Ordering::SeqCst) >= 2, "on purpose");
        context.shutdown.cancelled().await;
    }
    .boxed()
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_started_again() {
    // A server that never answers.
    let silence = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::io::Error>>()
    });
    let nobody = Client::new(silence, "default");
    let shutdown = CancellationToken::new();
    let context = Context {
        informers: Informers::new(nobody.clone(), shutdown.clone()),
        client: nobody,
        config: Arc::new(Config::default()),
        clock: Clock::system(),
        shutdown: shutdown.clone(),
    };
    let start = tokio::time::Instant::now();
    let one = Loop {
        name: "test",
        identity: "test",
        run: panics_twice,
    };
    let running = tokio::spawn(keep_running(one, context));
    while RUNS.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(start.elapsed().as_secs(), 3, "after one second, then two");
    shutdown.cancel();
    running.await.unwrap();
}

#[test]
fn every_loop_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = LOOPS.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), LOOPS.len());
}
