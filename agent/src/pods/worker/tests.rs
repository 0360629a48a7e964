//! What the worker makes of what its tasks tell it.

use super::super::context::Context;
use super::super::context::testing::bare;
use super::super::plan::{Action, plan};
use super::super::state::{Observed, Retry};
use super::super::testing::Scene;
use super::{Desired, Update, Worker};
use crate::families::Families;
use crate::grpc::Code;
use crate::grpc::testing::Reply;
use crate::runtime::SandboxStatus;
use crate::runtime::cri::testing::{Scene as RuntimeScene, method};
use k8s_openapi::api::core::v1::Pod;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

fn worker(data_dir: &Path, stop: &CancellationToken, pod: Pod) -> Worker {
    on(bare(data_dir, stop), stop, pod)
}

fn on(context: Context, stop: &CancellationToken, pod: Pod) -> Worker {
    let context = Arc::new(context);
    let desired = watch::Sender::new(Desired::of(Arc::new(pod)));
    let (receiver, wake) = (desired.subscribe(), Arc::new(Notify::new()));
    let observed = Observed::default();
    Worker::new(context, receiver, wake, stop.clone(), observed, None)
}

fn sandbox(text: &str) -> SandboxStatus {
    Scene::read(text).observed.sandboxes.remove(0)
}

fn due(worker: &mut Worker) -> Vec<Action> {
    worker.memory.prepare_after = None;
    plan(&worker.view()).actions
}

#[tokio::test]
async fn a_sandbox_whose_network_failed_is_used_again_and_taken_down() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let pod = Scene::read("pod main=a").pod;
    let mut worker = worker(scratch.path(), &stop, pod);
    worker.memory.is_preparing = true;
    worker.note(Update::PrepareFailed(Retry::BackedOff, None));
    let prepare = |attempt, sandbox| vec![Action::Prepare { attempt, sandbox }];
    assert_eq!(due(&mut worker), prepare(0, None), "there is none");

    let first = sandbox("sandbox 0 ready");
    for _ in 0..3 {
        worker.memory.is_preparing = true;
        let made = Some(Box::new(first.clone()));
        worker.note(Update::PrepareFailed(Retry::BackedOff, made));
        assert!(worker.memory.prepare_after.is_some());
        assert_eq!(due(&mut worker), prepare(0, Some(first.id.clone())));
        assert_eq!(worker.observed.sandboxes.len(), 1);
    }

    // It had a network, and is followed by one that has none: those addresses do not count.
    let ips: Families<IpAddr> = IpAddr::from([10, 42, 0, 5]).into();
    worker.note(Update::Prepared(Box::new(sandbox("sandbox 0 dead")), ips));
    assert_eq!(due(&mut worker), prepare(1, None));
    let second = sandbox("sandbox 1 ready");
    let made = Some(Box::new(second.clone()));
    worker.note(Update::PrepareFailed(Retry::BackedOff, made));
    assert_eq!(due(&mut worker), prepare(1, Some(second.id.clone())));

    worker.pod = Arc::new(Scene::read("pod main=a deleting=20").pod);
    assert_eq!(due(&mut worker), [Action::StopSandbox(second.id)]);
    stop.cancel();
}

#[tokio::test]
async fn a_sandbox_that_somebody_removed_is_followed_by_another() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let scene = RuntimeScene::new();
    let _server = scene.serve(|call| {
        (method(call) == "PodSandboxStatus").then(|| Reply::status(Code::NOT_FOUND, "not found"))
    });
    let context = Context {
        runtime: Arc::new(scene.open().await.unwrap()),
        ..bare(scratch.path(), &stop)
    };
    let mut worker = on(context, &stop, Scene::read("pod main=a").pod);
    // Its network was not made yet, or was.
    for ips in [Families::default(), IpAddr::from([10, 42, 0, 5]).into()] {
        worker.observed.sandboxes = vec![sandbox("sandbox 0 ready")];
        worker.memory.ips = ips;
        worker.refresh_sandboxes().await;
        let next = Action::Prepare {
            attempt: 1,
            sandbox: None,
        };
        assert_eq!(due(&mut worker), [next]);
        assert_eq!(worker.observed.sandboxes.len(), 1, "it may have an address");
    }
    stop.cancel();
}
