//! What drivers are asked follows from the volume and from what they can do.

use super::Wanted;
use crate::csi::driver::Lifecycle;
use crate::csi::messages::{
    NodeGetCapabilitiesResponse, NodeServiceCapability, Nothing, Rpc, SINGLE_NODE_MULTI_WRITER,
    VOLUME_MOUNT_GROUP,
};
use crate::csi::node::{Capabilities, access_mode, is_final};
use crate::grpc::{Code, Status};
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn wanted(more: Value) -> Wanted {
    let mut spec = json!({
        "csi": {
            "driver": "d", "volumeHandle": "h", "fsType": "ext4",
            "volumeAttributes": {"kind": "fast"},
            "nodeStageSecretRef": {"name": "s", "namespace": "n"},
        },
        "accessModes": ["ReadWriteOnce"],
        "mountOptions": ["noatime"],
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let volume = json!({"metadata": {"name": "pv"}, "spec": spec});
    let volume: PersistentVolume = serde_json::from_value(volume).unwrap();
    Wanted::of_volume(&volume, true).unwrap()
}

fn can(all: &[i32]) -> Capabilities {
    Capabilities::of(NodeGetCapabilitiesResponse {
        capabilities: all
            .iter()
            .map(|kind| NodeServiceCapability {
                rpc: Some(Rpc { kind: *kind }),
            })
            .collect(),
    })
}

#[test]
fn a_volume_is_published_with_all_that_is_said_of_it() {
    let more = BTreeMap::from([("pod".to_owned(), "p".to_owned())]);
    let places = ["/staged".to_owned(), "/target".to_owned()];
    let none = BTreeMap::new();
    let question =
        wanted(json!({})).publish_question(&can(&[]), places, Some(7), none.clone(), none, more);
    assert_eq!(question.volume_id, "h");
    assert!(question.readonly);
    assert_eq!(question.staging_target_path, "/staged");
    assert_eq!(question.target_path, "/target");
    let context: Vec<&str> = question.volume_context.keys().map(String::as_str).collect();
    assert_eq!(context, ["kind", "pod"]);
    let capability = question.volume_capability.unwrap();
    let mount = capability.mount.unwrap();
    assert_eq!(mount.fs_type, "ext4");
    assert_eq!(mount.mount_flags, ["noatime"]);
    assert_eq!(mount.volume_mount_group, "", "it cannot do that");
    assert_eq!(capability.access_mode.unwrap().mode, 1);
}

#[test]
fn a_driver_that_gives_volumes_to_groups_is_told_the_group() {
    let group = |has: &Capabilities| {
        let none = BTreeMap::new();
        let question =
            wanted(json!({})).stage_question(has, String::new(), Some(7), none.clone(), none);
        let mount = question.volume_capability.unwrap().mount.unwrap();
        mount.volume_mount_group
    };
    assert_eq!(group(&can(&[])), "");
    assert_eq!(group(&can(&[VOLUME_MOUNT_GROUP])), "7");
}

#[test]
fn a_device_has_no_file_system() {
    let device = wanted(json!({"volumeMode": "Block"}));
    let capability = device.capability(&can(&[]), None);
    assert_eq!(capability.block, Some(Nothing {}));
    assert_eq!(capability.mount, None);
}

#[test]
fn access_modes_are_told_as_finely_as_the_driver_knows_them() {
    let modes = [
        "ReadWriteOnce",
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOncePod",
        "Other",
    ];
    let coarse = modes.map(|mode| access_mode(mode, &can(&[])));
    assert_eq!(coarse, [1, 3, 5, 1, 0]);
    let fine = modes.map(|mode| access_mode(mode, &can(&[SINGLE_NODE_MULTI_WRITER])));
    assert_eq!(fine, [7, 3, 5, 6, 0]);
}

#[test]
fn a_volume_of_a_pod_lives_as_long_as_the_pod() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [], "volumes": [
            {"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}},
        ]},
    }))
    .unwrap();
    let volume = &pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0];
    let wanted = Wanted::of_pod(&pod, volume).unwrap();
    assert_eq!(wanted.lifecycle, Lifecycle::Ephemeral);
    assert!(wanted.handle.starts_with("csi-"));
    let secret = wanted.publish_secret.unwrap();
    assert_eq!(secret.namespace.as_deref(), Some("n"));
}

#[test]
fn some_ends_of_a_call_leave_open_whether_it_goes_on() {
    let ends = |code: Code| is_final(&Status::new(code, ""));
    for code in [
        Code::CANCELED,
        Code::DEADLINE_EXCEEDED,
        Code::UNAVAILABLE,
        Code::RESOURCE_EXHAUSTED,
        Code::ABORTED,
    ] {
        assert!(!ends(code), "{code}");
    }
    for code in [
        Code::INTERNAL,
        Code::NOT_FOUND,
        Code::INVALID_ARGUMENT,
        Code::UNKNOWN,
    ] {
        assert!(ends(code), "{code}");
    }
}
