//! Selectors, affinities, spread constraints and tolerations, by chance.

use super::NAMESPACES;
use super::dice::Dice;
use serde_json::{Value, json};

const APPS: [&str; 3] = ["a", "b", "c"];
const KEYS: [&str; 4] = ["zone", "kubernetes.io/hostname", "disk", "num"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn labels(dice: &mut Dice) -> Value {
    let mut labels = json!({ "app": dice.pick(&APPS) });
    if dice.chance(50) {
        labels["tier"] = dice.pick(&["x", "y"]).into();
    }
    labels
}

pub fn selector(dice: &mut Dice) -> Value {
    match dice.between(0, 9) {
        0..=5 => json!({ "matchLabels": { "app": dice.pick(&APPS) } }),
        6 | 7 => json!({ "matchExpressions": [{
            "key": "app", "operator": dice.pick(&["In", "NotIn"]), "values": dice.some(&APPS, 2),
        }] }),
        8 => json!({ "matchExpressions": [{
            "key": "tier", "operator": dice.pick(&["Exists", "DoesNotExist"]),
        }] }),
        _ => json!({}),
    }
}

/// Keys of the pod's labels that count like a part of the selector; never one that it has.
fn match_label_keys(dice: &mut Dice, term: &mut Value, field: &str) {
    if dice.chance(15) && !term.to_string().contains("tier") {
        term[field] = json!(["tier"]);
    }
}

fn pod_term(dice: &mut Dice) -> Value {
    let mut term = json!({ "topologyKey": dice.pick(&KEYS), "labelSelector": selector(dice) });
    match dice.between(0, 9) {
        0 | 1 => {
            let count = dice.between(1, 2);
            term["namespaces"] = json!(dice.some(&NAMESPACES, count));
        }
        2 | 3 => {
            let team = dice.pick(&["a", "b", "nobody"]);
            term["namespaceSelector"] = json!({ "matchLabels": { "team": team } });
        }
        4 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    match_label_keys(dice, &mut term, "matchLabelKeys");
    if term["matchLabelKeys"].is_null() {
        match_label_keys(dice, &mut term, "mismatchLabelKeys");
    }
    term
}

pub fn between_pods(dice: &mut Dice, affinity: &mut Value) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        if dice.chance(50) {
            continue;
        }
        let mut own = json!({});
        if dice.chance(50) {
            let terms = (0..dice.between(1, 2)).map(|_| pod_term(dice));
            own[REQUIRED] = terms.collect();
        }
        if dice.chance(60) {
            let terms = (0..dice.between(1, 2)).map(
                |_| json!({ "weight": dice.between(1, 100), "podAffinityTerm": pod_term(dice) }),
            );
            own[PREFERRED] = terms.collect();
        }
        affinity[kind] = own;
    }
}

pub fn node_selector_term(dice: &mut Dice, seed: u64) -> Value {
    if dice.chance(10) {
        let name = super::nodes::name(seed, dice.between(0, 3));
        let operator = dice.pick(&["In", "NotIn"]);
        return json!({ "matchFields": [{
            "key": "metadata.name", "operator": operator, "values": [name],
        }] });
    }
    let expressions = (0..dice.between(1, 2)).map(|_| match dice.between(0, 9) {
        0..=3 => {
            let count = dice.between(1, 2);
            let values = dice.some(&["z1", "z2", "z3"], count);
            json!({ "key": "zone", "operator": dice.pick(&["In", "NotIn"]), "values": values })
        }
        4 | 5 => json!({ "key": "disk", "operator": dice.pick(&["Exists", "DoesNotExist"]) }),
        6 | 7 => {
            let number = dice.between(1, 5).to_string();
            json!({ "key": "num", "operator": dice.pick(&["Gt", "Lt"]), "values": [number] })
        }
        _ => json!({ "key": "disk", "operator": "In", "values": ["ssd"] }),
    });
    json!({ "matchExpressions": expressions.collect::<Vec<_>>() })
}

pub fn to_nodes(dice: &mut Dice, seed: u64, affinity: &mut Value) {
    let mut own = json!({});
    if dice.chance(60) {
        let terms = (0..dice.between(1, 2)).map(|_| node_selector_term(dice, seed));
        own[REQUIRED] = json!({ "nodeSelectorTerms": terms.collect::<Vec<_>>() });
    }
    if dice.chance(60) {
        let terms = (0..dice.between(1, 3)).map(|_| {
            json!({ "weight": dice.between(1, 100), "preference": node_selector_term(dice, seed) })
        });
        own[PREFERRED] = terms.collect();
    }
    affinity["nodeAffinity"] = own;
}

/// No two of one key and kind: the API refuses those.
pub fn spread(dice: &mut Dice) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for _ in 0..dice.between(1, 3) {
        let one = constraint(dice);
        let is_same = |other: &Value| {
            ["topologyKey", "whenUnsatisfiable"]
                .iter()
                .all(|field| one[*field] == other[*field])
        };
        if !all.iter().any(is_same) {
            all.push(one);
        }
    }
    json!(all)
}

fn constraint(dice: &mut Dice) -> Value {
    let is_hard = dice.chance(50);
    let mut one = json!({
        "maxSkew": dice.between(1, 3),
        "topologyKey": dice.pick(&KEYS),
        "whenUnsatisfiable": if is_hard { "DoNotSchedule" } else { "ScheduleAnyway" },
        "labelSelector": selector(dice),
    });
    if is_hard && dice.chance(30) {
        one["minDomains"] = json!(dice.between(1, 4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if dice.chance(35) {
            one[policy] = dice.pick(&["Honor", "Ignore"]).into();
        }
    }
    match_label_keys(dice, &mut one, "matchLabelKeys");
    one
}

pub fn tolerations(dice: &mut Dice) -> Value {
    let one = |dice: &mut Dice| match dice.between(0, 3) {
        0 => json!({ "key": "k1", "operator": "Exists" }),
        1 => json!({ "key": "k2", "operator": "Equal", "value": "v", "effect": "NoSchedule" }),
        2 => json!({ "operator": "Exists" }),
        _ => json!({ "key": "k1", "operator": "Equal", "value": "v" }),
    };
    (0..dice.between(1, 2)).map(|_| one(dice)).collect()
}
