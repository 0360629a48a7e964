//! A claim or a volume and its surroundings in, what is written and told out, as text.
//!
//! The first line is looked at. `claim NAME [PHASE] [size=1Gi] [volume=V] [class=C] [modes=..]
//! [labels=a] [bound-by-controller] [completed] [node=N] [uid=U]`; `volume NAME [PHASE] [size=1Gi]
//! [held=CLAIM[/UID]] [class=C] [policy=P] [by-controller] [provisioned-by=X] ...`; then `class
//! NAME PROVISIONER [late] [default]` and `pod NAME`, which waits. A claim's uid is `u-NAME`.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::plan::Plan;
use super::*;
use crate::fixture_text::option;

mod bound;
mod open;
mod provisioned;
mod running;
mod volumes_alone;

const MARKS: [(&str, &str); 7] = [
    ("completed", volumes::BIND_COMPLETED),
    ("by-controller", volumes::BOUND_BY_CONTROLLER),
    ("node", volumes::SELECTED_NODE),
    ("asked", volumes::PROVISIONER),
    ("provisioned-by", volumes::PROVISIONED_BY),
    ("migrated-to", volumes::MIGRATED_TO),
    (
        "shown-size",
        "volume.alpha.kubernetes.io/pre-resize-capacity",
    ),
];

fn metadata(name: &str, words: &[&str]) -> Value {
    let mut meta = json!({"name": name, "resourceVersion": "1"});
    for (word, mark) in MARKS {
        if let Some(value) = option(words, word) {
            let value = if value.is_empty() { "yes" } else { value };
            meta["annotations"][mark] = json!(value);
        }
    }
    if let Some(finalizer) = option(words, "finalizer") {
        meta["finalizers"] = json!([finalizer]);
    }
    meta
}

fn common(words: &[&str]) -> Value {
    let modes: Vec<&str> = option(words, "modes").unwrap_or("RWO").split(',').collect();
    let mut spec = json!({"accessModes": modes});
    for (word, field) in [
        ("class", "storageClassName"),
        ("attributes", "volumeAttributesClassName"),
        ("policy", "persistentVolumeReclaimPolicy"),
        ("volume", "volumeName"),
    ] {
        if let Some(value) = option(words, word) {
            spec[field] = json!(value);
        }
    }
    if option(words, "block").is_some() {
        spec["volumeMode"] = json!("Block");
    }
    spec
}

fn phase<'a>(words: &[&'a str], otherwise: &'a str) -> &'a str {
    let first = words.first().copied().unwrap_or(otherwise);
    let is_phase = first.starts_with(|letter: char| letter.is_ascii_uppercase());
    if is_phase { first } else { otherwise }
}

pub(super) fn claim(name: &str, words: &[&str]) -> PersistentVolumeClaim {
    let mut meta = metadata(name, words);
    meta["namespace"] = json!("default");
    meta["uid"] = json!(option(words, "uid").map_or(format!("u-{name}"), str::to_owned));
    let mut spec = common(words);
    let size = option(words, "size").unwrap_or("1Gi");
    spec["resources"] = json!({"requests": {"storage": size}});
    if let Some(label) = option(words, "labels") {
        spec["selector"] = json!({"matchLabels": {"is": label}});
    }
    let mut status = json!({"phase": phase(words, "Pending")});
    if status["phase"] == "Bound" {
        status["accessModes"] = json!(["RWO"]);
        status["capacity"] = json!({"storage": option(words, "has").unwrap_or(size)});
    }
    serde_json::from_value(json!({"metadata": meta, "spec": spec, "status": status})).unwrap()
}

pub(super) fn volume(name: &str, words: &[&str]) -> PersistentVolume {
    let mut spec = common(words);
    spec["capacity"] = json!({"storage": option(words, "size").unwrap_or("1Gi")});
    if let Some(held) = option(words, "held") {
        let (claim, uid) = held.split_once('/').unwrap_or((held, ""));
        spec["claimRef"] = json!({"namespace": "default", "name": claim, "uid": uid});
    }
    if option(words, "csi").is_some() {
        spec["csi"] = json!({"driver": "d", "volumeHandle": "h"});
    }
    if option(words, "policy").is_none() {
        spec["persistentVolumeReclaimPolicy"] = json!("Retain");
    }
    let mut meta = metadata(name, words);
    if let Some(label) = option(words, "labels") {
        meta["labels"] = json!({"is": label});
    }
    let status = json!({"phase": phase(words, "Available")});
    serde_json::from_value(json!({"metadata": meta, "spec": spec, "status": status})).unwrap()
}

