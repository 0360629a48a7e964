//! What becomes of what a former agent ran.

use super::{by_name, outdated};
use crate::pods::lost_pod;
use crate::pods::manifest::{is_static, parse};
use crate::runtime::{SandboxConfig, SandboxId, SandboxState, SandboxStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use std::path::Path;

fn pod(name: &str, image: &str, file: &str) -> Pod {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: {name} }}\n\
         spec: {{ containers: [ {{ name: a, image: {image} }} ] }}"
    );
    parse(&text, Path::new(file), "edge").unwrap()
}

fn sandbox(pod: &Pod) -> SandboxStatus {
    let meta = pod.metadata.clone();
    SandboxStatus {
        id: SandboxId(String::new()),
        config: SandboxConfig {
            pod_name: meta.name.unwrap(),
            pod_namespace: meta.namespace.unwrap(),
            pod_uid: meta.uid.unwrap(),
            annotations: meta.annotations.unwrap_or_default(),
            ..SandboxConfig::default()
        },
        state: SandboxState::Ready,
        created_at: Timestamp::UNIX_EPOCH,
        network_namespace: None,
        addresses: Default::default(),
    }
}

#[test]
fn what_files_no_longer_describe_is_outdated_when_the_agent_starts() {
    let (stays, second) = (pod("a", "x:1", "a.yaml"), pod("a", "x:1", "b.yaml"));
    let (before, after) = (pod("c", "x:1", "c.yaml"), pod("c", "x:2", "c.yaml"));
    let mut served = pod("d", "x:1", "d.yaml");
    served.metadata.annotations = None;
    let gone = pod("e", "x:1", "e.yaml");
    let sandboxes = [&stays, &second, &before, &served, &gone].map(sandbox);
    let wanted = by_name(vec![stays, second.clone(), after]);
    let found = outdated(&sandboxes, &wanted);
    let uids: Vec<_> = found.iter().map(|one| &one.config.pod_uid).collect();
    let expected = [&second, &before, &gone].map(|pod| pod.metadata.uid.as_ref().unwrap());
    assert_eq!(uids, expected);
    // Its successor waits for it.
    let lost = lost_pod(found[1]);
    assert!(is_static(&lost));
    assert_eq!(super::full_name(&lost), super::full_name(&before));
}
