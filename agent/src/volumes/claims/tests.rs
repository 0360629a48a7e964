//! Claims that hold a pod up, and in which words.

use super::{Reference, bound, check_volume, group, is_for_one_pod, references};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn pod() -> Pod {
    of(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {
            "containers": [{
                "name": "main",
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data"},
                    {"name": "scratch", "mountPath": "/scratch"},
                ],
                "volumeDevices": [{"name": "raw", "devicePath": "/dev/raw"}],
            }],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "c", "readOnly": true}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"name": "raw", "persistentVolumeClaim": {"claimName": "r"}},
                {"name": "unused", "persistentVolumeClaim": {"claimName": "x"}},
                {"name": "plain", "emptyDir": {}},
            ],
        },
    }))
}

fn reference(volume: &str) -> Reference {
    let all = references(&pod()).into_iter();
    let mut all = all.filter(|one| one.volume == volume);
    all.next().unwrap()
}

fn claim() -> Value {
    json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "cu"},
        "spec": {"volumeName": "pv"},
        "status": {"phase": "Bound"},
    })
}

#[test]
fn claims_are_read_for_what_containers_use() {
    let of = |volume: &str, claim: &str, read_only, is_own| Reference {
        volume: volume.to_owned(),
        claim: claim.to_owned(),
        read_only,
        is_own,
    };
    let expected = [
        of("data", "c", true, false),
        of("scratch", "p-scratch", false, true),
        of("raw", "r", false, false),
    ];
    assert_eq!(references(&pod()), expected);
}

fn check_bound(volume: &str, change: impl FnOnce(&mut Value)) -> Result<String, String> {
    let mut value = claim();
    change(&mut value);
    let claim: PersistentVolumeClaim = of(value);
    bound(&pod(), &reference(volume), Some(&claim)).map(str::to_owned)
}

#[test]
fn a_claim_that_is_not_bound_holds_the_pod_up() {
    assert_eq!(check_bound("data", |_| ()).as_deref(), Ok("pv"));
    let said = |change: fn(&mut Value)| check_bound("data", change).unwrap_err();
    assert_eq!(
        said(|claim| claim["status"]["phase"] = json!("Pending")),
        "error processing PVC n/c: PVC is not bound"
    );
    assert_eq!(
        said(|claim| claim["spec"]["volumeName"] = json!("")),
        "error processing PVC n/c: PVC has empty pvc.Spec.VolumeName"
    );
    assert_eq!(
        said(|claim| claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
        "error processing PVC n/c: PVC is being deleted"
    );
    assert_eq!(
        bound(&pod(), &reference("data"), None).unwrap_err(),
        "error processing PVC n/c: failed to fetch PVC from API server: persistentvolumeclaims \
         \"c\" not found"
    );
}

/// Its pods go first.
#[test]
fn a_claim_that_is_deleted_but_protected_is_good() {
    let bound = check_bound("data", |claim| {
        claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        claim["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
    });
    assert_eq!(bound.as_deref(), Ok("pv"));
}

#[test]
fn a_claim_of_an_ephemeral_volume_must_be_the_pods_own() {
    let owned_by = |uid: &str| {
        check_bound("scratch", |claim| {
            claim["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true,
            }]);
        })
    };
    assert_eq!(owned_by("u").as_deref(), Ok("pv"));
    assert_eq!(
        owned_by("other").unwrap_err(),
        "PVC n/p-scratch was not created for pod n/p (pod is not owner)"
    );
}

fn check(volume: &str, spec: Value) -> Result<(), String> {
    let claim: PersistentVolumeClaim = of(claim());
    let pv: PersistentVolume = of(json!({"metadata": {"name": "pv"}, "spec": spec}));
    check_volume(&pod(), &reference(volume), &claim, "pv", Some(&pv))
}

#[test]
fn a_volume_must_be_the_claims_and_of_the_mode_that_it_is_used_in() {
    let mine = json!({"uid": "cu"});
    assert_eq!(check("data", json!({"claimRef": mine})), Ok(()));
    assert_eq!(
        check("data", json!({})).unwrap_err(),
        "error processing PVC n/c: found PV object pv but it has a nil pv.Spec.ClaimRef \
         indicating it is not yet bound to the claim"
    );
    assert_eq!(
        check("data", json!({"claimRef": {"uid": "x"}})).unwrap_err(),
        "error processing PVC n/c: found PV object pv but its pv.Spec.ClaimRef.UID x does not \
         point to claim.UID cu"
    );
    assert_eq!(
        check("data", json!({"claimRef": mine, "volumeMode": "Block"})).unwrap_err(),
        "volume data has volumeMode Block, but is specified in volumeMounts"
    );
    assert_eq!(
        check("raw", json!({"claimRef": mine})).unwrap_err(),
        "volume raw has volumeMode Filesystem, but is specified in volumeDevices"
    );
    let block = json!({"claimRef": mine, "volumeMode": "Block"});
    assert_eq!(check("raw", block), Ok(()));
}

#[test]
fn what_a_volume_says_of_its_users() {
    let volume = |modes: Value, group: &str| -> PersistentVolume {
        of(json!({
            "metadata": {"annotations": {"pv.beta.kubernetes.io/gid": group}},
            "spec": {"accessModes": modes},
        }))
    };
    assert_eq!(group(&volume(json!([]), "12")), Some(12));
    assert_eq!(group(&volume(json!([]), "0")), None);
    assert_eq!(group(&volume(json!([]), "wheel")), None);
    assert!(is_for_one_pod(&volume(json!(["ReadWriteOncePod"]), "")));
    let two = json!(["ReadWriteOncePod", "ReadOnlyMany"]);
    assert!(!is_for_one_pod(&volume(two, "")));
}
