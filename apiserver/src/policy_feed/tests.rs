//! What a node is told, as lines.

use super::*;
use coracle_store::{Change, Config, Durability, Expect, Stamped, Write};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

struct Site {
    store: Store,
    _directory: tempfile::TempDir,
}

fn site() -> Site {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path())).unwrap();
    Site {
        store,
        _directory: directory,
    }
}

impl Site {
    async fn write(&self, kind: Kind, value: Value, is_gone: bool) {
        let object = Object::from_value(value).unwrap();
        let stamped = Stamped {
            value: serde_json::to_vec(object.root()).unwrap(),
            revision_at: None,
        };
        let write = Write {
            partition: kind.partition().into(),
            key: object.key().to_string().into(),
            change: if is_gone {
                Change::Delete(stamped)
            } else {
                Change::Put(stamped)
            },
            expect: Expect::Any,
            durability: Durability::Lazy,
        };
        self.store.commit(write).await.unwrap();
    }

    async fn put(&self, kind: Kind, value: Value) {
        self.write(kind, value, false).await;
    }

    fn listen(&self) -> Lines {
        let response = follow(self.store.clone(), CancellationToken::new());
        Lines {
            body: response.into_body(),
            read: Vec::new(),
        }
    }
}

struct Lines {
    body: Body,
    read: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Told {
        let next = tokio::time::timeout(PATIENCE, self.line());
        next.await.expect("a line in time")
    }

    async fn line(&mut self) -> Told {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let frame = self.body.frame().await.expect("the feed goes on").unwrap();
            self.read.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// In a word, with the name.
    async fn short(&mut self) -> String {
        short(&self.next().await)
    }

    async fn shorts(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.short().await);
        }
        all
    }
}

fn short(told: &Told) -> String {
    let gone = |is_gone: bool| if is_gone { " gone" } else { "" };
    match told {
        Told::Begin => "begin".to_owned(),
        Told::Listed => "listed".to_owned(),
        Told::Policy { name, spec, .. } => format!("policy {name}{}", gone(spec.is_none())),
        Told::Namespace { name, labels } => format!("namespace {name}{}", gone(labels.is_none())),
        Told::Pod { name, pod, .. } => format!("pod {name}{}", gone(pod.is_none())),
    }
}

fn policy(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "web" },
        "spec": { "podSelector": {}, "policyTypes": ["Ingress"] },
    })
}

fn pod_with(name: &str, address: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "web", "uid": "u", "labels": { "app": name } },
        "spec": {
            "initContainers": [
                { "restartPolicy": "Always", "ports": [{ "name": "side", "containerPort": 1 }] },
                { "ports": [{ "name": "before", "containerPort": 2 }] },
            ],
            "containers": [{
                "env": [{ "name": "PASSWORD", "value": "secret" }],
                "ports": [
                    { "name": "dns", "containerPort": 53, "protocol": "UDP" },
                    { "containerPort": 9 },
                ],
            }],
        },
        "status": { "phase": "Running", "podIPs": [{ "ip": address }] },
    })
}

#[test]
fn of_a_pod_no_more_is_told_than_rules_are_made_of() {
    let object = Object::from_value(pod_with("a", "10.0.0.1")).unwrap();
    let told = Kind::Pods.told("web/a", Some(&object));
    let port = |name: &str, protocol: &str, port: u16| NamedPort {
        name: name.to_owned(),
        protocol: protocol.to_owned(),
        port,
    };
    let expected = Told::Pod {
        namespace: "web".to_owned(),
        name: "a".to_owned(),
        pod: Some(Pod {
            uid: "u".to_owned(),
            labels: [("app".to_owned(), "a".to_owned())].into(),
            addresses: vec!["10.0.0.1".parse().unwrap()],
            ports: vec![port("side", "TCP", 1), port("dns", "UDP", 53)],
        }),
    };
    assert_eq!(told, expected);
    assert!(!serde_json::to_string(&told).unwrap().contains("secret"));
    for (path, value) in [
        (["status", "phase"], json!("Succeeded")),
        (["status", "phase"], json!("Failed")),
        (["status", "podIPs"], json!([])),
        (["spec", "hostNetwork"], json!(true)),
    ] {
        let mut object = object.clone();
        object.set(&path, value);
        let told = Kind::Pods.told("web/a", Some(&object));
        assert!(matches!(told, Told::Pod { pod: None, .. }), "{path:?}");
    }
}

