//! When those who wait for a pod's end are told.

use super::super::super::context::testing::bare;
use super::super::super::evict::Eviction;
use super::super::super::plan::plan;
use super::super::super::state::Observed;
use super::super::{Desired, Worker};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Longer than what is tried again takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn eviction() -> Arc<Eviction> {
    Arc::new(Eviction {
        reason: "Evicted".to_owned(),
        message: String::new(),
        grace_seconds: None,
        disruption: None,
        done: CancellationToken::new(),
    })
}

/// An evicted pod, and a file that keeps its volumes from being taken down.
/// What is wanted of it is said by the sender.
fn worker(data_dir: &Path, stop: &CancellationToken) -> (Worker, PathBuf, watch::Sender<Desired>) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "u" },
        "spec": { "containers": [] },
    }))
    .unwrap();
    let context = Arc::new(bare(data_dir, stop));
    let directory = context.pod_directory(&pod);
    fs::create_dir_all(&directory).unwrap();
    let obstacle = directory.join("claims.json");
    fs::write(&obstacle, "{").unwrap();
    let desired = watch::Sender::new(Desired::of(Arc::new(pod)));
    let (receiver, wake) = (desired.subscribe(), Arc::new(Notify::new()));
    let mut worker = Worker::new(
        context,
        receiver,
        wake,
        stop.clone(),
        Observed::default(),
        None,
    );
    worker.memory.eviction = Some(eviction());
    (worker, obstacle, desired)
}

fn is_done(worker: &Worker) -> bool {
    worker.memory.eviction.as_ref().unwrap().done.is_cancelled()
}

#[tokio::test]
async fn an_eviction_is_done_when_its_volumes_are_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let (mut worker, obstacle, _desired) = worker(scratch.path(), &stop);
    worker.settle();
    // Who settles hears what else is said.
    worker.wake.notify_one();
    assert!(worker.wait(None).await);
    worker.settle();
    assert!(!is_done(&worker), "its volumes are there");
    fs::remove_file(obstacle).unwrap();
    let settled = tokio::time::timeout(PATIENCE, async {
        while !worker.memory.is_settled {
            assert!(worker.wait(None).await);
        }
    });
    settled.await.unwrap();
    worker.settle();
    assert!(is_done(&worker));
    worker.memory.eviction = Some(eviction());
    worker.settle();
    assert!(is_done(&worker), "there was nothing left to be done");
    stop.cancel();
}

#[tokio::test]
async fn an_eviction_waits_for_no_server() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let (mut worker, obstacle, _desired) = worker(scratch.path(), &stop);
    fs::remove_file(obstacle).unwrap();
    let done = worker.memory.eviction.as_ref().unwrap().done.clone();
    let plan = plan(&worker.view());
    tokio::select! {
        () = worker.finish(&plan) => panic!("there is no server to be told"),
        () = done.cancelled() => {}
        () = tokio::time::sleep(PATIENCE) => panic!("it is not done"),
    }
    stop.cancel();
}
