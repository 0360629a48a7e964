use super::*;
use serde_json::json;

fn asked(mount: serde_json::Value, is_supported: bool) -> Result<bool, String> {
    let mut mount = mount;
    mount["name"] = json!("data");
    mount["mountPath"] = json!("/data");
    recursive_read_only(&serde_json::from_value(mount).unwrap(), is_supported)
}

#[test]
fn recursive_read_only_is_as_the_kernel_can() {
    let mode = |mode: &str| json!({ "readOnly": true, "recursiveReadOnly": mode });
    assert_eq!(asked(json!({ "readOnly": true }), true), Ok(false));
    assert_eq!(asked(mode("Disabled"), true), Ok(false));
    assert_eq!(asked(mode("IfPossible"), true), Ok(true));
    assert_eq!(asked(mode("IfPossible"), false), Ok(false));
    assert_eq!(asked(mode("Enabled"), true), Ok(true));
    let asked_for = "volume \"data\" requested recursive read-only mode, but it is ";
    assert_eq!(
        asked(mode("Enabled"), false).unwrap_err(),
        format!("{asked_for}not supported by the runtime")
    );
    assert_eq!(
        asked(json!({ "recursiveReadOnly": "Enabled" }), true).unwrap_err(),
        format!("{asked_for}not read-only")
    );
    let mut propagated = mode("Enabled");
    propagated["mountPropagation"] = json!("HostToContainer");
    assert_eq!(
        asked(propagated, true).unwrap_err(),
        format!("{asked_for}not compatible with propagation \"HostToContainer\"")
    );
    assert!(asked(mode("Odd"), true).unwrap_err().contains("unknown"));
}
