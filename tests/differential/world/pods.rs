//! Pods that are somewhere, the one that waits, and what owns and guards them.

use super::dice::Dice;
use super::{Flavour, IS_GOING, NAMESPACES, nodes, terms, volumes};
use serde_json::{Value, json};

const IMAGES: [&str; 3] = ["app:1", "big:2", "busybox"];
const GPU: &str = "example.com/gpu";

/// What pods of a world can refer to.
pub struct Scene {
    pub seed: u64,
    pub flavour: Flavour,
    pub nodes: usize,
    /// In the first namespace.
    pub claims: Vec<String>,
}

/// Services and controllers without pods of their own: those that say so are.
pub fn owners(dice: &mut Dice, flavour: Flavour) -> Vec<Value> {
    let mut objects = Vec::new();
    let likely = if flavour == Flavour::Owned { 80 } else { 20 };
    for namespace in NAMESPACES {
        let meta = |name: &str| json!({ "name": name, "namespace": namespace });
        if dice.chance(likely) {
            objects.push(json!({
                "kind": "Service", "metadata": meta("s"),
                "spec": { "selector": terms::labels(dice), "ports": [{ "port": 80 }] },
            }));
        }
        let labels = terms::labels(dice);
        let template = json!({
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "c", "image": "app:1" }] },
        });
        if flavour == Flavour::Owned {
            objects.push(json!({
                "kind": "ReplicaSet", "metadata": meta("rs"),
                "spec": { "replicas": 0, "selector": { "matchLabels": labels },
                          "template": template },
            }));
            objects.push(json!({
                "kind": "ReplicationController", "metadata": meta("rc"),
                "spec": { "replicas": 0, "selector": labels, "template": template },
            }));
        }
    }
    objects
}

pub fn budgets(dice: &mut Dice) -> Vec<Value> {
    let mut objects = Vec::new();
    for number in 0..dice.between(0, 3) {
        objects.push(json!({
            "kind": "PodDisruptionBudget",
            "metadata": { "name": format!("b{number}"), "namespace": dice.pick(&NAMESPACES) },
            "spec": { "minAvailable": 1, "selector": terms::selector(dice) },
            "status": {
                "disruptionsAllowed": dice.between(0, 2), "currentHealthy": 3,
                "desiredHealthy": 1, "expectedPods": 3, "observedGeneration": 1,
            },
        }));
    }
    objects
}

pub fn placed(dice: &mut Dice, scene: &Scene, number: usize) -> Value {
    let name = format!("p{number}-{}", scene.seed);
    let mut pod = pod(dice, scene, &name);
    let node = dice.between(0, scene.nodes - 1);
    pod["spec"]["nodeName"] = nodes::name(scene.seed, node).into();
    let mut affinity = json!({});
    if dice.chance(if scene.flavour == Flavour::Crowded {
        10
    } else {
        35
    }) {
        terms::between_pods(dice, &mut affinity);
    }
    pod["spec"]["affinity"] = affinity;
    let likely = if scene.flavour == Flavour::Crowded {
        70
    } else {
        25
    };
    if scene.flavour != Flavour::Owned && dice.chance(likely) {
        pod["spec"]["priorityClassName"] = dice.pick(&["low", "low", "middle", "high"]).into();
    }
    pod["status"] = json!({
        "phase": if dice.chance(5) { "Succeeded" } else { "Running" },
        "startTime": format!("2026-01-01T00:{:02}:{:02}Z", number, dice.between(0, 59)),
    });
    if dice.chance(8) {
        pod["status"]["containerStatuses"] = json!([resized(dice)]);
        if dice.chance(30) {
            pod["status"]["conditions"] = json!([{
                "type": "PodResizePending", "status": "True",
                "reason": dice.pick(&["Infeasible", "Deferred"]),
            }]);
        }
    }
    if dice.chance(5) && pod["status"]["phase"] == "Running" {
        pod["metadata"][IS_GOING] = true.into();
        pod["spec"]["terminationGracePeriodSeconds"] = 3600.into();
    }
    pod
}

/// What the node says of the first container, which was or is to be resized.
fn resized(dice: &mut Dice) -> Value {
    let mut status = json!({
        "name": "c0", "image": "app:1", "imageID": "", "ready": true, "restartCount": 0,
    });
    let cpus = ["50m", "300m", "1", "1500m"];
    if dice.chance(70) {
        status["allocatedResources"] = json!({ "cpu": dice.pick(&cpus) });
    }
    if dice.chance(80) {
        status["resources"] = json!({ "requests": {
            "cpu": dice.pick(&cpus), "memory": dice.pick(&["50Mi", "700Mi"]),
        } });
    }
    status
}

