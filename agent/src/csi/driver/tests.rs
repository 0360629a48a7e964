//! What drivers say is done, and what they leave open is upstream's.

use super::{Driver, Lifecycle};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn driver(spec: Value) -> Driver {
    let object = json!({"metadata": {"name": "d"}, "spec": spec});
    Driver::new("d", Some(serde_json::from_value(object).unwrap()))
}

fn unknown() -> Driver {
    Driver::new("d", None)
}

#[test]
fn attachment_is_needed_unless_the_driver_says_otherwise() {
    assert!(unknown().is_attached());
    assert!(driver(json!({})).is_attached());
    assert!(!driver(json!({"attachRequired": false})).is_attached());
}

#[test]
fn volumes_that_live_with_their_pod_must_be_offered() {
    assert_eq!(unknown().check(Lifecycle::Persistent), Ok(()));
    assert_eq!(
        unknown().check(Lifecycle::Ephemeral).unwrap_err(),
        "volume mode \"Ephemeral\" not supported by driver d (no CSIDriver object)"
    );
    let persistent = driver(json!({"volumeLifecycleModes": ["Persistent"]}));
    assert_eq!(persistent.check(Lifecycle::Persistent), Ok(()));
    assert_eq!(
        persistent.check(Lifecycle::Ephemeral).unwrap_err(),
        "volume mode \"Ephemeral\" not supported by driver d (only supports [\"Persistent\"])"
    );
    let ephemeral = driver(json!({"volumeLifecycleModes": ["Ephemeral"]}));
    assert_eq!(ephemeral.check(Lifecycle::Ephemeral), Ok(()));
    assert!(ephemeral.check(Lifecycle::Persistent).is_err());
}

#[test]
fn the_group_is_given_by_the_drivers_policy() {
    let once = [String::from("ReadWriteOnce")];
    let many = [String::from("ReadWriteMany")];
    let usual = unknown();
    assert!(usual.gives_group("ext4", Some(&once), false));
    assert!(!usual.gives_group("ext4", Some(&many), false));
    assert!(!usual.gives_group("", Some(&once), false));
    assert!(!usual.gives_group("ext4", Some(&once), true));
    assert!(usual.gives_group("ext4", None, false));
    let file = driver(json!({"fsGroupPolicy": "File"}));
    assert!(file.gives_group("", Some(&many), false));
    assert!(!file.gives_group("", Some(&many), true));
    let none = driver(json!({"fsGroupPolicy": "None"}));
    assert!(!none.gives_group("ext4", Some(&once), false));
}

#[test]
fn the_pod_is_told_of_when_it_is_asked_for() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [], "serviceAccountName": "robot"},
    }))
    .unwrap();
    let quiet = driver(json!({}));
    assert!(quiet.pod_attributes(&pod, Lifecycle::Persistent).is_empty());
    let curious = driver(json!({"podInfoOnMount": true}));
    let told = curious.pod_attributes(&pod, Lifecycle::Ephemeral);
    let told: Vec<String> = told.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let expected = [
        "csi.storage.k8s.io/ephemeral=true",
        "csi.storage.k8s.io/pod.name=p",
        "csi.storage.k8s.io/pod.namespace=n",
        "csi.storage.k8s.io/pod.uid=u",
        "csi.storage.k8s.io/serviceAccount.name=robot",
    ];
    assert_eq!(told, expected);
}
