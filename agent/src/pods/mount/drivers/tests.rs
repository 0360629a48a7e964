//! A volume grows when its claim knows less.

use super::growth;
use serde_json::{Value, json};

fn grows(capacity: Value, known: Value) -> Option<i64> {
    let volume = json!({"metadata": {}, "spec": {"capacity": capacity}});
    let claim = json!({"metadata": {}, "status": {"capacity": known}});
    let claim = serde_json::from_value(claim).unwrap();
    let volume = serde_json::from_value(volume).unwrap();
    growth(&claim, &volume).map(|(bytes, _)| bytes)
}

#[test]
fn a_volume_that_is_larger_than_its_claim_knows_is_told_of() {
    let size = |text: &str| json!({ "storage": text });
    assert_eq!(grows(size("2Gi"), size("1Gi")), Some(2 << 30));
    assert_eq!(grows(size("1Gi"), size("1024Mi")), None);
    assert_eq!(grows(size("1Gi"), size("2Gi")), None);
    assert_eq!(grows(size("1Gi"), json!({})), Some(1 << 30));
    assert_eq!(grows(json!({}), size("1Gi")), None);
}
