//! Failures are told in upstream's words.

use super::{failed, owner, unknown};
use crate::pods::state::Retry;
use crate::volumes::ownership::Owner;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

#[test]
fn what_is_not_known_is_told_of_all_volumes_at_once() {
    let volumes = [("a", "PVC is not bound"), ("b", "gone")];
    let volumes = volumes.map(|(name, why)| (name.to_owned(), why.to_owned()));
    let failure = unknown(&volumes);
    assert_eq!(failure.reason, "FailedMount");
    assert_eq!(
        failure.message,
        "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], \
         failed to process volumes=[a b]: PVC is not bound; gone"
    );
    assert_eq!(failure.retry, Retry::Awaited);
}

#[test]
fn devices_have_a_reason_of_their_own() {
    let mount = failed("MountVolume.SetUp failed", "pv", "no");
    assert_eq!(mount.reason, "FailedMount");
    assert_eq!(
        mount.message,
        "MountVolume.SetUp failed for volume \"pv\" : no"
    );
    let map = failed("MapVolume.SetUpDevice failed", "pv", "no");
    assert_eq!(map.reason, "FailedMapVolume");
}

#[test]
fn the_group_and_its_policy_are_the_pods() {
    let pod = |context| -> Pod {
        let spec = json!({"containers": [], "securityContext": context});
        serde_json::from_value(json!({"spec": spec})).unwrap()
    };
    assert_eq!(owner(&pod(json!({})), false), None);
    let lazy = json!({"fsGroup": 7, "fsGroupChangePolicy": "OnRootMismatch"});
    let expected = Owner {
        group: 7,
        read_only: true,
        root_says_all: true,
    };
    assert_eq!(owner(&pod(lazy), true), Some(expected));
}
