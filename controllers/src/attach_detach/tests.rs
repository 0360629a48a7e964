//! A node, its pods and attachments in; what is attached, detached, noted and told out, as text.
//!
//! `node [away] [gone] [out-of-service] [uses=V] [has=V]`, `pod NAME V [in=NAMESPACE] [on=NODE]`
//! for one that uses a volume, `attachment V [on=NODE] [attached] [going] [for=SECONDS]
//! [error=WHY]`, and `volume V [shared]`. A node is `a` where nothing is said.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::plan::{Attachable, View, Wanted};
use super::*;
use crate::fixture_text::{number, option};

mod running;

pub(super) fn volume(name: &str, words: &[&str]) -> Value {
    let mode = if words.contains(&"shared") {
        "ReadWriteMany"
    } else {
        "ReadWriteOnce"
    };
    json!({"metadata": {"name": name}, "spec": {"accessModes": [mode],
        "claimRef": {"namespace": "default", "name": name, "uid": format!("u-{name}")},
        "csi": {"driver": "d", "volumeHandle": format!("h-{name}")}}})
}

pub(super) fn node(name: &str, words: &[&str]) -> Value {
    let ready = if words.contains(&"away") {
        "Unknown"
    } else {
        "True"
    };
    let mut node = json!({"metadata": {"name": name}, "spec": {"taints": []},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}});
    if words.contains(&"out-of-service") {
        let key = "node.kubernetes.io/out-of-service";
        node["spec"]["taints"] = json!([{"key": key, "effect": "NoExecute"}]);
    }
    if let Some(uses) = option(words, "uses") {
        node["status"]["volumesInUse"] = json!([format!("kubernetes.io/csi/d^h-{uses}")]);
    }
    if let Some(has) = option(words, "has") {
        let name = format!("kubernetes.io/csi/d^h-{has}");
        node["status"]["volumesAttached"] = json!([{"name": name, "devicePath": ""}]);
    }
    node
}

pub(super) fn attachment(of: &str, words: &[&str]) -> Value {
    let node = option(words, "on").unwrap_or("a");
    let mut meta = json!({"name": format!("{of}-on-{node}")});
    if words.contains(&"going") {
        meta["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    }
    let mut status = json!({"attached": words.contains(&"attached")});
    if let Some(why) = option(words, "error") {
        status["attachError"] = json!({"message": why});
    }
    json!({"metadata": meta, "status": status, "spec": {"attacher": "d", "nodeName": node,
        "source": {"persistentVolumeName": of}}})
}

pub(super) fn pod(name: &str, uses: &str, words: &[&str]) -> Value {
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": uses}});
    let namespace = option(words, "in").unwrap_or("default");
    json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("u-{name}")},
        "spec": {"nodeName": option(words, "on").unwrap_or("a"), "containers": [],
            "volumes": [volume]}})
}

fn read<K: serde::de::DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Under the name that is told by the fixtures.
fn view(text: &str) -> View {
    let mut view = View {
        name: "a".to_owned(),
        ..View::default()
    };
    let (mut volumes, mut pods, mut others) = (BTreeMap::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["node", options @ ..] if !options.contains(&"gone") => {
                view.node = Some(read(node("a", options)));
            }
            ["node", ..] => {}
            ["volume", name, options @ ..] => {
                let known = Attachable::of(&read(volume(name, options))).unwrap();
                volumes.insert((*name).to_owned(), known);
            }
            ["pod", name, uses, options @ ..] => {
                let one: Arc<Pod> = read(pod(name, uses, options));
                pods.push(((*uses).to_owned(), one));
            }
            ["attachment", of, options @ ..] => {
                let mut value = attachment(of, options);
                if option(options, "on").is_some_and(|on| on != "a") {
                    others.push(((*of).to_owned(), option(options, "on").unwrap().to_owned()));
                    continue;
                }
                let own = volumes[*of].attachment("a");
                value["metadata"]["name"] = json!(own);
                if let Some(seconds) = number(options, "for") {
                    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap());
                    view.unwanted_for.insert(own.clone(), seconds);
                }
                view.volumes.insert(own, volumes[*of].clone());
                view.attachments.push(read(value));
            }
            other => panic!("cannot read {other:?}"),
        }
    }
    for (name, known) in volumes {
        let at = |here: bool| {
            let those = pods.iter().filter(|(uses, _)| *uses == name);
            let those = those.filter(|(_, pod)| (crate::pods::node_name(pod) == "a") == here);
            those.map(|(_, pod)| Arc::clone(pod)).collect::<Vec<_>>()
        };
        let elsewhere = others.iter().filter(|(of, _)| *of == name);
        let elsewhere: BTreeSet<String> = elsewhere.map(|(_, on)| on.clone()).collect();
        if !at(true).is_empty() {
            view.wanted.push(Wanted {
                volume: known,
                pods: at(true),
                elsewhere,
                users: at(false),
            });
        }
    }
    view
}

