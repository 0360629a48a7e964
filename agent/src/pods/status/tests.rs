//! Text in, text out: what a pod's status says.

use super::super::plan::plan;
use super::super::testing::Scene;
use super::make;
use crate::families::Families;
use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus};
use std::net::IpAddr;

fn state(state: Option<&ContainerState>) -> String {
    let Some(state) = state else {
        return "-".into();
    };
    if let Some(waiting) = &state.waiting {
        return format!("waiting({})", waiting.reason.as_deref().unwrap_or_default());
    }
    if let Some(ended) = &state.terminated {
        let reason = ended.reason.as_deref().unwrap_or_default();
        return format!("{reason}({})", ended.exit_code);
    }
    "running".into()
}

fn line(status: &ContainerStatus) -> String {
    format!(
        "{}: {} last {} restarts {} started {} ready {}",
        status.name,
        state(status.state.as_ref()),
        state(status.last_state.as_ref()),
        status.restart_count,
        status.started.unwrap_or(false),
        status.ready
    )
}

fn ips(text: &str) -> Families<IpAddr> {
    let words = text.split(' ');
    words.map(|word| word.parse().unwrap()).collect()
}

fn host() -> Families<IpAddr> {
    ips("192.0.2.1 fd99::1")
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    let mut scene = Scene::read(text);
    let plan = plan(&scene.view());
    if plan.verdict.is_some() {
        scene.memory.verdict.clone_from(&plan.verdict);
    }
    for (name, waiting) in &plan.waiting {
        scene.memory.waiting.insert(name.clone(), waiting.clone());
    }
    let status = make(&scene.view(), &plan, host());
    let mut lines = vec![status.phase.clone().unwrap_or_default()];
    lines[0].extend(status.reason.iter().map(|reason| format!(" {reason}")));
    lines[0].extend(status.pod_ip.iter().map(|ip| format!(" {ip}")));
    for condition in status.conditions.iter().flatten() {
        let mut line = format!("{}={}", condition.type_, condition.status);
        line.extend(condition.reason.iter().map(|reason| format!(" {reason}")));
        line.extend(
            condition
                .message
                .iter()
                .map(|message| format!(": {message}")),
        );
        lines.push(line);
    }
    lines.extend(status.init_container_statuses.iter().flatten().map(line));
    lines.extend(status.container_statuses.iter().flatten().map(line));
    let ephemeral = status.ephemeral_container_statuses.iter().flatten();
    lines.extend(ephemeral.map(|status| {
        assert_eq!(status.started, None);
        line(status)
    }));
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_new_pod_is_pending() {
    check(
        "pod init=i main=b,a",
        expect![[r#"
            Pending
            PodReadyToStartContainers=False
            Initialized=False ContainersNotInitialized: containers with incomplete status: [i]
            Ready=False ContainersNotReady: containers with unready status: [b a]
            ContainersReady=False ContainersNotReady: containers with unready status: [b a]
            PodScheduled=True
            i: waiting(PodInitializing) last - restarts 0 started false ready false
            a: waiting(PodInitializing) last - restarts 0 started false ready false
            b: waiting(PodInitializing) last - restarts 0 started false ready false"#]],
    );
}

#[test]
fn all_addresses_are_told_and_a_pod_on_the_host_has_the_nodes() {
    let told = |text: &str, own: Option<&str>| {
        let mut scene = Scene::read(text);
        if let Some(own) = own {
            scene.memory.ips = ips(own);
        }
        let view = scene.view();
        let status = make(&view, &plan(&view), host());
        let hosts = status.host_ips.unwrap();
        let hosts: Vec<_> = hosts.iter().map(|one| one.ip.as_str()).collect();
        assert_eq!(hosts, ["192.0.2.1", "fd99::1"]);
        assert_eq!(status.host_ip.as_deref(), Some("192.0.2.1"));
        let all = status.pod_ips.unwrap_or_default();
        let all: Vec<_> = all.iter().map(|one| one.ip.as_str()).collect();
        assert_eq!(status.pod_ip.as_deref(), all.first().copied());
        all.join(",")
    };
    let pod = "pod main=a\n sandbox 0 ready";
    assert_eq!(told(pod, Some("fd42::2 10.42.0.2")), "fd42::2,10.42.0.2");
    assert_eq!(told(pod, None), "");
    let on_host = "pod main=a hostnet\n sandbox 0 ready";
    assert_eq!(told(on_host, None), "192.0.2.1,fd99::1");
}

#[test]
fn an_empty_last_state_from_the_server_is_none() {
    let mut scene = Scene::read("pod init=i main=a");
    let status = |scene: &Scene| {
        let view = scene.view();
        make(&view, &plan(&view), host())
    };
    let mut shown = status(&scene);
    for container in shown.container_statuses.iter_mut().flatten() {
        container.last_state = Some(ContainerState::default());
    }
    scene.pod.status = Some(shown);
    let again = status(&scene);
    let mut conditions = again.conditions.iter().flatten();
    let initialized = conditions.find(|one| one.type_ == "Initialized").unwrap();
    assert_eq!(initialized.status, "False");
    assert!(again.container_statuses.unwrap()[0].last_state.is_none());
}

#[test]
fn a_running_pod_is_ready_when_its_probes_say_so() {
    check(
        "pod main=a,b\n sandbox 0 ready\n memory ip\n a running\n b running unready",
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [b]
            ContainersReady=False ContainersNotReady: containers with unready status: [b]
            PodScheduled=True
            a: running last - restarts 0 started true ready true
            b: running last - restarts 0 started true ready false"#]],
    );
    check(
        "pod main=a gate=example.com/up\n sandbox 0 ready\n memory ip\n a running",
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ReadinessGatesNotReady: corresponding condition of pod readiness gate "example.com/up" does not exist.
            ContainersReady=True
            PodScheduled=True
            a: running last - restarts 0 started true ready true"#]],
    );
}

#[test]
fn a_crash_loop_is_running_and_waits() {
    check(
        "pod main=a\n sandbox 0 ready\n memory ip crash=a@900
         a exited code=1 at=995 attempt=1\n a exited code=3 attempt=0",
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [a]
            ContainersReady=False ContainersNotReady: containers with unready status: [a]
            PodScheduled=True
            a: waiting(CrashLoopBackOff) last Error(1) restarts 1 started false ready false"#]],
    );
}

#[test]
fn an_image_that_does_not_come_is_why_it_waits() {
    check(
        "pod main=a\n sandbox 0 ready\n memory ip waiting=a:ErrImagePull@1005",
        expect![[r#"
            Pending 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [a]
            ContainersReady=False ContainersNotReady: containers with unready status: [a]
            PodScheduled=True
            a: waiting(ErrImagePull) last - restarts 0 started false ready false"#]],
    );
}

#[test]
fn pods_end_by_their_exit_codes() {
    check(
        "pod main=a restart=Never\n sandbox 0 dead\n a exited",
        expect![[r#"
            Succeeded
            PodReadyToStartContainers=False
            Initialized=True PodCompleted
            Ready=False PodCompleted
            ContainersReady=False PodCompleted
            PodScheduled=True
            a: Completed(0) last - restarts 0 started false ready false"#]],
    );
    check(
        "pod main=a deleting=5\n sandbox 0 dead\n a exited code=143",
        expect![[r#"
            Failed
            PodReadyToStartContainers=False
            Initialized=True
            Ready=False PodFailed
            ContainersReady=False PodFailed
            PodScheduled=True
            a: Error(143) last - restarts 0 started false ready false"#]],
    );
    check(
        "pod main=a deadline=60 phase=Running\n sandbox 0 ready\n memory ip\n a running",
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=True
            ContainersReady=True
            PodScheduled=True
            a: running last - restarts 0 started true ready true"#]],
    );
    // The end is told once nothing runs any more.
    check(
        "pod main=a deadline=60 phase=Running\n sandbox 0 dead\n a exited code=137",
        expect![[r#"
            Failed DeadlineExceeded
            PodReadyToStartContainers=False
            Initialized=True
            Ready=False PodFailed
            ContainersReady=False PodFailed
            PodScheduled=True
            a: Error(137) last - restarts 0 started false ready false"#]],
    );
}

#[test]
fn ephemeral_containers_have_statuses_of_their_own() {
    check(
        "pod main=a debug=f,d,e
         sandbox 0 ready
         memory ip waiting=f:ErrImagePull@1005
         a running
         d running
         e exited code=3",
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=True
            ContainersReady=True
            PodScheduled=True
            a: running last - restarts 0 started true ready true
            d: running last - restarts 0 started false ready false
            e: Error(3) last - restarts 0 started false ready false
            f: waiting(ErrImagePull) last - restarts 0 started false ready false"#]],
    );
}

#[test]
fn all_containers_that_begin_again_are_told_of() {
    let pod = "pod init=i main=a,b all=a:42 restart=Never phase=Running\n sandbox 0 ready\n \
               memory ip\n";
    let seen = |seen: &str| format!("{pod} {seen}");
    check(
        &seen("i exited code=0\n a exited code=42\n b running"),
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [a]
            ContainersReady=False ContainersNotReady: containers with unready status: [a]
            PodScheduled=True
            AllContainersRestarting=True RestartAllContainersStarted: container exited with restart policy rule
            i: Error(0) last - restarts 0 started false ready true
            a: Error(42) last - restarts 0 started false ready false
            b: running last - restarts 0 started true ready true"#]],
    );
    check(
        &seen("a exited code=42 attempt=1\n memory reset=i:0 reset=b:0"),
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [a b]
            ContainersReady=False ContainersNotReady: containers with unready status: [a b]
            PodScheduled=True
            AllContainersRestarting=True RestartAllContainersStarted: container exited with restart policy rule
            i: waiting(RestartingAllContainers) last RestartingAllContainers(137) restarts 1 started false ready false
            a: Error(42) last - restarts 1 started false ready false
            b: waiting(RestartingAllContainers) last RestartingAllContainers(137) restarts 1 started false ready false"#]],
    );
    check(
        &seen("i running attempt=1\n memory reset=i:0 reset=a:1 reset=b:0"),
        expect![[r#"
            Pending 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [a b]
            ContainersReady=False ContainersNotReady: containers with unready status: [a b]
            PodScheduled=True
            AllContainersRestarting=False
            i: running last RestartingAllContainers(137) restarts 1 started true ready false
            a: waiting(RestartingAllContainers) last RestartingAllContainers(137) restarts 2 started false ready false
            b: waiting(RestartingAllContainers) last RestartingAllContainers(137) restarts 1 started false ready false"#]],
    );
    check(
        &seen(
            "i exited code=0 attempt=1\n a running attempt=2\n b exited attempt=1\n \
             memory reset=i:0 reset=a:1 reset=b:0",
        ),
        expect![[r#"
            Running 10.42.0.5
            PodReadyToStartContainers=True
            Initialized=True
            Ready=False ContainersNotReady: containers with unready status: [b]
            ContainersReady=False ContainersNotReady: containers with unready status: [b]
            PodScheduled=True
            AllContainersRestarting=False
            i: Error(0) last RestartingAllContainers(137) restarts 1 started false ready true
            a: running last RestartingAllContainers(137) restarts 2 started true ready true
            b: Completed(0) last RestartingAllContainers(137) restarts 1 started false ready false"#]],
    );
}
