//! A new node is not ready until it says so: without the taint, pods could land on it before the
//! node lifecycle controller has looked.

use super::{Attributes, Operation};
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::{Value, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

pub fn admit(node: &mut Object, asked: &Attributes<'_>) {
    if !asked.is_main("", "nodes") || asked.operation != Operation::Create {
        return;
    }
    let mut taints = node.list(&["spec", "taints"]).to_vec();
    let there = taints.iter().any(|taint| {
        json::text(taint, "key") == NOT_READY && json::text(taint, "effect") == EFFECT
    });
    if !there {
        taints.push(json!({ "key": NOT_READY, "effect": EFFECT }));
        node.set(&["spec", "taints"], Value::Array(taints));
    }
}