pub fn waiting(dice: &mut Dice, scene: &Scene) -> Value {
    let name = format!("waits-{}", scene.seed);
    let mut pod = pod(dice, scene, &name);
    let mut affinity = json!({});
    let is_crowded = scene.flavour == Flavour::Crowded;
    if dice.chance(if is_crowded { 25 } else { 50 }) {
        terms::between_pods(dice, &mut affinity);
    }
    if dice.chance(if is_crowded { 15 } else { 40 }) {
        terms::to_nodes(dice, scene.seed, &mut affinity);
    }
    pod["spec"]["affinity"] = affinity;
    if dice.chance(12) {
        pod["spec"]["nodeSelector"] = json!({ "disk": dice.pick(&["ssd", "hdd"]) });
    }
    let spread = match scene.flavour {
        Flavour::Mixed => 50,
        Flavour::Crowded | Flavour::Volumes => 20,
        // The default constraints are for pods without any.
        Flavour::Owned => 10,
    };
    if dice.chance(spread) {
        pod["spec"]["topologySpreadConstraints"] = terms::spread(dice);
    }
    if dice.chance(50) {
        pod["spec"]["tolerations"] = terms::tolerations(dice);
    }
    if dice.chance(3) {
        pod["spec"]["schedulingGates"] = json!([{ "name": "example.com/own" }]);
    }
    if is_crowded && dice.chance(85) {
        pod["spec"]["priorityClassName"] = dice.pick(&["middle", "high", "high"]).into();
    } else if dice.chance(20) {
        pod["spec"]["priorityClassName"] = dice.pick(&["high", "polite"]).into();
    }
    pod
}

fn pod(dice: &mut Dice, scene: &Scene, name: &str) -> Value {
    let namespace = match scene.claims.is_empty() {
        true => dice.pick(&NAMESPACES),
        false => NAMESPACES[0],
    };
    let mut spec = json!({ "terminationGracePeriodSeconds": 0 });
    let containers = (0..dice.between(1, 2)).map(|number| {
        let mut one = container(dice, scene.flavour, &format!("c{number}"));
        // The API has no port twice.
        if number == 0 && dice.chance(20) {
            one["ports"] = json!([port(dice)]);
        }
        one
    });
    spec["containers"] = containers.collect();
    if dice.chance(20) {
        let inits = (0..dice.between(1, 2)).map(|number| {
            let mut one = container(dice, scene.flavour, &format!("i{number}"));
            if dice.chance(50) {
                one["restartPolicy"] = "Always".into();
            }
            one
        });
        spec["initContainers"] = inits.collect();
    }
    // Where only the end of others is to decide, few pods fit nowhere for other reasons.
    let rare = if scene.flavour == Flavour::Crowded {
        3
    } else {
        12
    };
    if dice.chance(rare) {
        spec["runtimeClassName"] = dice.pick(&["heavy", "heavy", "fast"]).into();
    }
    if dice.chance(4) {
        spec["containers"][0]["restartPolicyRules"] = json!([{
            "action": "RestartAllContainers",
            "exitCodes": { "operator": "In", "values": [42] },
        }]);
        spec["containers"][0]["restartPolicy"] = "Always".into();
    }
    if dice.chance(rare) && spec["initContainers"].is_null() {
        // More than what two containers may ask for together.
        spec["resources"] = json!({ "requests": { "cpu": "7", "memory": "7Gi" } });
        if dice.chance(50) {
            spec["resources"] = json!({ "requests": { "cpu": "6500m" } });
        }
    }
    if scene.flavour == Flavour::Volumes {
        spec["volumes"] = volumes::of_pod(dice, &scene.claims);
    }
    let mut meta = json!({
        "name": name, "namespace": namespace, "labels": terms::labels(dice),
    });
    if scene.flavour == Flavour::Owned && dice.chance(70) {
        let (version, kind, owner) = dice.pick(&[
            ("apps/v1", "ReplicaSet", "rs"),
            ("v1", "ReplicationController", "rc"),
        ]);
        meta["ownerReferences"] = json!([{
            "apiVersion": version, "kind": kind, "name": owner, "controller": true,
        }]);
    }
    json!({ "kind": "Pod", "metadata": meta, "spec": spec })
}

fn container(dice: &mut Dice, flavour: Flavour, name: &str) -> Value {
    let mut requests = json!({});
    let mut limits = json!({});
    if dice.chance(65) {
        requests["cpu"] = dice.pick(&["100m", "300m", "500m", "1", "2"]).into();
    }
    if dice.chance(50) {
        requests["memory"] = dice.pick(&["64Mi", "300Mi", "500Mi", "1Gi", "3Gi"]).into();
    }
    let rare = if flavour == Flavour::Crowded { 1 } else { 8 };
    if dice.chance(rare) {
        requests["ephemeral-storage"] = dice.pick(&["100Mi", "2Gi"]).into();
    }
    if dice.chance(rare) {
        requests[GPU] = "1".into();
        limits[GPU] = "1".into();
    }
    json!({
        "name": name, "image": dice.pick(&IMAGES),
        "resources": { "requests": requests, "limits": limits },
    })
}

fn port(dice: &mut Dice) -> Value {
    let mut port = json!({
        "containerPort": 80,
        "hostPort": dice.pick(&[80, 81]),
        "protocol": dice.pick(&["TCP", "UDP"]),
    });
    if dice.chance(30) {
        port["hostIP"] = dice.pick(&["127.0.0.1", "127.0.0.2", "0.0.0.0"]).into();
    }
    port
}