#[tokio::test]
async fn pods_are_told_of_while_a_policy_exists() {
    let site = site();
    let namespace = json!({ "metadata": { "name": "web", "labels": { "tier": "front" } } });
    site.put(Kind::Namespaces, namespace).await;
    site.put(Kind::Pods, pod_with("a", "10.0.0.1")).await;
    let mut waiting = pod_with("waiting", "10.0.0.2");
    waiting["status"]["podIPs"] = json!([]);
    site.put(Kind::Pods, waiting.clone()).await;
    let mut lines = site.listen();
    assert_eq!(lines.shorts(2).await, ["begin", "listed"]);

    site.put(Kind::Policies, policy("deny")).await;
    let all = lines.shorts(5).await;
    assert_eq!(
        all,
        ["begin", "policy deny", "namespace web", "pod a", "listed"]
    );

    // A pod that has no address yet, and one whose state alone changes, are no news.
    waiting["status"]["phase"] = json!("Pending");
    site.put(Kind::Pods, waiting).await;
    let mut same = pod_with("a", "10.0.0.1");
    same["status"]["message"] = json!("well");
    site.put(Kind::Pods, same).await;
    site.put(Kind::Pods, pod_with("waiting", "10.0.0.2")).await;
    assert_eq!(lines.short().await, "pod waiting");
    let mut done = pod_with("a", "10.0.0.1");
    done["status"]["phase"] = json!("Succeeded");
    site.put(Kind::Pods, done.clone()).await;
    assert_eq!(lines.short().await, "pod a gone");
    site.write(Kind::Pods, done, true).await;
    site.write(Kind::Pods, pod_with("waiting", "10.0.0.2"), true)
        .await;
    assert_eq!(lines.short().await, "pod waiting gone");

    site.put(Kind::Policies, policy("more")).await;
    assert_eq!(lines.short().await, "policy more");
    site.write(Kind::Policies, policy("deny"), true).await;
    assert_eq!(lines.short().await, "policy deny gone");
    site.write(Kind::Policies, policy("more"), true).await;
    assert_eq!(lines.shorts(2).await, ["begin", "listed"]);
}

/// Whether it may listen is asked again then.
#[tokio::test]
async fn a_node_is_told_for_half_an_hour_to_an_hour() {
    let site = site();
    let begun = Instant::now();
    let mut lines = site.listen();
    assert_eq!(lines.shorts(2).await, ["begin", "listed"]);
    tokio::time::pause();
    let end = tokio::time::timeout(Duration::from_secs(7200), lines.body.frame());
    assert!(end.await.expect("it ends").is_none());
    let seconds = begun.elapsed().as_secs();
    assert!((1800..3700).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn a_long_list_is_told_whole_and_once() {
    let site = site();
    site.put(Kind::Policies, policy("deny")).await;
    let names: BTreeSet<String> = (0..600).map(|number| format!("pod-{number}")).collect();
    for name in &names {
        site.put(Kind::Pods, pod_with(name, "10.0.0.1")).await;
    }
    let mut lines = site.listen();
    assert_eq!(lines.shorts(2).await, ["begin", "policy deny"]);
    let told = lines.shorts(names.len()).await;
    let told: BTreeSet<String> = told
        .iter()
        .map(|line| line.trim_start_matches("pod ").to_owned())
        .collect();
    assert_eq!(told, names);
    assert_eq!(lines.short().await, "listed");
}
