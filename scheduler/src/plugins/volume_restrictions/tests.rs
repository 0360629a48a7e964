//! Upstream's scenarios: who may have a disk or a claim beside whom.

use super::*;
use crate::plugins::scene::{filter, filter_without, pod, world};
use serde_json::{Value, json};

fn disk(kind: &str, source: Value) -> Value {
    json!({"volumes": [{"name": "v", kind: source}]})
}

fn plugin() -> VolumeRestrictions {
    VolumeRestrictions::new(Arc::default())
}

fn short(said: &str) -> String {
    said.replace(REASON_DISK, "no disk")
        .replace(REASON_ONE_POD, "taken")
}

/// What is said of a pod beside one with a disk on `a`.
fn beside(kind: &str, there: &Value, new: Value) -> String {
    let spec = disk(kind, there.clone());
    let world = world(&format!("node a\nnode b\npod p a {spec}"));
    short(&filter(&plugin(), &pod("", disk(kind, new)), &world))
}

const APART: &str = "a no disk, b fits";
const TOGETHER: &str = "a fits, b fits";

#[test]
fn a_disk_that_somebody_writes_is_for_one_pod_a_node() {
    let gce = |read_only: bool| json!({"pdName": "one", "readOnly": read_only});
    assert_eq!(beside("gcePersistentDisk", &gce(false), gce(false)), APART);
    assert_eq!(beside("gcePersistentDisk", &gce(true), gce(false)), APART);
    assert_eq!(beside("gcePersistentDisk", &gce(true), gce(true)), TOGETHER);
    let other = json!({"pdName": "two"});
    assert_eq!(beside("gcePersistentDisk", &gce(false), other), TOGETHER);
    let iscsi = |iqn: &str, read_only: bool| json!({"targetPortal": "t", "lun": 0, "iqn": iqn, "readOnly": read_only});
    assert_eq!(beside("iscsi", &iscsi("q", false), iscsi("q", true)), APART);
    assert_eq!(
        beside("iscsi", &iscsi("q", true), iscsi("q", true)),
        TOGETHER
    );
    assert_eq!(
        beside("iscsi", &iscsi("q", false), iscsi("r", false)),
        TOGETHER
    );
}

#[test]
fn an_ebs_volume_is_for_one_pod_even_to_read() {
    let ebs = |id: &str| json!({"volumeID": id, "readOnly": true});
    assert_eq!(beside("awsElasticBlockStore", &ebs("a"), ebs("a")), APART);
    assert_eq!(
        beside("awsElasticBlockStore", &ebs("a"), ebs("b")),
        TOGETHER
    );
}

#[test]
fn an_rbd_image_is_the_same_by_monitor_pool_and_name() {
    let rbd = |monitors: &[&str], pool: &str, image: &str, read_only: bool| json!({"monitors": monitors, "pool": pool, "image": image, "readOnly": read_only});
    let there = rbd(&["a", "b"], "p", "i", false);
    assert_eq!(
        beside("rbd", &there, rbd(&["c", "b"], "p", "i", false)),
        APART
    );
    assert_eq!(
        beside("rbd", &there, rbd(&["c"], "p", "i", false)),
        TOGETHER
    );
    assert_eq!(
        beside("rbd", &there, rbd(&["a"], "q", "i", false)),
        TOGETHER
    );
    assert_eq!(
        beside("rbd", &there, rbd(&["a"], "p", "j", false)),
        TOGETHER
    );
    let read = rbd(&["a"], "p", "i", true);
    assert_eq!(beside("rbd", &read, read.clone()), TOGETHER);
}

fn claim(name: &str, mode: &str) -> Arc<PersistentVolumeClaim> {
    Arc::new(
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": [mode]}}))
        .unwrap(),
    )
}

fn with_claims() -> VolumeRestrictions {
    let plugin = plugin();
    let mut volumes = plugin.volumes.lock();
    volumes.set_claim(&claim("own", "ReadWriteOncePod"));
    volumes.set_claim(&claim("shared", "ReadWriteMany"));
    drop(volumes);
    plugin
}

fn uses(claim: &str) -> Value {
    disk("persistentVolumeClaim", json!({ "claimName": claim }))
}

#[test]
fn a_claim_for_one_pod_keeps_others_off_every_node() {
    let text = format!(
        "node a\nnode b\npod p a {0}\npod q b {1}\npod r b ns=other {0}",
        uses("own"),
        uses("shared")
    );
    let (plugin, world) = (with_claims(), world(&text));
    let new = pod("", uses("own"));
    assert_eq!(short(&filter(&plugin, &new, &world)), "a taken, b taken");
    let said = filter_without(&plugin, &new, &world, &["p"]);
    assert_eq!(said, "a fits, b fits");
    let said = filter_without(&plugin, &new, &world, &["q", "r"]);
    assert_eq!(short(&said), "a taken, b taken");
    assert_eq!(filter(&plugin, &pod("", uses("shared")), &world), "skipped");
    let missing = filter(&plugin, &pod("", uses("none")), &world);
    assert_eq!(missing, "persistentvolumeclaim \"none\" not found!");
}

/// Else nobody could make room where two use it on different nodes.
#[test]
fn of_several_who_use_a_claim_for_one_pod_the_end_of_any_helps() {
    let text = format!("node a\nnode b\npod p a {0}\npod q b {0}", uses("own"));
    let (plugin, world) = (with_claims(), world(&text));
    let new = pod("", uses("own"));
    assert_eq!(short(&filter(&plugin, &new, &world)), "a taken, b taken");
    for gone in ["p", "q"] {
        let said = filter_without(&plugin, &new, &world, &[gone]);
        assert_eq!(said, "a fits, b fits");
    }
}

#[test]
fn what_goes_wakes_who_waits_for_it() {
    let plugin = with_claims();
    let gone = |words: &str, spec| WorldChange::PodGone(Arc::new(pod(words, spec)));
    let new = pod("", uses("own"));
    let helps = |change: WorldChange| plugin.can_help(&change, &new);
    assert!(helps(gone("", uses("own"))) && !helps(gone("", uses("shared"))));
    assert!(!helps(gone("ns=other", uses("own"))));
    assert!(helps(WorldChange::Claim(claim("own", "ReadWriteOnce"))));
    assert!(!helps(WorldChange::Claim(claim("other", "ReadWriteOnce"))));
    let ebs = || disk("awsElasticBlockStore", json!({"volumeID": "a"}));
    assert!(plugin.can_help(&gone("", ebs()), &pod("", ebs())));
    assert!(plugin.can_help(&gone("ns=other", ebs()), &pod("", ebs())));
}
