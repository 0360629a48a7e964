//! Pods stay five minutes on a node that is not ready or out of reach, unless they say otherwise.

use super::{Attributes, Operation};
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::{Value, json};

const TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];
const EFFECT: &str = "NoExecute";
/// Upstream's default of `--default-not-ready-toleration-seconds` and its sister.
const SECONDS: i64 = 300;

pub fn admit(pod: &mut Object, asked: &Attributes<'_>) {
    let writes = matches!(asked.operation, Operation::Create | Operation::Update);
    if !asked.is_main("", "pods") || !writes {
        return;
    }
    let mut tolerations = pod.list(&["spec", "tolerations"]).to_vec();
    let before = tolerations.len();
    for taint in TAINTS {
        let tolerated = tolerations.iter().any(|toleration| {
            let (key, effect) = (
                json::text(toleration, "key"),
                json::text(toleration, "effect"),
            );
            (key == taint || key.is_empty()) && (effect == EFFECT || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(json!({
                "key": taint,
                "operator": "Exists",
                "effect": EFFECT,
                "tolerationSeconds": SECONDS,
            }));
        }
    }
    if tolerations.len() > before {
        pod.set(&["spec", "tolerations"], Value::Array(tolerations));
    }
}
