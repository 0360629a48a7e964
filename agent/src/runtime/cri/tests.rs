//! Against a runtime of the test's own.

use super::messages::{self as cri, *};
use super::testing::{Scene, labels};
use crate::grpc::Code;
use crate::grpc::testing::{Call, Reply};
use crate::runtime::{
    ContainerId, ContainerState, EventKind, Runtime, RuntimeError, SandboxConfig, SandboxId,
    SandboxState,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

#[tokio::test]
async fn a_runtime_says_its_name_and_how_it_is() {
    let scene = Scene::new();
    let _server = scene.serve(|call| {
        let condition = |kind: &str, status| RuntimeCondition {
            kind: kind.into(),
            status,
            reason: "NetworkPluginNotReady".into(),
            message: "cni plugin not initialized".into(),
        };
        let conditions = vec![
            condition("RuntimeReady", true),
            condition("NetworkReady", false),
        ];
        call.path.ends_with("/Status").then(|| {
            Reply::message(&StatusResponse {
                status: Some(RuntimeStatus { conditions }),
                ..StatusResponse::default()
            })
        })
    });
    let runtime = scene.open().await.unwrap();
    assert_eq!(runtime.name(), "boatd");
    assert_eq!(runtime.version(), "boatd://1.2");
    let health = runtime.health().await;
    assert_eq!(health.runtime, None);
    assert_eq!(
        health.network.unwrap(),
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
         message:cni plugin not initialized"
    );
}

#[tokio::test]
async fn who_does_not_speak_this_is_refused_at_once() {
    let scene = Scene::new();
    let _server = scene.serve(|_| Some(Reply::status(Code::UNIMPLEMENTED, "unknown service")));
    let error = scene.open().await.unwrap_err().to_string();
    assert!(
        error.contains("does not speak version 1 of the Container Runtime Interface"),
        "{error}"
    );
}

#[tokio::test]
async fn failures_are_the_runtimes_words_and_what_is_gone_is_done() {
    let scene = Scene::new();
    let _server = scene.serve(|call| {
        let method = call.path.rsplit('/').next().unwrap();
        match method {
            "RunPodSandbox" => Some(Reply::status(Code::UNKNOWN, "no room in \"x\"")),
            "StopContainer" | "RemoveContainer" | "ContainerStatus" | "PodSandboxStatus"
            | "StopPodSandbox" | "RemoveImage" => Some(Reply::status(Code::NOT_FOUND, "not found")),
            "PullImage" => Some(Reply::status(Code::NOT_FOUND, "no such manifest")),
            _ => None,
        }
    });
    let runtime = scene.open().await.unwrap();
    let config = SandboxConfig {
        cgroup: "podx".into(),
        ..SandboxConfig::default()
    };
    let error = runtime.run_sandbox(config).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "rpc error: code = Unknown desc = no room in \"x\""
    );
    let (sandbox, container) = (SandboxId("s".into()), ContainerId("c".into()));
    runtime.stop_container(&container, 1).await.unwrap();
    runtime.remove_container(&container).await.unwrap();
    runtime.stop_sandbox(&sandbox).await.unwrap();
    runtime.remove_sandbox(&sandbox).await.unwrap();
    runtime.remove_image("busybox").await.unwrap();
    let error = runtime.container_status(&container).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NotFound { .. }), "{error}");
    let error = runtime.pull_image("busybox", &[]).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Pull(_)), "{error}");
    let error = runtime.pull_image("Not A Name", &[]).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Invalid(_)), "{error}");
}

