//! What becomes of a sandbox whose making fails.

use super::super::context::testing::bare;
use super::super::state::Retry;
use super::super::testing::Scene as PodScene;
use super::super::worker::Update;
use super::{Context, prepare};
use crate::grpc::Code;
use crate::grpc::testing::Reply;
use crate::runtime::cri::testing::{Scene, method, one_sandbox};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_sandbox_is_found_that_a_runtime_made_without_an_answer() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let scene = Scene::new();
    let _server = scene.serve(|call| match method(call) {
        "RunPodSandbox" => Some(Reply::status(Code::UNAVAILABLE, "error reading")),
        "StopPodSandbox" => Some(Reply::of(&[b""])),
        _ => one_sandbox(call, "made", "u1", 0),
    });
    let context = Arc::new(Context {
        runtime: Arc::new(scene.open().await.unwrap()),
        ..bare(scratch.path(), &stop)
    });
    let pod = Arc::new(PodScene::read("pod main=a hostnet").pod);
    let left = async |attempt| {
        let tried = prepare(&context, &pod, attempt, None, "Burstable", &stop).await;
        match tried {
            Update::PrepareFailed(Retry::BackedOff, sandbox) => sandbox.map(|one| one.id.0),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(left(0).await.as_deref(), Some("made"));
    // The one that there is was of a try before.
    assert_eq!(left(1).await, None);
    stop.cancel();
}
