//! Nodes: zones, taints, cordons, images, and what they have room for.

use super::Flavour;
use super::dice::Dice;
use serde_json::{Value, json};

/// Name and bytes.
const IMAGES: [(&str, u64); 3] = [
    ("docker.io/library/app:1", 300_000_000),
    ("docker.io/library/big:2", 1_500_000_000),
    ("docker.io/library/busybox:latest", 2_000_000),
];

pub fn name(seed: u64, number: usize) -> String {
    format!("n{number}-{seed}")
}

pub fn node(dice: &mut Dice, seed: u64, number: usize, flavour: Flavour) -> Value {
    let name = name(seed, number);
    let mut labels = json!({ "kubernetes.io/hostname": name });
    let mut label = |dice: &mut Dice, percent, key: &str, values: &[&str]| {
        if dice.chance(percent) {
            labels[key] = dice.pick(values).into();
        }
    };
    label(dice, 80, "zone", &["z1", "z2", "z3"]);
    label(dice, 70, "disk", &["ssd", "hdd"]);
    label(dice, 70, "num", &["1", "2", "3", "4", "5"]);
    label(dice, 60, "topology.kubernetes.io/zone", &["z1", "z2"]);
    label(dice, 30, "topology.kubernetes.io/region", &["r1", "r2"]);
    let mut spec = json!({});
    let tainted = if flavour == Flavour::Mixed { 35 } else { 12 };
    if dice.chance(tainted) {
        let count = dice.between(1, 2);
        let keys = dice.some(&["k1", "k2"], count);
        let effects = ["NoSchedule", "NoExecute", "PreferNoSchedule"];
        let taints = keys
            .iter()
            .map(|key| json!({ "key": key, "value": "v", "effect": dice.pick(&effects) }));
        spec["taints"] = taints.collect();
    }
    if dice.chance(8) {
        spec["unschedulable"] = true.into();
    }
    json!({
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": spec,
        "status": status(dice, flavour),
    })
}

fn status(dice: &mut Dice, flavour: Flavour) -> Value {
    let pods: &[&str] = match flavour {
        Flavour::Crowded => &["2", "3", "4"],
        _ => &["2", "4", "10", "110"],
    };
    let mut amounts = json!({
        "cpu": dice.pick(&["1", "1500m", "2", "4", "8"]),
        "memory": dice.pick(&["1Gi", "4Gi", "16Gi"]),
        "pods": dice.pick(pods),
    });
    if dice.chance(30) {
        amounts["example.com/gpu"] = dice.pick(&["1", "2"]).into();
    }
    if dice.chance(50) {
        amounts["ephemeral-storage"] = dice.pick(&["1Gi", "10Gi"]).into();
    }
    let mut images = Vec::new();
    for (image, bytes) in IMAGES {
        if dice.chance(50) {
            images.push(json!({ "names": [image], "sizeBytes": bytes }));
        }
    }
    let mut features = Vec::new();
    if dice.chance(80) {
        features.push("RestartAllContainersOnContainerExits");
    }
    json!({
        "declaredFeatures": features,
        "allocatable": amounts,
        "capacity": amounts,
        "images": images,
        "conditions": [{ "type": "Ready", "status": "True" }],
    })
}