fn class(name: &str, provisioner: &str, words: &[&str]) -> StorageClass {
    let is_late = words.contains(&"late");
    let mode = if is_late {
        "WaitForFirstConsumer"
    } else {
        "Immediate"
    };
    let mut meta = json!({"name": name});
    if words.contains(&"default") {
        meta["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    }
    let value = json!({"metadata": meta, "provisioner": provisioner, "volumeBindingMode": mode});
    serde_json::from_value(value).unwrap()
}

#[derive(Default)]
struct Scene {
    claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<Arc<PersistentVolume>>,
    classes: Vec<Arc<StorageClass>>,
    waiting: Vec<String>,
    is_about_claim: bool,
}

fn read(text: &str) -> Scene {
    let mut scene = Scene::default();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["claim", name, options @ ..] => {
                scene.is_about_claim |= number == 0;
                scene.claims.push(claim(name, options));
            }
            ["volume", name, options @ ..] => scene.volumes.push(Arc::new(volume(name, options))),
            ["class", name, by, options @ ..] => {
                scene.classes.push(Arc::new(class(name, by, options)));
            }
            ["pod", name] => scene.waiting.push((*name).to_owned()),
            other => panic!("cannot read {other:?}"),
        }
    }
    scene
}

fn named<K: kube::Resource>(all: &[Arc<K>], name: &str) -> Option<Arc<K>> {
    let found = all
        .iter()
        .find(|one| one.meta().name.as_deref() == Some(name));
    found.cloned()
}

fn plan_of(scene: &Scene) -> Plan {
    if !scene.is_about_claim {
        let volume = &scene.volumes[0];
        let uid = volumes::claim_ref(volume).and_then(|held| held.uid.as_ref());
        let mut claims = scene.claims.iter();
        let claim = claims.find(|claim| claim.metadata.uid.as_ref() == uid);
        return unclaimed::plan(volume, claim);
    }
    let claim = &scene.claims[0];
    let default = volumes::default_class(&scene.classes);
    claims::plan(&ClaimView {
        claim,
        named: named(&scene.volumes, volumes::volume_name(claim)),
        volumes: scene.volumes.clone(),
        class: named(&scene.classes, volumes::class_of_claim(claim)),
        default_class: default.and_then(|class| class.metadata.name.clone()),
        waiting: scene.waiting.clone(),
    })
}

/// The marks in the words of the fixtures.
fn marks(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    let mut said = String::new();
    for (word, mark) in MARKS {
        match volumes::annotation(meta, mark) {
            Some("yes") => said += &format!(" {word}"),
            Some(value) => said += &format!(" {word}={value}"),
            None => {}
        }
    }
    for one in meta.finalizers.iter().flatten() {
        said += &format!(" finalizer={one}");
    }
    said
}

fn volume_text(volume: &PersistentVolume) -> String {
    let name = volume.metadata.name.as_deref().unwrap();
    let mut said = format!("volume {name} {}", plan::volume_phase(volume));
    if let Some(held) = volumes::claim_ref(volume) {
        said += &format!(" held={}", held.name.as_deref().unwrap());
        let uid = held.uid.as_deref().filter(|uid| !uid.is_empty());
        said += &uid.map_or(String::new(), |uid| format!("/{uid}"));
    }
    said += &marks(&volume.metadata);
    let message = volume.status.as_ref().and_then(|s| s.message.clone());
    said + &message.map_or(String::new(), |message| format!(" ({message})"))
}

fn claim_text(claim: &PersistentVolumeClaim) -> String {
    let name = claim.metadata.name.as_deref().unwrap();
    let mut said = format!("claim {name} {}", plan::claim_phase(claim));
    let status = claim.status.as_ref().unwrap();
    if let Some(capacity) = &status.capacity {
        said += &format!(" has={}", capacity["storage"].0);
    }
    for (word, value) in [
        ("volume", claim.spec.as_ref().unwrap().volume_name.clone()),
        (
            "class",
            claim.spec.as_ref().unwrap().storage_class_name.clone(),
        ),
        (
            "attributes",
            status.current_volume_attributes_class_name.clone(),
        ),
    ] {
        said += &value.map_or(String::new(), |value| format!(" {word}={value}"));
    }
    said + &marks(&claim.metadata)
}

/// What is written, in order, and told; what stays as it is, is not said.
fn said(plan: &Plan) -> String {
    let mut lines = Vec::new();
    if let Some(change) = plan.volume.as_ref().filter(|one| one.was != one.wanted) {
        lines.push(volume_text(&change.wanted));
    }
    if let Some(change) = plan.claim.as_ref().filter(|one| one.was != one.wanted) {
        lines.push(claim_text(&change.wanted));
    }
    for told in &plan.told {
        let kind = told.kind.as_str();
        lines.push(format!("{kind} {}: {}", told.reason, told.message));
    }
    if let Some(key) = &plan.claim_next {
        lines.push(format!("then claim {}", key.name));
    }
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines.join("\n")
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&said(&plan_of(&read(text))));
}