#[tokio::test]
async fn a_sandbox_keeps_its_configuration_in_itself() {
    let config = SandboxConfig {
        pod_name: "web".into(),
        pod_namespace: "default".into(),
        pod_uid: "u1".into(),
        attempt: 2,
        hostname: "host".into(),
        cgroup: "podu1".into(),
        shared_pid: true,
        log_directory: "/logs/web".into(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        annotations: [("note".to_owned(), "x".to_owned())].into(),
        ..SandboxConfig::default()
    };
    let asked = super::sandboxes::message(&config, "/parent/podu1");
    let options = asked.linux.as_ref().unwrap().security_context.as_ref();
    assert_eq!(
        options.unwrap().namespace_options.as_ref().unwrap().pid,
        NAMESPACE_POD
    );
    let told = PodSandboxStatus {
        id: "s1".into(),
        metadata: asked.metadata,
        state: 1,
        network: Some(PodSandboxNetworkStatus {
            ip: "10.1.2.3".into(),
            additional_ips: vec![PodIp {
                ip: "fd01::3".into(),
            }],
        }),
        labels: asked.labels,
        annotations: asked.annotations,
        ..PodSandboxStatus::default()
    };
    let status = super::sandboxes::status(told, None);
    assert_eq!(status.config, config);
    assert_eq!(status.state, SandboxState::NotReady);
    assert_eq!(status.addresses.to_string(), "10.1.2.3,fd01::3");
}

#[test]
fn the_network_is_found_in_what_is_told_besides() {
    let find = |info: &str| super::sandboxes::network_namespace(info);
    let info = r#"{"pid":5,"runtimeSpec":{"linux":{"namespaces":[{"type":"pid"},
        {"type":"network","path":"/run/netns/x"}]}}}"#;
    assert_eq!(find(info).unwrap(), Path::new("/run/netns/x"));
    assert_eq!(find(r#"{"pid":5}"#).unwrap(), Path::new("/proc/5/ns/net"));
    assert_eq!(find(r#"{"pid":0}"#), None);
    assert_eq!(find("words"), None);
}

#[tokio::test]
async fn pods_of_clusters_are_seen_and_others_are_not() {
    let scene = Scene::new();
    let _server = scene.serve(|call| {
        let container = |id: &str, labels| cri::Container {
            id: id.into(),
            pod_sandbox_id: "s1".into(),
            state: CONTAINER_EXITED,
            labels,
        };
        match call.path.rsplit('/').next().unwrap() {
            "ListContainers" => Some(Reply::message(&ListContainersResponse {
                containers: vec![
                    container("c1", labels("u1")),
                    container("gone", labels("u1")),
                    container("by hand", [].into()),
                ],
            })),
            "ContainerStatus" => {
                let id = call.read::<ContainerStatusRequest>().container_id;
                let status = cri::ContainerStatus {
                    id: id.clone(),
                    state: CONTAINER_EXITED,
                    exit_code: 3,
                    reason: "Error".into(),
                    started_at: 1_000_000_000,
                    finished_at: 2_000_000_000,
                    ..cri::ContainerStatus::default()
                };
                Some(match id.as_str() {
                    "c1" => Reply::message(&ContainerStatusResponse {
                        status: Some(status),
                    }),
                    _ => Reply::status(Code::NOT_FOUND, "removed meanwhile"),
                })
            }
            _ => None,
        }
    });
    let runtime = scene.open().await.unwrap();
    let all = runtime.list_containers().await.unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].sandbox, SandboxId("s1".into()));
    assert_eq!(all[0].state, ContainerState::Exited);
    assert_eq!(all[0].exit_code, Some(3));
    assert_eq!(all[0].finished_at.unwrap().as_second(), 2);
}

#[tokio::test]
async fn ends_are_seen_by_comparing_and_after_the_runtime_was_away() {
    let scene = Scene::new();
    let state = Arc::new(AtomicI32::new(CONTAINER_RUNNING));
    let shown = state.clone();
    let answer = move |call: &Call| {
        let state = shown.load(Ordering::Relaxed);
        match call.path.rsplit('/').next().unwrap() {
            "ListContainers" => Some(Reply::message(&ListContainersResponse {
                containers: vec![cri::Container {
                    id: "c1".into(),
                    pod_sandbox_id: "s1".into(),
                    state,
                    labels: labels("u1"),
                }],
            })),
            "ContainerStatus" => Some(Reply::message(&ContainerStatusResponse {
                status: Some(cri::ContainerStatus {
                    id: "c1".into(),
                    state,
                    exit_code: 7,
                    reason: "Error".into(),
                    ..cri::ContainerStatus::default()
                }),
            })),
            _ => None,
        }
    };
    let server = scene.serve(answer.clone());
    let runtime = scene.open().await.unwrap();
    let mut events = runtime.events();
    let mut change = async |to: i32| {
        state.store(to, Ordering::Relaxed);
        events.recv().await.unwrap()
    };
    let ended = change(CONTAINER_EXITED).await;
    let kind = EventKind::Exited {
        exit_code: 7,
        reason: "Error".into(),
    };
    assert_eq!((ended.pod_uid.as_str(), ended.kind), ("u1", kind));
    drop(server);
    let _server = scene.serve(answer);
    let started = change(CONTAINER_RUNNING).await;
    assert_eq!(started.kind, EventKind::Started);
}
