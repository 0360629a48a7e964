//! Upstream's scenarios: how many volumes a node takes.

use super::*;
use crate::plugins::scene::{filter, filter_without, pod, world};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn csi_node(name: &str, driver: &str, count: Option<i32>) -> CSINode {
    read(json!({"metadata": {"name": name}, "spec": {"drivers": [
        {"name": driver, "nodeID": name, "allocatable": {"count": count}}]}}))
}

fn attachment(name: &str, driver: &str, volume: &str, node: &str) -> VolumeAttachment {
    read(
        json!({"metadata": {"name": name}, "spec": {"attacher": driver, "nodeName": node,
        "source": {"persistentVolumeName": volume}}}),
    )
}

/// Claims `1` to `6`, each bound to the volume of its name by the driver `csi`; claim `late` of a
/// class of `csi`; claim `free` of a class that nobody limits.
fn plugin() -> NodeVolumeLimits {
    let plugin = NodeVolumeLimits::new(Arc::default());
    let mut volumes = plugin.volumes.lock();
    let claim = |name: &str, volume: &str, class: &str| {
        Arc::new(read(
            json!({"metadata": {"name": name, "namespace": "default"},
            "spec": {"volumeName": volume, "storageClassName": class}}),
        ))
    };
    for number in 1..=6 {
        let name = number.to_string();
        volumes.set_claim(&claim(&name, &name, ""));
        volumes.set_volume(&Arc::new(read(json!({"metadata": {"name": name},
            "spec": {"csi": {"driver": "csi", "volumeHandle": format!("h{name}")}}}))));
    }
    for (class, provisioner) in [
        ("late", "csi"),
        ("free", "other"),
        ("old", "kubernetes.io/aws-ebs"),
    ] {
        volumes.set_claim(&claim(class, "", class));
        volumes.set_class(&Arc::new(read(json!({"metadata": {"name": class},
            "provisioner": provisioner}))));
    }
    volumes.on_nodes.set_node(&csi_node("a", "csi", Some(2)));
    volumes.on_nodes.set_node(&csi_node("b", "csi", None));
    volumes
        .on_nodes
        .set_node(&csi_node("c", "ebs.csi.aws.com", Some(1)));
    drop(volumes);
    plugin
}

fn uses(claims: &[&str]) -> Value {
    let volumes = claims.iter().map(
        |claim| json!({"name": format!("v{claim}"), "persistentVolumeClaim": {"claimName": claim}}),
    );
    json!({"volumes": volumes.collect::<Vec<_>>()})
}

fn said(plugin: &NodeVolumeLimits, there: &str, spec: Value) -> String {
    let world = world(&format!("node a\nnode b\nnode c\n{there}"));
    filter(plugin, &pod("", spec), &world).replace(REASON, "full")
}

const FITS: &str = "a fits, b fits, c fits";
const FULL: &str = "a full, b fits, c fits";

#[test]
fn no_more_volumes_than_the_driver_takes() {
    let there = |claims: &[&str]| format!("pod p a {}", uses(claims));
    assert_eq!(said(&plugin(), &there(&["1"]), uses(&["2"])), FITS);
    assert_eq!(said(&plugin(), &there(&["1"]), uses(&["2", "3"])), FULL);
    assert_eq!(said(&plugin(), &there(&["1", "2"]), uses(&["3"])), FULL);
    assert_eq!(
        said(&plugin(), &there(&["1", "2"]), uses(&["2"])),
        FITS,
        "it is there already"
    );
    assert_eq!(said(&plugin(), &there(&["1", "late"]), uses(&["3"])), FULL);
    assert_eq!(said(&plugin(), &there(&["1", "2"]), uses(&["late"])), FULL);
    assert_eq!(said(&plugin(), &there(&["1", "free"]), uses(&["3"])), FITS);
}

#[test]
fn pods_without_volumes_of_limited_drivers_are_not_asked_about() {
    assert_eq!(said(&plugin(), "", json!({})), "skipped");
    assert_eq!(said(&plugin(), "", uses(&["free"])), "skipped");
    assert_eq!(
        said(&plugin(), "", uses(&["none"])),
        "skipped",
        "others tell that it is missing"
    );
}

#[test]
fn attachments_count_though_no_pod_uses_them() {
    let plugin = plugin();
    let held = attachment("held", "csi", "5", "a");
    {
        let mut volumes = plugin.volumes.lock();
        volumes.on_nodes.set_attachment(&held);
        volumes
            .on_nodes
            .set_attachment(&attachment("same", "csi", "1", "a"));
        volumes
            .on_nodes
            .set_attachment(&attachment("gone", "csi", "none", "a"));
    }
    let there = format!("pod p a {}", uses(&["1"]));
    assert_eq!(said(&plugin, &there, uses(&["2"])), FULL);
    assert_eq!(
        said(&plugin, &there, uses(&["5"])),
        FITS,
        "it is attached already"
    );
    plugin.volumes.lock().on_nodes.remove_attachment(&held);
    assert_eq!(said(&plugin, &there, uses(&["2"])), FITS);
}

#[test]
fn kinds_that_were_built_in_count_with_their_drivers() {
    let ebs =
        |id: &str| json!({"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": id}}]});
    let there = format!("pod p c {}", ebs("aws://zone/vol-1"));
    assert_eq!(said(&plugin(), &there, ebs("vol-1")), FITS);
    assert_eq!(
        said(&plugin(), &there, ebs("vol-2")),
        "a fits, b fits, c full"
    );
    assert_eq!(
        said(&plugin(), &there, uses(&["old"])),
        "a fits, b fits, c full"
    );
}

#[test]
fn pods_that_go_make_room_if_nobody_else_uses_the_volume() {
    let text = format!(
        "node a\npod p a {}\npod q a {}\npod r a {}",
        uses(&["1"]),
        uses(&["2"]),
        uses(&["2"])
    );
    let (plugin, world, new) = (plugin(), world(&text), pod("", uses(&["3"])));
    let said = |gone: &[&str]| filter_without(&plugin, &new, &world, gone).replace(REASON, "full");
    assert_eq!(said(&[]), "a full");
    assert_eq!(said(&["p"]), "a fits");
    assert_eq!(said(&["q"]), "a full");
    assert_eq!(said(&["q", "r"]), "a fits");
}

#[test]
fn what_makes_room_wakes() {
    let (plugin, new) = (plugin(), pod("", uses(&["3"])));
    let helps = |change: WorldChange| plugin.can_help(&change, &new);
    let gone = |spec| WorldChange::PodGone(Arc::new(pod("", spec)));
    assert!(helps(gone(uses(&["1"]))) && !helps(gone(json!({}))));
    let node = |count| Arc::new(csi_node("a", "csi", count));
    let changed = |old, new| WorldChange::CsiNode {
        old,
        new: node(new),
    };
    assert!(helps(changed(None, None)));
    assert!(helps(changed(Some(node(Some(1))), Some(2))));
    assert!(!helps(changed(Some(node(Some(2))), Some(1))));
    let detached = || WorldChange::Detached(Arc::new(attachment("x", "csi", "1", "a")));
    assert!(helps(detached()));
    assert!(helps(WorldChange::NodeAdded(Arc::default())));
    assert!(!plugin.can_help(&detached(), &pod("", json!({}))));
}
