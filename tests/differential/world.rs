//! Random worlds: nodes, what runs on them, and a pod that wants a place. Pure: a seed is a world.
//!
//! Names of nodes and pods are never those of another world, so that what a scheduler has not yet
//! forgotten shows. Begin times of pods all differ, so that no two candidates of a preemption are
//! equally good.

mod dice;
mod nodes;
mod pods;
mod terms; // Selectors, affinities, spread constraints, tolerations.
mod volumes;

use dice::Dice;
use serde_json::{Value, json};

pub const NAMESPACES: [&str; 2] = ["d1", "d2"];
/// In an object's metadata: it is deleted when it was made, and takes its time.
pub const IS_GOING: &str = "isGoing";
const NODES_MAX: usize = 7;
const PODS_MAX: usize = 14;

/// What a world has more of than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Mixed,
    /// Full nodes, priorities, disruption budgets.
    Crowded,
    Volumes,
    /// Services and controllers, by whose pods others are spread.
    Owned,
}

pub struct World {
    seed: u64,
    pub objects: Vec<Value>,
    /// The one that wants a place; not among the objects.
    pub pod: Value,
}

impl World {
    pub fn of(seed: u64) -> Self {
        let flavours = [
            Flavour::Mixed,
            Flavour::Crowded,
            Flavour::Volumes,
            Flavour::Owned,
        ];
        Self::new(seed, flavours[seed as usize % flavours.len()])
    }

    /// Without priorities, so that nothing goes while pods come.
    pub fn peaceful(seed: u64) -> Self {
        let flavours = [Flavour::Mixed, Flavour::Owned];
        Self::new(seed, flavours[seed as usize % flavours.len()])
    }

    fn new(seed: u64, flavour: Flavour) -> Self {
        let mut dice = Dice::new(seed);
        let mut scene = pods::Scene {
            seed,
            flavour,
            nodes: dice.between(1, NODES_MAX),
            claims: Vec::new(),
        };
        let mut objects: Vec<Value> = (0..scene.nodes)
            .map(|number| nodes::node(&mut dice, seed, number, flavour))
            .collect();
        objects.extend(pods::owners(&mut dice, flavour));
        if flavour == Flavour::Volumes {
            let (made, claims) = volumes::volumes(&mut dice, seed, scene.nodes);
            objects.extend(made);
            scene.claims = claims;
        }
        if flavour == Flavour::Crowded {
            objects.extend(pods::budgets(&mut dice));
        }
        let count = match flavour {
            Flavour::Crowded => dice.between(scene.nodes * 2, scene.nodes * 4),
            _ => dice.between(0, PODS_MAX),
        };
        objects.extend((0..count).map(|number| pods::placed(&mut dice, &scene, number)));
        let pod = pods::waiting(&mut dice, &scene);
        Self { seed, objects, pod }
    }
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "world {}:", self.seed)?;
        for object in &self.objects {
            writeln!(f, "  {object}")?;
        }
        writeln!(f, "  waits: {}", self.pod)
    }
}

/// One more pod for a peaceful world.
pub fn next_pod(seed: u64, turn: usize) -> Value {
    let mut dice = Dice::new(seed * 1000 + turn as u64);
    let scene = pods::Scene {
        seed,
        flavour: Flavour::Mixed,
        nodes: NODES_MAX,
        claims: Vec::new(),
    };
    let mut pod = pods::waiting(&mut dice, &scene);
    pod["metadata"]["name"] = json!(format!("turn{turn}-{seed}"));
    let spec = pod["spec"].as_object_mut().expect("a spec");
    for field in ["schedulingGates", "priorityClassName", "preemptionPolicy"] {
        spec.remove(field);
    }
    pod
}

/// What all worlds share.
pub fn foundation() -> Vec<Value> {
    let mut objects = Vec::new();
    for (name, team) in NAMESPACES.iter().zip(["a", "b"]) {
        objects.push(json!({
            "kind": "Namespace", "metadata": { "name": name, "labels": { "team": team } },
        }));
        objects.push(json!({
            "kind": "ServiceAccount", "metadata": { "name": "default", "namespace": name },
        }));
    }
    for (name, value) in [("low", 10), ("middle", 100), ("high", 1000)] {
        objects.push(json!({
            "kind": "PriorityClass", "metadata": { "name": name }, "value": value,
        }));
    }
    objects.push(json!({
        "kind": "PriorityClass", "metadata": { "name": "polite" }, "value": 1000,
        "preemptionPolicy": "Never",
    }));
    objects.push(json!({
        "kind": "RuntimeClass", "metadata": { "name": "heavy" }, "handler": "heavy",
        "overhead": { "podFixed": { "cpu": "300m", "memory": "200Mi" } },
    }));
    objects.push(json!({
        "kind": "RuntimeClass", "metadata": { "name": "fast" }, "handler": "fast",
        "scheduling": {
            "nodeSelector": { "zone": "z1" },
            "tolerations": [{ "key": "k1", "operator": "Exists" }],
        },
    }));
    objects.extend(volumes::classes());
    objects
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

#[test]
fn a_seed_is_a_world() {
    assert_eq!(World::of(7).to_string(), World::of(7).to_string());
    assert_ne!(World::of(7).to_string(), World::of(11).to_string());
}
