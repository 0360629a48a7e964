//! Claims, volumes, classes and nodes as text in; where a pod may go, and what it gets there, out.
//!
//! The pod uses every claim, ephemeral ones that begin with `web-`. `claim NAME [class=C] [size=1Gi]
//! [volume=V] [lost] [going] [node=N] [owner=UID]`, `volume NAME [class=C] [size=1Gi] [held=CLAIM]
//! [on=NODE]`, `class NAME [now] [by=PROVISIONER] [only=NODE]`, `room CLASS NODE SIZE`, `driver NAME`,
//! `uses CLAIM` for one that is not there, `node NAME [directory=PATH]`.

use super::*;
use crate::framework::Profile;
use coracle_client::volumes::{BIND_COMPLETED, LOCAL_PATH_DIRECTORY, SELECTED_NODE};
use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

mod binding;

fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (*word == name).then_some(""),
    })
}

fn read<K: serde::de::DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn claim(name: &str, words: &[&str]) -> Value {
    let mut meta = json!({"name": name, "namespace": "default", "uid": format!("u-{name}"),
        "resourceVersion": "1", "annotations": {}});
    let mut spec = json!({"accessModes": ["RWO"], "storageClassName":
        option(words, "class").unwrap_or("late"),
        "resources": {"requests": {"storage": option(words, "size").unwrap_or("1Gi")}}});
    let mut status = json!({"phase": "Pending"});
    if let Some(volume) = option(words, "volume") {
        spec["volumeName"] = json!(volume);
        meta["annotations"][BIND_COMPLETED] = json!("yes");
        status["phase"] = json!("Bound");
    }
    if let Some(node) = option(words, "node") {
        meta["annotations"][SELECTED_NODE] = json!(node);
    }
    if option(words, "lost").is_some() {
        status["phase"] = json!("Lost");
    }
    if option(words, "going").is_some() {
        meta["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    }
    let owner = option(words, "owner").unwrap_or("pod-uid");
    meta["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": "web",
        "uid": owner, "controller": true}]);
    json!({"metadata": meta, "spec": spec, "status": status})
}

fn volume(name: &str, words: &[&str]) -> Value {
    let mut spec = json!({"accessModes": ["RWO"], "storageClassName":
        option(words, "class").unwrap_or("late"),
        "capacity": {"storage": option(words, "size").unwrap_or("1Gi")}});
    if let Some(held) = option(words, "held") {
        spec["claimRef"] = json!({"namespace": "default", "name": held});
    }
    if let Some(node) = option(words, "on") {
        let one = json!({"key": "host", "operator": "In", "values": [node]});
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms":
            [{"matchExpressions": [one]}]}});
    }
    let meta = json!({"name": name, "resourceVersion": "1"});
    json!({"metadata": meta, "spec": spec, "status": {"phase": "Available"}})
}

fn class(name: &str, words: &[&str]) -> Value {
    let mode = option(words, "now").map_or("WaitForFirstConsumer", |_| "Immediate");
    let by = option(words, "by").unwrap_or(coracle_client::volumes::NO_PROVISIONER);
    let mut class = json!({"metadata": {"name": name}, "provisioner": by,
        "volumeBindingMode": mode});
    if let Some(node) = option(words, "only") {
        let one = json!({"key": "host", "values": [node]});
        class["allowedTopologies"] = json!([{"matchLabelExpressions": [one]}]);
    }
    class
}

fn node(name: &str, words: &[&str]) -> Arc<Node> {
    let mut meta = json!({"name": name, "labels": {"host": name}, "annotations": {}});
    if let Some(directory) = option(words, "directory") {
        meta["annotations"][LOCAL_PATH_DIRECTORY] = json!(directory);
    }
    read(json!({ "metadata": meta }))
}

#[derive(Default)]
struct Scene {
    cache: Arc<Mutex<Cache>>,
    volumes: Arc<Mutex<Volumes>>,
    nodes: Vec<String>,
    uses: Vec<String>,
}

