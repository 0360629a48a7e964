//! A site of nodes and pods against both loops, in paused time, told as text.
//!
//! A line is `SECOND COMMAND NAME [option=value]`:
//! `node NAME [zone=Z] [unreported]`, `pod NAME on=NODE [for=SECONDS|for=ever]`, `gone POD`,
//! `silence NAME`, `heal NAME`, `unwell NAME` (alive, reports Ready=False), `remove NAME`,
//! `taint NAME KEY:EFFECT`, `untaint NAME`, `refuse CODE...` (the next requests), `restart` (of
//! the loops), `end`. Living nodes renew their leases every ten seconds. What
//! changes is printed with the second by which it was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::informer::Informers;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fake_api::FakeApi;
use crate::fixture_text::{now, option};
use crate::{Config, Context};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const BEAT_S: u64 = 10;

pub(super) struct Site {
    api: FakeApi,
    clock: Clock,
    alive: BTreeSet<String>,
    loops: CancellationToken,
    seen: BTreeMap<String, String>,
    told: Vec<String>,
}

/// How many requests that write, events aside, the script's loops made.
pub(super) async fn writes(script: &str) -> usize {
    let (_, site) = run(script).await;
    let requests = site.api.requests();
    let is_write = |it: &&String| !it.starts_with("GET") && !it.starts_with("WATCH");
    let writes = requests.iter().filter(is_write);
    writes.filter(|it| !it.contains("/events")).count()
}

pub(super) async fn play(script: &str) -> String {
    run(script).await.0
}

