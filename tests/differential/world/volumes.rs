//! Volumes and claims: bound, waiting and lost ones, drivers with limits, disks of old kinds.

use super::dice::Dice;
use super::{NAMESPACES, nodes};
use serde_json::{Value, json};

const DRIVER: &str = "disk.example.com";
/// Of claims that wait for a pod.
const WAITING: [&str; 4] = ["made", "made-here", "measured", "kept"];

/// `made` is provisioned anywhere, `made-here` in one zone, `measured` where there is room, `kept`
/// found among volumes that are there; `now` waits for no pod.
pub fn classes() -> Vec<Value> {
    let class = |name: &str, provisioner: &str, mode: &str| {
        json!({
            "kind": "StorageClass", "metadata": { "name": name },
            "provisioner": provisioner, "volumeBindingMode": mode,
        })
    };
    let mut here = class("made-here", DRIVER, "WaitForFirstConsumer");
    here["allowedTopologies"] = json!([{ "matchLabelExpressions": [
        { "key": "zone", "values": ["z1", "z2"] },
    ] }]);
    let driver = |name: &str, measures: bool| {
        json!({
            "kind": "CSIDriver", "metadata": { "name": name },
            "spec": { "storageCapacity": measures, "attachRequired": true },
        })
    };
    vec![
        class("made", DRIVER, "WaitForFirstConsumer"),
        here,
        class("measured", "measured.example.com", "WaitForFirstConsumer"),
        class(
            "kept",
            "kubernetes.io/no-provisioner",
            "WaitForFirstConsumer",
        ),
        class("now", DRIVER, "Immediate"),
        driver(DRIVER, false),
        driver("measured.example.com", true),
    ]
}

/// The objects, and the names of claims that pods may use, though perhaps they are not there.
pub fn volumes(dice: &mut Dice, seed: u64, node_count: usize) -> (Vec<Value>, Vec<String>) {
    let (mut objects, mut claims) = (Vec::new(), Vec::new());
    for number in 0..dice.between(1, 5) {
        let name = format!("bound{number}-{seed}");
        let [claim, volume] = bound(dice, &name);
        claims.push(super::name(&claim).to_owned());
        objects.extend([claim, volume]);
    }
    for number in 0..dice.between(0, 3) {
        let name = format!("waits{number}-{seed}");
        let class = dice.pick(&WAITING);
        let claim = claim(dice, &name, class);
        claims.push(super::name(&claim).to_owned());
        let modes = claim["spec"]["accessModes"].clone();
        objects.push(claim);
        if dice.chance(25) {
            let mut held = volume(dice, &format!("held{number}-{seed}"));
            held["spec"]["storageClassName"] = class.into();
            held["spec"]["accessModes"] = modes;
            held["spec"]["claimRef"] = claim_ref(&name);
            objects.push(held);
        }
    }
    for number in 0..dice.between(0, 3) {
        let mut volume = volume(dice, &format!("free{number}-{seed}"));
        volume["spec"]["storageClassName"] = "kept".into();
        objects.push(volume);
    }
    if dice.chance(10) {
        let name = format!("unbound-{seed}");
        let claim = claim(dice, &name, "now");
        claims.push(super::name(&claim).to_owned());
        objects.push(claim);
    }
    if dice.chance(7) {
        claims.push("missing".to_owned());
    }
    for number in 0..node_count {
        if dice.chance(60) {
            objects.push(drivers_of_node(dice, &nodes::name(seed, number)));
        }
        if dice.chance(30) {
            objects.push(room(dice, &format!("room{number}-{seed}")));
        }
    }
    (objects, claims)
}

fn claim(dice: &mut Dice, name: &str, class: &str) -> Value {
    let mode = dice.pick(&["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"]);
    json!({
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": NAMESPACES[0] },
        "spec": {
            "accessModes": [mode], "storageClassName": class,
            "resources": { "requests": { "storage": dice.pick(&["1Gi", "5Gi"]) } },
        },
    })
}