impl Scene {
    fn of(text: &str) -> Self {
        let mut scene = Self::default();
        for line in text.lines() {
            scene.add(line);
        }
        scene
    }

    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut known = self.volumes.lock();
        match words.as_slice() {
            ["claim", name, options @ ..] => {
                known.set_claim(&read(claim(name, options)));
                self.uses.push((*name).to_owned());
            }
            ["uses", name] => self.uses.push((*name).to_owned()),
            ["volume", name, options @ ..] => known.set_volume(&read(volume(name, options))),
            ["class", name, options @ ..] => known.set_class(&read(class(name, options))),
            ["driver", name] => known.set_driver(&read(json!({
                "metadata": {"name": name}, "spec": {"storageCapacity": true},
            }))),
            ["room", class, node, size] => known.set_capacity(&read(json!({
                "metadata": {"name": format!("{class}-{node}"), "namespace": "default"},
                "storageClassName": class, "capacity": size,
                "nodeTopology": {"matchLabels": {"host": node}},
            }))),
            ["node", name, options @ ..] => {
                self.cache.lock().set_node(&node(name, options));
                self.nodes.push((*name).to_owned());
            }
            other => panic!("cannot read {other:?}"),
        }
    }

    fn pod(&self) -> PodInfo {
        let volumes = self
            .uses
            .iter()
            .map(|name| match name.strip_prefix("web-") {
                Some(own) => {
                    json!({"name": own, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
                }
                None => json!({"name": name, "persistentVolumeClaim": {"claimName": name}}),
            });
        let volumes: Vec<Value> = volumes.collect();
        PodInfo::new(read::<Pod>(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "pod-uid"},
            "spec": {"containers": [], "volumes": volumes},
        })))
    }

    fn plugin(&self, client: Client) -> VolumeBinding {
        VolumeBinding::new(
            client,
            Arc::clone(&self.cache),
            Arc::clone(&self.volumes),
            BINDING_MAX,
        )
    }

    /// For all nodes, or for each: what the pod would get there.
    fn said(&self) -> String {
        let (pod, plugin) = (self.pod(), self.plugin(binding::nobody()));
        let mut snapshot = Snapshot::default();
        self.cache.lock().update(&mut snapshot);
        let why = |reason: Reason| reason.texts(&pod).join("; ");
        let mut slot = Slot::default();
        let begun = plugin.pre_filter(&pod, &snapshot, &mut slot);
        if let PreFilter::Refuse(Verdict::Unresolvable(reason)) = begun {
            return why(reason);
        }
        let mut lines = Vec::new();
        for node in &snapshot.nodes {
            let fits = match plugin.filter(&pod, node, &slot) {
                Verdict::Unresolvable(reason) => why(reason),
                _ => self.gets(&plugin, &pod, &node.name),
            };
            lines.push(format!("{}: {fits}", node.name));
        }
        lines.join("\n")
    }

    fn gets(&self, plugin: &VolumeBinding, pod: &PodInfo, node: &str) -> String {
        plugin.reserve(pod, node).unwrap();
        let reserved = plugin.reserved.lock().get(&pod.uid).cloned();
        plugin.unreserve(pod, node);
        let name = |claim: &PersistentVolumeClaim| claim.metadata.name.clone().unwrap();
        let reserved = reserved.unwrap_or_default();
        let take = reserved.take.iter().map(|given| {
            let volume = given.volume.metadata.name.as_deref().unwrap();
            format!("{} takes {volume}", name(&given.claim))
        });
        let made = reserved.provision.iter();
        let made = made.map(|claim| format!("{} is made", name(claim)));
        let all: Vec<String> = take.chain(made).collect();
        if all.is_empty() {
            "fits".to_owned()
        } else {
            all.join(", ")
        }
    }
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&Scene::of(text).said());
}

