//! Short forms in the spec of a pod:
//!
//! - `near`, `far`: lists of `SELECTOR by TOPOLOGY`, required; with a number before it, a wish.
//!   `SELECTOR` is requirements with `and` between, each `KEY OPERATOR [VALUES]`; then may come
//!   `in NAMESPACE` or `of KEY=VALUE`, of namespaces.
//! - `on`: a list of `KEY OPERATOR [VALUES]` that the node must meet; `wish` the same with a weight.
//! - `spread`: a list of `SKEW KEY LABEL [soft] [min=N] [nodes=POLICY] [taints=POLICY] [keys=KEY]`.

use serde_json::{Value, json};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn expanded(mut spec: Value) -> Value {
    let mut take = |key: &str| -> Vec<String> {
        let taken = spec.as_object_mut().and_then(|spec| spec.remove(key));
        taken
            .map(|list| serde_json::from_value(list).unwrap())
            .unwrap_or_default()
    };
    let (near, far) = (take("near"), take("far"));
    let (on, wish, spread) = (take("on"), take("wish"), take("spread"));
    let mut affinity = json!({});
    for (key, list) in [("podAffinity", near), ("podAntiAffinity", far)] {
        if !list.is_empty() {
            affinity[key] = between(&list);
        }
    }
    if !on.is_empty() {
        let all: Vec<Value> = on.iter().map(|one| requirement(one)).collect();
        let terms = json!([{ "matchExpressions": all }]);
        affinity["nodeAffinity"][REQUIRED] = json!({ "nodeSelectorTerms": terms });
    }
    if !wish.is_empty() {
        let all = wish.iter().map(|one| {
            let (weight, rest) = weight(one);
            let preference = json!({ "matchExpressions": [requirement(rest)] });
            json!({ "weight": weight, "preference": preference })
        });
        affinity["nodeAffinity"][PREFERRED] = all.collect();
    }
    spec["affinity"] = affinity;
    if !spread.is_empty() {
        spec["topologySpreadConstraints"] = spread.iter().map(|one| constraint(one)).collect();
    }
    spec
}

fn weight(text: &str) -> (Option<i32>, &str) {
    match text.split_once(' ') {
        Some((first, rest)) if first.parse::<i32>().is_ok() => (first.parse().ok(), rest),
        _ => (None, text),
    }
}

fn between(list: &[String]) -> Value {
    let (mut required, mut preferred) = (Vec::new(), Vec::new());
    for one in list {
        match weight(one) {
            (Some(weight), rest) => {
                preferred.push(json!({ "weight": weight, "podAffinityTerm": term(rest) }));
            }
            (None, rest) => required.push(term(rest)),
        }
    }
    json!({ REQUIRED: required, PREFERRED: preferred })
}

fn term(text: &str) -> Value {
    let (who, by) = text.split_once(" by ").unwrap();
    let mut words = by.split_whitespace();
    let all: Vec<Value> = who.split(" and ").map(requirement).collect();
    let mut term = json!({
        "topologyKey": words.next(), "labelSelector": { "matchExpressions": all },
    });
    match (words.next(), words.next()) {
        (Some("in"), namespace) => term["namespaces"] = json!([namespace]),
        (Some("of"), Some(pair)) => {
            let (key, value) = pair.split_once('=').unwrap();
            term["namespaceSelector"] = json!({ "matchLabels": { key: value } });
        }
        _ => {}
    }
    term
}

fn requirement(text: &str) -> Value {
    let mut words = text.split_whitespace();
    let mut one = json!({ "key": words.next(), "operator": words.next() });
    if let Some(values) = words.next() {
        one["values"] = values.split(',').collect();
    }
    one
}

fn constraint(text: &str) -> Value {
    let words: Vec<&str> = text.split_whitespace().collect();
    let skew: i32 = words[0].parse().unwrap();
    let mut one = json!({
        "maxSkew": skew, "topologyKey": words[1], "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchExpressions": [{ "key": words[2], "operator": "Exists" }] },
    });
    if words[2] == "all" {
        one["labelSelector"] = json!({});
    }
    for word in &words[3..] {
        match word.split_once('=') {
            None => one["whenUnsatisfiable"] = "ScheduleAnyway".into(),
            Some(("min", number)) => one["minDomains"] = json!(number.parse::<i32>().unwrap()),
            Some(("nodes", policy)) => one["nodeAffinityPolicy"] = policy.into(),
            Some(("taints", policy)) => one["nodeTaintsPolicy"] = policy.into(),
            Some((_, key)) => one["matchLabelKeys"] = json!([key]),
        }
    }
    one
}
