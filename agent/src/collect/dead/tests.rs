//! Sandboxes and containers of some pods, and what goes.

use super::*;
use crate::runtime::{ContainerConfig, SandboxConfig};
use jiff::Timestamp;

fn sandbox(uid: &str, attempt: u32, state: SandboxState) -> SandboxStatus {
    SandboxStatus {
        id: SandboxId(format!("{uid}-{attempt}")),
        config: SandboxConfig {
            pod_uid: uid.into(),
            attempt,
            ..SandboxConfig::default()
        },
        state,
        created_at: Timestamp::UNIX_EPOCH,
        network_namespace: None,
        addresses: Default::default(),
    }
}

fn container(id: &str, sandbox: &str, state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        id: ContainerId(id.into()),
        sandbox: SandboxId(sandbox.into()),
        config: ContainerConfig::default(),
        state,
        created_at: Timestamp::UNIX_EPOCH,
        started_at: None,
        finished_at: None,
        exit_code: None,
        reason: String::new(),
        message: String::new(),
        image_id: String::new(),
        pid: None,
        user: None,
    }
}

#[test]
fn what_is_gone_goes_and_what_lives_stays() {
    use ContainerState::{Exited, Running};
    use SandboxState::{NotReady, Ready};
    let sandboxes = [
        sandbox("gone", 0, Ready),
        sandbox("lives", 0, NotReady),
        sandbox("lives", 1, NotReady),
        sandbox("lives", 2, Ready),
        sandbox("ended", 0, NotReady),
    ];
    let containers = [
        container("old", "lives-1", Exited),
        container("new", "lives-2", Running),
        container("crashed", "lives-2", Exited),
        container("done", "ended-0", Exited),
    ];
    let known = Known::from([("lives".into(), false), ("ended".into(), true)]);
    let dead = find(&sandboxes, &containers, &known, false);
    let ids: Vec<_> = dead.sandboxes.iter().map(|id| id.0.as_str()).collect();
    assert_eq!(ids, ["gone-0", "lives-0"], "lives-1 has a container still");
    assert!(dead.containers.is_empty());
    let dead = find(&sandboxes, &containers, &known, true);
    assert_eq!(dead.containers, [ContainerId("done".into())]);
    assert_eq!(dead.sandboxes.len(), 2, "the newest of a pod stays");
    assert!(is_of_gone_pod("default_web_u7", &known));
    assert!(!is_of_gone_pod("default_web_lives", &known));
    assert!(!is_of_gone_pod("lost+found", &known));
}