async fn run(script: &str) -> (String, Site) {
    let start = now();
    let mut site = Site {
        api: FakeApi::new(),
        clock: Clock::starting_at(start),
        alive: BTreeSet::new(),
        loops: CancellationToken::new(),
        seen: BTreeMap::new(),
        told: Vec::new(),
    };
    let mut lines: Vec<Vec<&str>> = script
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .collect();
    lines.reverse();
    site.start();
    for second in 0.. {
        while let Some(words) = lines.last() {
            if words[0].parse::<u64>().unwrap() > second {
                break;
            }
            if words[1] == "end" {
                site.loops.cancel();
                return (site.told.join("\n") + "\n", site);
            }
            site.obey(words[1], &words[2..]);
            lines.pop();
        }
        if second % BEAT_S == 0 {
            site.beat();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        site.look(second + 1);
    }
    unreachable!("a script has an end")
}

impl Site {
    fn start(&mut self) {
        self.loops = CancellationToken::new();
        let client = self.api.client();
        let context = Context {
            informers: Informers::new(client.clone(), self.loops.clone()),
            client,
            config: Arc::new(Config {
                node_monitor_grace_period: Duration::from_secs(40),
                ..Config::default()
            }),
            clock: self.clock.clone(),
            shutdown: self.loops.clone(),
        };
        tokio::spawn(crate::node_lifecycle::run(context.clone()));
        tokio::spawn(crate::taint_eviction::run(context));
    }

    fn obey(&mut self, command: &str, words: &[&str]) {
        let name = words.first().copied().unwrap_or_default();
        match command {
            "node" => self.add_node(name, words),
            "pod" => self.add_pod(name, words),
            "silence" => {
                self.alive.remove(name);
            }
            "heal" => {
                self.alive.insert(name.to_owned());
                self.report(name, "True");
                self.renew(name);
            }
            "unwell" => self.report(name, "False"),
            "remove" => {
                self.alive.remove(name);
                self.api.delete(&format!("{NODES}/{name}"));
            }
            "gone" => self.api.delete(&format!("{PODS}/{name}")),
            "taint" => {
                let (key, effect) = words[1].split_once(':').unwrap();
                self.set_taints(name, json!([{ "key": key, "effect": effect }]));
            }
            "untaint" => self.set_taints(name, Value::Null),
            "refuse" => {
                let codes: Vec<u16> = words.iter().map(|code| code.parse().unwrap()).collect();
                self.api.refuse(&codes);
            }
            "restart" => {
                self.loops.cancel();
                self.start();
            }
            other => panic!("cannot read {other}"),
        }
    }

    fn add_node(&mut self, name: &str, words: &[&str]) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": {}, "creationTimestamp": self.clock.time() },
            "spec": {},
        });
        if let Some(zone) = option(words, "zone") {
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
        }
        self.api.put(&format!("{NODES}/{name}"), node);
        if option(words, "unreported").is_none() {
            self.alive.insert(name.to_owned());
            self.report(name, "True");
        }
    }

    fn set_taints(&self, name: &str, taints: Value) {
        let path = format!("{NODES}/{name}");
        let mut node = self.api.get(&path).unwrap();
        node["spec"]["taints"] = taints;
        self.api.put(&path, node);
    }

    /// The node's clock is wrong by hours, which must not matter.
    fn node_time(&self) -> Timestamp {
        self.clock.now() - SignedDuration::from_hours(7)
    }

    fn report(&self, name: &str, ready: &str) {
        let path = format!("{NODES}/{name}");
        let mut node = self.api.get(&path).unwrap();
        let condition = |kind: &str, status: &str| {
            let time = self.node_time();
            json!({ "type": kind, "status": status, "reason": "Kubelet",
                "lastHeartbeatTime": time, "lastTransitionTime": time })
        };
        node["status"] = json!({ "conditions": [
            condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
            condition("PIDPressure", "False"), condition("Ready", ready),
        ]});
        self.api.put(&path, node);
    }

    fn beat(&self) {
        self.alive.iter().for_each(|name| self.renew(name));
    }

    fn renew(&self, name: &str) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {},
            "spec": { "holderIdentity": name,
                "renewTime": format!("{:.6}", self.node_time()) },
        });
        self.api.put(&format!("{LEASES}/{name}"), lease);
    }

    fn add_pod(&self, name: &str, words: &[&str]) {
        let tolerations = match option(words, "for") {
            None => json!([]),
            Some("ever") => json!([{ "operator": "Exists" }]),
            Some(seconds) => json!([{ "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds.parse::<i64>().unwrap() }]),
        };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {},
            "spec": { "containers": [], "nodeName": option(words, "on"),
                "tolerations": tolerations },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.api.put(&format!("{PODS}/{name}"), pod);
    }

    fn look(&mut self, second: u64) {
        let mut now = BTreeMap::new();
        for node in self.api.objects("/api/v1/nodes") {
            now.insert(format!("node {}", name(&node)), node_text(&node));
        }
        for pod in self.api.objects("/api/v1/pods") {
            let text = conditions(&pod, &["Ready", "DisruptionTarget"]);
            now.insert(format!("pod {}", name(&pod)), text);
        }
        for event in self.api.objects("/api/v1/events") {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            let what = format!("({}) {}", text("reason"), text("message"));
            let known = format!("event {}", name(&event));
            now.insert(known, what);
        }
        let mut told = Vec::new();
        for (what, text) in &now {
            if self.seen.get(what) != Some(text) {
                let is_event = what.starts_with("event ");
                let what = if is_event { "event" } else { what };
                let line = format!("{second:<3} {what} {text}");
                told.push(line.trim_end().to_owned());
            }
        }
        for what in self.seen.keys().filter(|what| !now.contains_key(*what)) {
            told.push(format!("{second:<3} {what} is gone"));
        }
        told.sort(); // Names of events are no order to rely on.
        self.told.append(&mut told);
        self.seen = now;
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn conditions(object: &Value, kinds: &[&str]) -> String {
    let all = object["status"]["conditions"].as_array();
    let shown: Vec<String> = all
        .into_iter()
        .flatten()
        .filter(|it| kinds.iter().any(|kind| it["type"] == *kind))
        .map(|it| {
            let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
            format!("{}={}", text("type"), text("status"))
        })
        .collect();
    shown.join(" ")
}

fn node_text(node: &Value) -> String {
    let taints = node["spec"]["taints"].as_array();
    let taints: Vec<String> = taints
        .into_iter()
        .flatten()
        .map(|taint| {
            let text = |field: &str| taint[field].as_str().unwrap_or_default();
            let key = text("key").trim_start_matches("node.kubernetes.io/");
            format!("{key}:{}", text("effect"))
        })
        .collect();
    format!("{} {}", conditions(node, &["Ready"]), taints.join(" "))
        .trim()
        .to_owned()
}