#[tokio::test]
async fn claims_that_are_not_ready_end_the_cycle() {
    check(
        "uses data\nnode n",
        expect![[r#"persistentvolumeclaim "data" not found"#]],
    );
    check(
        "uses web-own\nnode n",
        expect![[
            r#"waiting for ephemeral volume controller to create the persistentvolumeclaim "web-own""#
        ]],
    );
    check(
        "claim data lost volume=v\nnode n",
        expect![[r#"persistentvolumeclaim "data" bound to non-existent persistentvolume "v""#]],
    );
    check(
        "claim data going\nnode n",
        expect![[r#"persistentvolumeclaim "data" is being deleted"#]],
    );
    check(
        "claim web-own owner=other\nclass late\nnode n",
        expect!["PVC default/web-own was not created for pod default/web (pod is not owner)"],
    );
    let unbound = || expect!["pod has unbound immediate PersistentVolumeClaims"];
    check(
        "claim data class=now\nclass now now by=p\nnode n",
        unbound(),
    );
    check("claim data class=unknown\nnode n", unbound());
}

#[tokio::test]
async fn bound_volumes_must_be_within_reach() {
    check(
        "claim data volume=v\nvolume v on=a\nnode a\nnode b",
        expect![[r#"
            a: fits
            b: node(s) didn't match PersistentVolume's node affinity"#]],
    );
    check(
        "claim data volume=v\nnode a",
        expect!["a: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"],
    );
    check("claim data volume=v\nvolume v\nnode a", expect!["a: fits"]);
}

#[tokio::test]
async fn open_claims_take_volumes_of_the_node() {
    check(
        "claim data\nclass late\nvolume x on=a\nvolume y on=b size=2Gi\nnode a\nnode b\nnode c",
        expect![[r#"
            a: data takes x
            b: data takes y
            c: node(s) didn't find available persistent volumes to bind"#]],
    );
    // The smaller claim has the smaller volume, and no volume two.
    check(
        "claim big size=2Gi\nclaim small\nclass late\nvolume x size=2Gi\nvolume y\nnode a",
        expect!["a: small takes y, big takes x"],
    );
    check(
        "claim one\nclaim two\nclass late\nvolume x\nnode a",
        expect!["a: node(s) didn't find available persistent volumes to bind"],
    );
    // One that is held for the claim or none of those that are there.
    let held = |by: &str| {
        format!(
            "claim data\nclass late {by}\nvolume x on=a\nvolume y on=b held=data\nnode a\nnode b"
        )
    };
    check(
        &held(""),
        expect![[r#"
            a: node(s) didn't find available persistent volumes to bind
            b: data takes y"#]],
    );
    check(
        &held("by=p"),
        expect![[r#"
            a: data is made
            b: data takes y"#]],
    );
}

#[tokio::test]
async fn what_is_not_there_may_be_made() {
    check(
        "claim data\nclass late by=p\nnode a",
        expect!["a: data is made"],
    );
    check(
        "claim data\nclass late by=p\nvolume x\nnode a",
        expect!["a: data takes x"],
    );
    check(
        "claim data\nclass late by=p only=a\nnode a\nnode b",
        expect![[r#"
            a: data is made
            b: node(s) didn't find available persistent volumes to bind"#]],
    );
    // It was begun on a node.
    check(
        "claim data node=b\nclass late by=p\nvolume x\nnode a\nnode b",
        expect![[r#"
            a: node(s) didn't find available persistent volumes to bind
            b: data is made"#]],
    );
    // Where that is comes before all else that may be missing.
    check(
        "claim data node=b size=2Gi\nclaim more\nclass late by=p\ndriver p\nroom late c 9Gi\n\
         node a\nnode b",
        expect![[r#"
            a: node(s) didn't find available persistent volumes to bind
            b: node(s) did not have enough free storage"#]],
    );
    check(
        "claim data size=2Gi\nclass late by=p\ndriver p\nroom late a 1Gi\nroom late b 5Gi\n\
         node a\nnode b\nnode c",
        expect![[r#"
            a: node(s) did not have enough free storage
            b: data is made
            c: node(s) did not have enough free storage"#]],
    );
}

#[tokio::test]
async fn what_is_bound_and_what_is_open_say_one_reason_each() {
    check(
        "claim data volume=v\nclaim more\nvolume v on=a held=data\nclass late by=p\n\
         driver p\nroom late a 5Gi\nnode a\nnode b",
        expect![[r#"
            a: more is made
            b: node(s) didn't match PersistentVolume's node affinity; node(s) did not have enough free storage"#]],
    );
}

#[tokio::test]
async fn what_one_pod_was_given_another_does_not_get() {
    let mut scene = Scene::of("claim data\nclass late\nvolume x\nnode a");
    let first = scene.plugin(binding::nobody());
    first.reserve(&scene.pod(), "a").unwrap();
    scene.uses.clear();
    scene.add("claim other");
    let none = "a: node(s) didn't find available persistent volumes to bind";
    assert_eq!(scene.said(), none);
    scene.uses = vec!["data".to_owned()];
    first.unreserve(&scene.pod(), "a");
    scene.uses = vec!["other".to_owned()];
    assert_eq!(scene.said(), "a: other takes x");
}

#[tokio::test]
async fn a_claim_is_for_one_node_from_the_moment_it_is_chosen() {
    let scene = Scene::of("claim data\nclass late by=p\nnode a\nnode b");
    let plugin = scene.plugin(binding::nobody());
    plugin.reserve(&scene.pod(), "b").unwrap();
    assert_eq!(
        scene.said().lines().next().unwrap(),
        "a: node(s) didn't find available persistent volumes to bind"
    );
}

#[tokio::test]
async fn changes_that_can_help() {
    let scene = Scene::of("claim data\nclass late\nnode a");
    let (plugin, pod) = (scene.plugin(binding::nobody()), scene.pod());
    let helps = |change: WorldChange| plugin.can_help(&change, &pod);
    let of = |name: &str| WorldChange::Claim(read(claim(name, &[])));
    assert!(helps(of("data")) && !helps(of("other")));
    let of = |words: &[&str]| WorldChange::Volume(read(volume("v", words)));
    assert!(helps(of(&[])) && helps(of(&["held=data"])) && !helps(of(&["held=other"])));
    let facts = |name: &str| NodeFacts::of(&node(name, &[]));
    assert!(helps(WorldChange::Provisioning) && helps(WorldChange::NodeAdded(facts("n"))));
    let (old, new) = (facts("n"), facts("n"));
    assert!(!helps(WorldChange::NodeUpdated { old, new }));
    let (old, new) = (facts("n"), facts("m"));
    assert!(helps(WorldChange::NodeUpdated { old, new }));
    assert!(!helps(WorldChange::PodGone(Arc::new(scene.pod()))));
}

#[tokio::test]
async fn pods_without_claims_are_left_alone() {
    let scene = Scene::of("node a");
    assert_eq!(scene.said(), "a: fits");
    let plugin = scene.plugin(binding::nobody());
    assert!(plugin.settle(&scene.pod(), "a").is_none());
    drop(Profile::new("test", vec![(Arc::new(plugin), 0)]));
}

#[tokio::test]
async fn a_local_path_is_made_only_on_a_node_that_has_a_place_for_it() {
    check(
        "claim data\nclass late by=coracle.io/local-path\nnode a\nnode b directory=/srv\n\
         node c directory=",
        expect![[r#"
            a: node(s) didn't find available persistent volumes to bind
            b: data is made
            c: node(s) didn't find available persistent volumes to bind"#]],
    );
    let scene = Scene::of("claim data\nclass late by=coracle.io/local-path\nnode a");
    let (plugin, pod) = (scene.plugin(binding::nobody()), scene.pod());
    let helps = |old: &[&str], new: &[&str]| {
        let [old, new] = [old, new].map(|words| NodeFacts::of(&node("a", words)));
        plugin.can_help(&WorldChange::NodeUpdated { old, new }, &pod)
    };
    assert!(helps(&[], &["directory=/srv"]));
    assert!(!helps(&["directory=/srv"], &["directory=/srv"]));
}