/// A volume with its claim.
fn bound(dice: &mut Dice, name: &str) -> [Value; 2] {
    let mut claim = claim(dice, name, "now");
    claim["spec"]["volumeName"] = name.into();
    claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
    claim["status"] = json!({ "phase": "Bound" });
    let mut volume = volume(dice, name);
    volume["spec"]["storageClassName"] = "now".into();
    volume["spec"]["accessModes"] = claim["spec"]["accessModes"].clone();
    volume["spec"]["claimRef"] = claim_ref(name);
    volume["status"] = json!({ "phase": "Bound" });
    [claim, volume]
}

fn claim_ref(claim: &str) -> Value {
    json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "name": claim, "namespace": NAMESPACES[0],
    })
}

fn volume(dice: &mut Dice, name: &str) -> Value {
    let mut volume = json!({
        "kind": "PersistentVolume",
        "metadata": { "name": name, "labels": {} },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": dice.pick(&["2Gi", "10Gi"]) },
            "csi": { "driver": DRIVER, "volumeHandle": name },
        },
        "status": { "phase": "Available" },
    });
    if dice.chance(50) {
        let zones = dice.some(&["z1", "z2", "z3"], 2);
        volume["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": "zone", "operator": "In", "values": zones }],
        }] } });
    }
    if dice.chance(25) {
        let zone = dice.pick(&["z1", "z2", "z1__z2"]);
        volume["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into();
    }
    if dice.chance(10) {
        volume["metadata"]["labels"]["topology.kubernetes.io/region"] = "r1".into();
    }
    volume
}

fn drivers_of_node(dice: &mut Dice, node: &str) -> Value {
    let mut driver = json!({ "name": DRIVER, "nodeID": node, "topologyKeys": ["zone"] });
    if dice.chance(80) {
        driver["allocatable"] = json!({ "count": dice.between(1, 3) });
    }
    let google = json!({
        "name": "pd.csi.storage.gke.io", "nodeID": node, "topologyKeys": [],
        "allocatable": { "count": dice.between(0, 2) },
    });
    json!({
        "kind": "CSINode",
        "metadata": {
            "name": node,
            "annotations": {
                "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd",
            },
        },
        "spec": { "drivers": [driver, google] },
    })
}

/// Where a provisioner says it can still make volumes.
fn room(dice: &mut Dice, name: &str) -> Value {
    json!({
        "kind": "CSIStorageCapacity",
        "metadata": { "name": name, "namespace": NAMESPACES[1] },
        "storageClassName": "measured",
        "nodeTopology": { "matchLabels": { "zone": dice.pick(&["z1", "z2", "z3"]) } },
        "capacity": dice.pick(&["500Mi", "2Gi", "20Gi"]),
    })
}

/// Claims of the world, and disks that say themselves what they are.
pub fn of_pod(dice: &mut Dice, claims: &[String]) -> Value {
    let mut volumes = Vec::new();
    let places: Vec<usize> = (0..claims.len()).collect();
    let count = dice.between(0, 2).min(places.len());
    for place in dice.some(&places, count) {
        volumes.push(json!({
            "name": format!("v{place}"),
            "persistentVolumeClaim": { "claimName": claims[place] },
        }));
    }
    if dice.chance(15) {
        volumes.push(disk(dice));
    }
    if dice.chance(5) {
        volumes.push(json!({
            "name": "inline", "csi": { "driver": DRIVER },
        }));
    }
    if dice.chance(4) {
        volumes.push(
            json!({ "name": "own", "ephemeral": { "volumeClaimTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "made",
            "resources": { "requests": { "storage": "1Gi" } },
        } } } }),
        );
    }
    json!(volumes)
}

fn disk(dice: &mut Dice) -> Value {
    let number = dice.between(0, 1);
    let reads = dice.chance(50);
    match dice.between(0, 3) {
        0 => json!({ "name": "disk", "gcePersistentDisk": {
            "pdName": format!("pd{number}"), "readOnly": reads } }),
        1 => json!({ "name": "disk", "awsElasticBlockStore": {
            "volumeID": format!("vol{number}"), "readOnly": reads } }),
        2 => json!({ "name": "disk", "iscsi": {
            "targetPortal": "10.0.0.1:3260", "iqn": format!("iqn.2026-01.com.example:{number}"),
            "lun": 0, "readOnly": reads } }),
        _ => json!({ "name": "disk", "rbd": {
            "monitors": ["10.0.0.2"], "image": format!("i{number}"), "pool": "p",
            "readOnly": reads } }),
    }
}
