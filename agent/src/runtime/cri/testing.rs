//! A runtime in this process that says what a test makes it say.

use super::messages::*;
use super::sandboxes::UID_LABEL;
use super::{Config, CriRuntime};
use crate::grpc::testing::{Call, Reply, Server, serve};
use crate::grpc::{Code, Endpoint};
use crate::runtime::RuntimeError;
use std::collections::HashMap;
use std::time::Duration;

pub struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub fn serve(&self, answer: impl Fn(&Call) -> Option<Reply> + Send + Sync + 'static) -> Server {
        let path = self.directory.path().join("s");
        serve(&path, move |call| {
            answer(&call).unwrap_or_else(|| usual(&call))
        })
    }

    pub async fn open(&self) -> Result<CriRuntime, RuntimeError> {
        let endpoint = Endpoint::Unix(self.directory.path().join("s"));
        let config = Config {
            data_dir: self.directory.path().to_owned(),
            runtime: endpoint.clone(),
            images: endpoint,
            patience: Duration::ZERO,
        };
        CriRuntime::open(config).await
    }
}

pub fn method(call: &Call) -> &str {
    call.path.rsplit('/').next().unwrap()
}

/// The answers that a test has nothing to say about.
fn usual(call: &Call) -> Reply {
    match method(call) {
        "Version" => Reply::message(&VersionResponse {
            runtime_name: "boatd".into(),
            runtime_version: "1.2".into(),
            runtime_api_version: "v1".into(),
        }),
        "Status" => Reply::message(&StatusResponse::default()),
        "ListImages" => Reply::message(&ListImagesResponse::default()),
        "ListPodSandbox" => Reply::message(&ListPodSandboxResponse::default()),
        "ListContainers" => Reply::message(&ListContainersResponse::default()),
        _ => Reply::status(Code::UNIMPLEMENTED, "unknown method"),
    }
}

pub fn labels(uid: &str) -> HashMap<String, String> {
    [(UID_LABEL.to_owned(), uid.to_owned())].into()
}

/// What a runtime says that has this one sandbox, on the host's network.
pub fn one_sandbox(call: &Call, id: &str, uid: &str, attempt: u32) -> Option<Reply> {
    let metadata = PodSandboxMetadata {
        uid: uid.into(),
        attempt,
        ..PodSandboxMetadata::default()
    };
    let item = PodSandbox {
        id: id.into(),
        metadata: Some(metadata),
        state: SANDBOX_READY,
        labels: labels(uid),
        ..PodSandbox::default()
    };
    match method(call) {
        "ListPodSandbox" => Some(Reply::message(&ListPodSandboxResponse {
            items: vec![item],
        })),
        "PodSandboxStatus" => Some(Reply::message(&PodSandboxStatusResponse {
            status: Some(item.into()),
            ..PodSandboxStatusResponse::default()
        })),
        _ => None,
    }
}
