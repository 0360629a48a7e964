//! Which processes a container sees: its own, its pod's, or those of one it looks into.

use crate::support::{Host, on_host, texts, until};
use coracle_agent::runtime::{
    ContainerConfig, ContainerId, Runtime, RuntimeError, SandboxConfig, SandboxId, SandboxState,
};
use std::fs;
use std::path::PathBuf;

/// Says so once a process with these words is seen, and whose it is; gives up after a while.
const LOOKS: &str = "i=0; while [ $i -lt 100 ]; do for p in /proc/[0-9]*; do \
     tr '\\0' ' ' < $p/cmdline | grep -q '^sleep 100000' && echo sees ${p#/proc/} && exit; \
     done; i=$((i+1)); sleep 0.1; done; echo blind";

async fn shared_sandbox(host: &Host) -> SandboxId {
    let uid = hex::encode(rand::random::<[u8; 4]>());
    let config = SandboxConfig {
        pod_uid: uid.clone(),
        hostname: "web".into(),
        cgroup: format!("pod{uid}"),
        shared_pid: true,
        ..SandboxConfig::default()
    };
    host.runtime.run_sandbox(config).await.unwrap()
}

async fn start_in(host: &Host, sandbox: &SandboxId, config: ContainerConfig) -> ContainerId {
    let created = host.runtime.create_container(sandbox, config).await;
    let id = created.unwrap();
    host.runtime.start_container(&id).await.unwrap();
    id
}

async fn said(host: &Host, sandbox: &SandboxId, line: &str) -> String {
    let config = host.shell(line);
    let log = config.log_path.clone();
    let id = start_in(host, sandbox, config).await;
    host.exited(&id).await;
    texts(&log)
}

async fn state(host: &Host, sandbox: &SandboxId) -> SandboxState {
    host.runtime.sandbox_status(sandbox).await.unwrap().state
}

/// The process id on the host of the sandbox's own process.
fn reaper(host: &Host, sandbox: &SandboxId) -> i32 {
    let sandboxes = host.directory.path().join("agent/sandboxes");
    let file = sandboxes.join(&sandbox.0).join("reaper.json");
    fs::read_to_string(file).unwrap().parse().unwrap()
}

fn runs(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn containers_of_a_pod_may_share_their_processes() {
    on_host(async |host| {
        let sandbox = shared_sandbox(&host).await;
        let first = start_in(&host, &sandbox, host.shell("exec sleep 100000")).await;
        let seen = said(&host, &sandbox, LOOKS).await;
        assert!(seen.starts_with("stdout: sees "), "{seen}");
        assert_ne!(seen, "stdout: sees 1");

        // The first process has nothing of the host to show, and outlives its pod's containers.
        let words = "echo $(tr '\\0' ' ' < /proc/1/cmdline)";
        assert_eq!(
            said(&host, &sandbox, words).await,
            "stdout: coracle sandbox ."
        );
        let parts = "kill -9 1; for part in root/etc/passwd environ exe cwd/x; do \
             cat /proc/1/$part > /dev/null 2>&1 && echo $part; done; echo done";
        assert_eq!(said(&host, &sandbox, parts).await, "stdout: done");
        let limits = "cd /sys/fs/cgroup; ls cgroup.procs memory/cgroup.procs 2>/dev/null | wc -l";
        assert_eq!(said(&host, &sandbox, limits).await, "stdout: 1");
        host.runtime.stop_container(&first, 0).await.unwrap();
        let pid = reaper(&host, &sandbox);
        assert!(runs(pid));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
        assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
        assert_eq!(
            fs::read_dir(format!("/proc/{pid}/root/")).unwrap().count(),
            0
        );
        assert_eq!(state(&host, &sandbox).await, SandboxState::Ready);
        host.runtime.stop_sandbox(&sandbox).await.unwrap();
        assert!(!runs(pid));
    });
}

#[test]
fn orphans_in_a_shared_namespace_leave_nothing_behind() {
    on_host(async |host| {
        let sandbox = shared_sandbox(&host).await;
        let line = "(sleep 0.1 &) ; i=0; while [ $i -lt 50 ]; do sleep 0.1; \
             grep -q . /dev/null; z=$(grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null); \
             i=$((i+1)); [ $i -gt 5 ] && [ -z \"$z\" ] && echo clean && exit; done; echo $z";
        assert_eq!(said(&host, &sandbox, line).await, "stdout: clean");
    });
}

#[test]
fn a_sandbox_whose_first_process_was_killed_is_not_ready() {
    on_host(async |host| {
        let sandbox = shared_sandbox(&host).await;
        let id = start_in(&host, &sandbox, host.shell("exec sleep 100000")).await;
        let pid = nix::unistd::Pid::from_raw(reaper(&host, &sandbox));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        assert_eq!(host.exited(&id).await.exit_code, Some(137));
        until("the sandbox to be found broken", async || {
            (state(&host, &sandbox).await == SandboxState::NotReady).then_some(())
        })
        .await;
        let more = host.runtime.create_container(&sandbox, host.shell("true"));
        assert!(matches!(more.await, Err(RuntimeError::Failed(_))));
    });
}

#[test]
fn a_container_may_look_into_another_one() {
    on_host(async |host| {
        let sandbox = host.sandbox().await;
        let target = start_in(&host, &sandbox, host.shell("exec sleep 100000")).await;
        assert_eq!(
            said(&host, &sandbox, LOOKS.replace("-lt 100", "-lt 2").as_str()).await,
            "stdout: blind"
        );
        let config = ContainerConfig {
            pid_namespace_of: Some(target.clone()),
            ..host.shell(LOOKS)
        };
        let log: PathBuf = config.log_path.clone();
        let debugger = start_in(&host, &sandbox, config).await;
        host.exited(&debugger).await;
        assert_eq!(texts(&log), "stdout: sees 1");

        host.runtime.stop_container(&target, 0).await.unwrap();
        let config = ContainerConfig {
            pid_namespace_of: Some(target),
            ..host.shell("true")
        };
        let late = host
            .runtime
            .create_container(&sandbox, config)
            .await
            .unwrap();
        let refused = host.runtime.start_container(&late).await.unwrap_err();
        assert!(refused.to_string().contains("does not run"), "{refused}");
    });
}
