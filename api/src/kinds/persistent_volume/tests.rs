//! Defaults, validation, updates, times, warnings and cells of a PersistentVolume.

use crate::kinds::testing::{check_errors, check_row, object, resource, update_errors};
use crate::resource::{Part, Requester};
use expect_test::expect;
use serde_json::{Value, json};

const NOW: &str = "2030-01-01T00:00:00Z";

fn volume() -> Value {
    json!({
        "metadata": { "name": "pv", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": {
            "capacity": { "storage": "1024Mi" },
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "claimRef": { "namespace": "ns", "name": "claim" }, "storageClassName": "fast",
            "hostPath": { "path": "/data" },
        },
    })
}

#[test]
fn printed() {
    check_row(
        "persistentvolumes",
        volume(),
        60,
        expect![[r#"
        Name: pv
        Capacity: 1Gi
        Access Modes: RWO,RWX
        Reclaim Policy: Retain
        Status: Pending
        Claim: ns/claim
        StorageClass: fast
        VolumeAttributesClass: <unset>
        Reason: 
        Age: 60s
        VolumeMode: Filesystem"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = volume();
    bad["metadata"]["annotations"] = json!({ "volume.beta.kubernetes.io/mount-options": "ro" });
    bad["spec"] = json!({
        "capacity": { "storage": "0", "cpu": "1" },
        "accessModes": ["ReadWriteOncePod", "ReadWriteOnce", "Sometimes"],
        "persistentVolumeReclaimPolicy": "Recycle", "volumeMode": "Tape",
        "storageClassName": "A", "volumeAttributesClassName": "",
        "nodeAffinity": {},
        "hostPath": { "path": "/", "type": "Hole" }, "nfs": { "server": "a", "path": "b" },
    });
    check_errors(
        "persistentvolumes",
        bad,
        expect![[r#"
        spec.accessModes: Unsupported value: "Sometimes": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
        spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
        spec.capacity: Unsupported value: {"cpu":"1","storage":"0"}: supported values: "storage"
        spec.capacity[storage]: Invalid value: "0": must be greater than zero
        spec.nodeAffinity.required: Required value: must specify required node constraints
        spec.hostPath.type: Unsupported value: "Hole": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"
        spec.nfs: Forbidden: may not specify more than 1 volume type
        spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'
        spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"
        spec.volumeAttributesClassName: Required value: an empty string is disallowed
        spec.csi: Required value: has to be specified when using volumeAttributesClassName"#]],
    );
    let mut none = volume();
    none["spec"] = json!({});
    check_errors(
        "persistentvolumes",
        none,
        expect![[r#"
        spec.accessModes: Required value
        spec.capacity: Required value
        spec.capacity: Unsupported value: null: supported values: "storage"
        spec: Required value: must specify a volume type"#]],
    );
}

#[test]
fn sources_are_looked_at() {
    let mut local = volume();
    local["spec"].as_object_mut().unwrap().remove("hostPath");
    local["spec"]["local"] = json!({ "path": "/a/../b" });
    local["spec"]["csi"] = json!({ "driver": "d" });
    check_errors(
        "persistentvolumes",
        local.clone(),
        expect![[r#"
        spec.local.path: Invalid value: "/a/../b": must not contain '..'
        spec.nodeAffinity: Required value: Local volume requires node affinity
        spec.csi: Forbidden: may not specify more than 1 volume type"#]],
    );
    local["spec"].as_object_mut().unwrap().remove("local");
    local["spec"]["csi"]["nodeStageSecretRef"] = json!({});
    local["spec"]["csi"]["nodePublishSecretRef"] = json!({ "name": "A" });
    check_errors(
        "persistentvolumes",
        local,
        expect![[r#"
        spec.csi.volumeHandle: Required value
        spec.csi.nodePublishSecretRef.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.csi.nodePublishSecretRef.namespace: Required value"#]],
    );
}

#[test]
fn what_a_volume_is_made_of_stays() {
    let mut new = volume();
    new["spec"]["hostPath"]["path"] = "/other".into();
    new["spec"]["volumeMode"] = "Block".into();
    update_errors(
        "persistentvolumes",
        new,
        volume(),
        Part::Main,
        expect![[r#"
        spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation
        - hostPath.path: "/data"
        + hostPath.path: "/other"

        volumeMode: Invalid value: "Block": field is immutable"#]],
    );
}

#[test]
fn the_server_notes_when_the_phase_changes() {
    let rules = resource("persistentvolumes").rules;
    let time = |phase: &str| {
        let mut new = object(volume());
        let mut old = object(volume());
        let status = |phase: &str| json!({ "phase": phase, "lastPhaseTransitionTime": "before" });
        old.set(&["status"], status("Pending"));
        new.set(&["status"], status(phase));
        rules.stamp(
            &mut new,
            Some(&old),
            Part::Status,
            &Requester::default(),
            NOW,
        );
        new.str(&["status", "lastPhaseTransitionTime"]).to_owned()
    };
    assert_eq!(time("Pending"), "before");
    assert_eq!(time("Bound"), NOW);
}

#[test]
fn old_ways_are_warned_of() {
    let mut old = volume();
    old["spec"]["persistentVolumeReclaimPolicy"] = "Recycle".into();
    old["spec"]["rbd"] = json!({});
    let warnings = resource("persistentvolumes").rules.warnings(&object(old));
    expect![[r#"
        spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.
        spec.rbd: deprecated in v1.28, non-functional in v1.31+"#]].assert_eq(&warnings.join("\n"));
}
