//! What claims get and what becomes of volumes, as text; and the loop against a server in memory.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::fixture_text::option;

mod running;

pub(super) fn claim(words: &[&str]) -> Value {
    let mut meta = json!({"name": "data", "namespace": "default", "uid": "u1",
        "annotations": {}});
    let mut spec = json!({"accessModes": [option(words, "mode").unwrap_or("ReadWriteOnce")],
        "storageClassName": "local-path", "resources": {"requests": {"storage": "1Gi"}}});
    if option(words, "unasked").is_none() {
        meta["annotations"][volumes::PROVISIONER] = json!(volumes::LOCAL_PATH);
    }
    if let Some(node) = option(words, "node") {
        meta["annotations"][SELECTED_NODE] = json!(node);
    }
    if let Some(volume) = option(words, "volume") {
        spec["volumeName"] = json!(volume);
    }
    if option(words, "block").is_some() {
        spec["volumeMode"] = json!("Block");
    }
    json!({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
}

pub(super) fn node(name: &str, words: &[&str]) -> Value {
    let mut meta = json!({"name": name, "labels": {"kubernetes.io/hostname": format!("{name}-host")},
        "annotations": {}});
    if let Some(directory) = option(words, "directory") {
        meta["annotations"][volumes::LOCAL_PATH_DIRECTORY] = json!(directory);
    }
    let ready = if words.contains(&"away") {
        "Unknown"
    } else {
        "True"
    };
    json!({"metadata": meta, "status": {"conditions": [{"type": "Ready", "status": ready}]}})
}

pub(super) fn volume(words: &[&str]) -> Value {
    let policy = option(words, "policy").unwrap_or("Delete");
    let mut meta = json!({"name": "pvc-u1", "uid": "v1", "resourceVersion": "1",
        "finalizers": ["external-provisioner.volume.kubernetes.io/finalizer"],
        "annotations": {volumes::PROVISIONED_BY: volumes::LOCAL_PATH,
            "coracle.io/local-path-node": "a"}});
    if words.contains(&"foreign") {
        meta["annotations"][volumes::PROVISIONED_BY] = json!("example.com/p");
    }
    if words.contains(&"free") {
        meta["finalizers"] = json!([]);
    }
    if words.contains(&"protected") {
        let finalizers = meta["finalizers"].as_array_mut().unwrap();
        finalizers.push(json!("kubernetes.io/pv-protection"));
    }
    if let Some(since) = option(words, "going") {
        let since = if since.is_empty() {
            "2030-01-01T00:00:00Z"
        } else {
            since
        };
        meta["deletionTimestamp"] = json!(since);
    }
    let phase = option(words, "phase").unwrap_or("Released");
    let held = match option(words, "held") {
        Some("") => json!(null),
        Some("name") => json!({"namespace": "default", "name": "data"}),
        _ => json!({"namespace": "default", "name": "data", "uid": "u1"}),
    };
    json!({"metadata": meta,
        "spec": {"persistentVolumeReclaimPolicy": policy, "claimRef": held,
            "local": {"path": "/srv/pvc-u1"}},
        "status": {"phase": phase}})
}

fn read<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// The words of a claim, and of the node `a`, if it is there.
fn check(of_claim: &str, of_node: Option<&str>, expected: Expect) {
    let words: Vec<&str> = of_claim.split_whitespace().collect();
    let claim = read(claim(&words));
    let mut class = plan::class(true);
    if words.contains(&"at-once") {
        class.volume_binding_mode = Some("Immediate".to_owned());
    }
    let node: Option<Node> = of_node.map(|words| {
        let words: Vec<&str> = words.split_whitespace().collect();
        read(node("a", &words))
    });
    let said = match plan::provision(&claim, Some(&class), node.as_ref()) {
        Provision::Nothing => "nothing".to_owned(),
        Provision::Refuse(why) => format!("refused: {why}"),
        Provision::Elsewhere(why) => format!("elsewhere: {why}"),
        Provision::Volume(volume) => {
            let spec = volume.spec.unwrap();
            let held = spec.claim_ref.unwrap();
            let affinity = spec.node_affinity.unwrap().required.unwrap();
            let hosts = affinity.node_selector_terms[0]
                .match_expressions
                .clone()
                .unwrap();
            format!(
                "{} at {} on {:?} of {} for {}/{}",
                volume.metadata.name.unwrap(),
                spec.local.unwrap().path,
                hosts[0].values.clone().unwrap(),
                spec.capacity.unwrap()["storage"].0,
                held.name.unwrap(),
                held.uid.unwrap(),
            )
        }
    };
    expected.assert_eq(&said);
}

const OFFERS: Option<&str> = Some("directory=/srv/volumes/");

#[test]
fn a_claim_gets_a_directory_of_the_node_that_was_chosen_for_it() {
    check(
        "node=a",
        OFFERS,
        expect![[r#"pvc-u1 at /srv/volumes/pvc-u1 on ["a-host"] of 1Gi for data/u1"#]],
    );
    check("node=a unasked", OFFERS, expect!["nothing"]);
    check("node=a volume=v", OFFERS, expect!["nothing"]);
    // It was given back.
    check("", OFFERS, expect!["nothing"]);
}

#[test]
fn a_node_without_a_place_is_not_the_one() {
    check(
        "node=a",
        None,
        expect![[r#"elsewhere: node "a" is not there"#]],
    );
    check(
        "node=a",
        Some(""),
        expect![[r#"elsewhere: node "a" has no place for local paths"#]],
    );
}

#[test]
fn what_a_directory_cannot_be_is_refused() {
    check(
        "node=a block",
        OFFERS,
        expect!["refused: a directory is no block device: volumeMode must be Filesystem"],
    );
    check(
        "node=a mode=ReadWriteMany",
        OFFERS,
        expect![
            "refused: accessModes other than ReadWriteOnce and ReadWriteOncePod: it is on one node"
        ],
    );
    check(
        "at-once",
        OFFERS,
        expect![
            "refused: no node is chosen: the class needs volumeBindingMode WaitForFirstConsumer"
        ],
    );
}

/// What is on it is lost only by the last line of the first block.
#[test]
fn a_directory_goes_only_with_a_volume_that_is_deleted_and_free() {
    let end = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        plan::end(&read(volume(&words)))
    };
    assert_eq!(end("phase=Bound"), End::Nothing);
    assert_eq!(end("phase=Released"), End::Delete);
    assert_eq!(end("phase=Bound going protected"), End::Nothing);
    assert_eq!(end("phase=Bound going"), End::Nothing);
    assert_eq!(end("phase=Released going protected"), End::Nothing);
    assert_eq!(end("phase=Released going"), End::Remove);

    // Taken back by hand, and the phase is still the old one.
    assert_eq!(end("phase=Released held"), End::Nothing);
    assert_eq!(end("phase=Released held=name"), End::Nothing);

    assert_eq!(end("phase=Released policy=Retain"), End::Nothing);
    assert_eq!(end("phase=Released policy=Retain going"), End::LetGo);
    assert_eq!(end("phase=Released going free"), End::Nothing);
    assert_eq!(end("phase=Released going foreign"), End::Nothing);
    assert_eq!(end("phase=Released foreign"), End::Nothing);
}