fn check(text: &str, expected: Expect) {
    let plan = plan::plan(&view(text));
    let mut lines = Vec::new();
    if let Some(attached) = &plan.attached {
        let names: Vec<&str> = attached.iter().map(|one| one.name.as_str()).collect();
        lines.push(format!("note {names:?}"));
    }
    for one in &plan.detach {
        let how = if one.is_forced { " by force" } else { "" };
        lines.push(format!("detach {}{how}", one.unique_name));
    }
    for one in &plan.attach {
        let of = one.spec.source.persistent_volume_name.as_deref().unwrap();
        lines.push(format!(
            "attach {of} to {} by {}",
            one.spec.node_name, one.spec.attacher
        ));
    }
    for told in plan.told_attached.iter().chain(&plan.told) {
        lines.push(format!(
            "{}: {}",
            told.pod.metadata.name.as_deref().unwrap(),
            told.message
        ));
    }
    if let Some(again) = plan.again {
        lines.push(format!("again in {} s", again.as_secs()));
    }
    let said = if lines.is_empty() {
        "nothing".to_owned()
    } else {
        lines.join("\n")
    };
    expected.assert_eq(&said);
}

#[test]
fn what_pods_use_is_attached_and_then_noted() {
    check("volume v\nnode\npod p v", expect!["attach v to a by d"]);
    check("volume v\nnode\npod p v\nattachment v", expect!["nothing"]);
    check(
        "volume v\nnode\npod p v\nattachment v attached",
        // The space is upstream's.
        expect![[r#"
            note ["kubernetes.io/csi/d^h-v"]
            p: AttachVolume.Attach succeeded for volume "v" "#]],
    );
    check(
        "volume v\nnode gone\npod p v\nattachment v attached",
        expect!["nothing"],
    );
    check(
        "volume v\nnode has=v\npod p v\nattachment v attached",
        expect!["nothing"],
    );
    // It is waited for until it is gone, and made anew.
    check(
        "volume v\nnode has=v\npod p v\nattachment v attached going",
        expect!["note []"],
    );
}

#[test]
fn what_the_driver_cannot_attach_is_told() {
    check(
        "volume v\nnode\npod p v\nattachment v error=full",
        expect![[r#"p: AttachVolume.Attach failed for volume "v" : full"#]],
    );
}

#[test]
fn what_no_pod_uses_goes_once_the_node_has_let_go() {
    check(
        "volume v\nnode has=v uses=v\nattachment v attached",
        expect!["nothing"],
    );
    check(
        "volume v\nnode has=v\nattachment v attached",
        expect![[r#"
            note []
            detach kubernetes.io/csi/d^h-v"#]],
    );
    check(
        "volume v\nnode\nattachment v attached going",
        expect!["nothing"],
    );
}

#[test]
fn a_node_that_is_lost_loses_its_volumes() {
    check(
        "volume v\nnode away has=v uses=v\nattachment v attached",
        expect!["again in 360 s"],
    );
    check(
        "volume v\nnode away has=v uses=v\nattachment v attached for=359",
        expect!["again in 1 s"],
    );
    check(
        "volume v\nnode away has=v uses=v\nattachment v attached for=360",
        expect![[r#"
            note []
            detach kubernetes.io/csi/d^h-v by force"#]],
    );
    // One that is ready is waited for.
    check(
        "volume v\nnode has=v uses=v\nattachment v attached for=9999",
        expect!["nothing"],
    );
    check(
        "volume v\nnode has=v uses=v out-of-service\nattachment v attached",
        expect![[r#"
            note []
            detach kubernetes.io/csi/d^h-v by force"#]],
    );
    check(
        "volume v\nnode gone\nattachment v attached for=10",
        expect!["again in 350 s"],
    );
    check(
        "volume v\nnode gone\nattachment v attached for=360",
        expect!["detach kubernetes.io/csi/d^h-v by force"],
    );
}

#[test]
fn a_volume_for_one_node_is_not_attached_to_two() {
    check(
        "volume v\nnode\npod p v\npod q v on=b\nattachment v on=b attached",
        expect![[r#"p: Multi-Attach error for volume "v" Volume is already used by pod(s) q"#]],
    );
    check(
        "volume v\nnode\npod p v\nattachment v on=b attached",
        expect![[
            r#"p: Multi-Attach error for volume "v" Volume is already exclusively attached to one node and can't be attached to another"#
        ]],
    );
    check(
        "volume v\nnode\npod p v\npod q v on=b in=other\nattachment v on=b",
        expect![[
            r#"p: Multi-Attach error for volume "v" Volume is already used by 1 pod(s) in different namespaces"#
        ]],
    );
    check(
        "volume v shared\nnode\npod p v\npod q v on=b\nattachment v on=b attached",
        expect!["attach v to a by d"],
    );
}
