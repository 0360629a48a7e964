use super::*;
use serde_json::json;

/// Encodes and decodes: what comes back must be the same.
fn check_round_trip(type_name: &str, api_version: &str, kind: &str, mut value: Value) {
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    let bytes = encode(&value, api_version, kind, type_name).unwrap();
    let (meta, back) = decode(&bytes).unwrap();
    assert_eq!(
        (meta.api_version, meta.kind),
        (api_version.to_owned(), kind.to_owned())
    );
    assert_eq!(back, value);
}

#[test]
fn options_are_known_in_every_group() {
    let options = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
    let type_name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    for api_version in ["v1", "apps/v1", "policy/v1"] {
        check_round_trip(type_name, api_version, "DeleteOptions", options.clone());
    }
}
