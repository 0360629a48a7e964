//! Upstream's scenarios: volumes in zones and regions.

use super::*;
use crate::plugins::scene::{filter, pod, world};
use serde_json::{Value, json};

/// Volumes `zone`, `zones`, `old`, `bad` with labels, and claims bound to them by the same name.
fn plugin() -> VolumeZone {
    let plugin = VolumeZone::new(Arc::default());
    let mut volumes = plugin.volumes.lock();
    let labels = [
        ("zone", json!({ZONE: "a"})),
        ("zones", json!({ZONE: "a__b", REGION: "r"})),
        (
            "old",
            json!({"failure-domain.beta.kubernetes.io/zone": "a"}),
        ),
        ("bad", json!({ZONE: "a__"})),
        ("plain", json!({})),
    ];
    let claim = |name: &str, volume: &str, class: &str| -> Arc<PersistentVolumeClaim> {
        let value = json!({"metadata": {"name": name, "namespace": "default"},
            "spec": {"volumeName": volume, "storageClassName": class}});
        Arc::new(serde_json::from_value(value).unwrap())
    };
    for (name, labels) in labels {
        volumes.set_claim(&claim(name, name, ""));
        let volume = json!({"metadata": {"name": name, "labels": labels}});
        volumes.set_volume(&Arc::new(serde_json::from_value(volume).unwrap()));
    }
    for (class, mode) in [("late", "WaitForFirstConsumer"), ("now", "Immediate")] {
        let made =
            json!({"metadata": {"name": class}, "provisioner": "x", "volumeBindingMode": mode});
        volumes.set_class(&Arc::new(serde_json::from_value(made).unwrap()));
        volumes.set_claim(&claim(class, "", class));
    }
    let unset = json!({"metadata": {"name": "unset"}, "provisioner": "x"});
    volumes.set_class(&Arc::new(serde_json::from_value(unset).unwrap()));
    for (name, volume, class) in [
        ("lost", "none", ""),
        ("bare", "", ""),
        ("strange", "", "none"),
    ] {
        volumes.set_claim(&claim(name, volume, class));
    }
    volumes.set_claim(&claim("unset", "", "unset"));
    drop(volumes);
    plugin
}

fn uses(claim: &str) -> Value {
    json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]})
}

fn said(claim: &str) -> String {
    let world = world(&format!(
        "node a {ZONE}=a {REGION}=r
         node b {ZONE}=b {REGION}=r
         node c failure-domain.beta.kubernetes.io/zone=a
         node d"
    ));
    filter(&plugin(), &pod("", uses(claim)), &world).replace(REASON, "elsewhere")
}

#[test]
fn a_node_is_in_the_zones_of_the_volume_or_in_none() {
    assert_eq!(said("zone"), "a fits, b elsewhere!, c elsewhere!, d fits");
    assert_eq!(said("zones"), "a fits, b fits, c elsewhere!, d fits");
    assert_eq!(said("old"), "a fits, b elsewhere!, c fits, d fits");
    assert_eq!(said("plain"), "skipped");
    assert_eq!(said("bad"), "skipped");
}

#[test]
fn a_claim_without_a_volume_waits_for_a_node_or_ends_the_cycle() {
    assert_eq!(said("late"), "skipped");
    assert_eq!(said("now"), "PersistentVolume had no name!");
    assert_eq!(said("lost"), "persistentvolume \"none\" not found!");
    assert_eq!(
        said("missing"),
        "persistentvolumeclaim \"missing\" not found!"
    );
    assert_eq!(
        said("bare"),
        "PersistentVolumeClaim had no pv name and storageClass name!"
    );
    assert_eq!(
        said("strange"),
        "storageclass.storage.k8s.io \"none\" not found!"
    );
    assert_eq!(
        said("unset"),
        "VolumeBindingMode not set for StorageClass \"unset\"!"
    );
}

#[test]
fn labels_of_nodes_and_own_claims_wake() {
    let (plugin, new) = (plugin(), pod("", uses("zone")));
    let node = |line: &str| world(line).nodes[0].facts.clone();
    let helps = |change: WorldChange| plugin.can_help(&change, &new);
    assert!(helps(WorldChange::NodeAdded(node("node a"))));
    let updated = |old, new| WorldChange::NodeUpdated {
        old: node(old),
        new: node(new),
    };
    assert!(helps(updated("node a", "node a x=1")));
    assert!(!helps(updated("node a", "node a taint=k")));
    let claim = |name| {
        plugin
            .volumes
            .lock()
            .claim(&ObjectKey::new("default", name))
            .cloned()
    };
    assert!(helps(WorldChange::Claim(claim("zone").unwrap())));
    assert!(!helps(WorldChange::Claim(claim("old").unwrap())));
}
