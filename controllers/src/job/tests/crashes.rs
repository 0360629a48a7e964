//! The whole loop, cut off from the server at each of its requests in turn, before or after the
//! request took effect, and started anew: each pod is counted exactly once, and none too many is
//! made. `survival` shows the same of the pure part, with many deaths in a row.

use std::collections::HashMap;
use std::time::Duration;

use super::whole::{JOB, end, holds, pods, put_job, status};
use super::*;
use crate::fake_cluster::{Death, FakeCluster, spawn};

/// Between two looks at the pods.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Long enough for everything that is still to come to come.
const SETTLED: Duration = Duration::from_secs(30);
/// Beyond this many looks it will never end.
const LOOKS_MAX: usize = 1000;

/// Ends pods: the second of them fails.
#[derive(Default)]
struct Node {
    /// By uid, with the phase each ended in.
    seen: HashMap<String, Option<&'static str>>,
}

impl Node {
    fn look(&mut self, cluster: &FakeCluster) {
        for pod in pods(cluster) {
            let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
            let number = self.seen.len();
            match self.seen.get(&uid) {
                None => {
                    let phase = (number == 1).then_some("Failed");
                    self.seen.insert(uid.clone(), phase);
                }
                Some(None) => {
                    self.seen.insert(uid.clone(), Some("Succeeded"));
                }
                Some(Some(_)) => continue,
            }
            if let Some(phase) = self.seen[&uid] {
                end(cluster, pod, phase);
            }
        }
    }

    fn ended(&self, phase: &str) -> usize {
        let ended = self.seen.values();
        ended.filter(|one| **one == Some(phase)).count()
    }
}

/// Says whether the first process lived to see the end.
async fn survives(words: &[&str], last: &str, death: Death) -> bool {
    let said = format!("{words:?} {death:?}");
    let cluster = FakeCluster::new();
    put_job(&cluster, words);
    let (client, dead) = cluster.mortal_client(death);
    let mut running = Some(spawn(client, crate::Config::default(), run));
    let mut successor = None;
    let mut node = Node::default();
    let mut looks = 0;
    while !holds(&cluster, last) || (dead.is_cancelled() && successor.is_none()) {
        if dead.is_cancelled() && successor.is_none() {
            running = None;
            successor = Some(spawn(cluster.client(), crate::Config::default(), run));
        }
        node.look(&cluster);
        looks += 1;
        assert!(looks < LOOKS_MAX, "{said}: {}", status(&cluster));
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let ended = status(&cluster);
    tokio::time::sleep(SETTLED).await;
    let status = status(&cluster);
    assert_eq!(status, ended, "{said}: a finished job changes no more");
    let count = |name: &str| usize::try_from(status[name].as_u64().unwrap_or(0)).unwrap();
    let made = node.seen.len();
    assert_eq!(count("succeeded"), node.ended("Succeeded"), "{said}");
    assert_eq!(count("failed"), made - node.ended("Succeeded"), "{said}");
    assert_eq!(status["uncountedTerminatedPods"], json!({}), "{said}");
    if last == "Complete" {
        let wanted = cluster.api.get(JOB).unwrap()["spec"]["completions"].clone();
        assert_eq!(json!(count("succeeded")), wanted, "{said}");
    }
    for pod in pods(&cluster) {
        let finalizers = &pod["metadata"]["finalizers"];
        assert!(finalizers.as_array().is_none_or(Vec::is_empty), "{said}");
    }
    drop(running);
    !dead.is_cancelled()
}

async fn dies_everywhere(words: &[&str], last: &str) {
    for last_arrives in [false, true] {
        let mut after = 0;
        let death = |after| Death {
            after,
            last_arrives,
        };
        while !survives(words, last, death(after)).await {
            after += 1;
        }
        assert!(after > 10, "it died nowhere");
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_plain_job() {
    dies_everywhere(&["completions=4", "parallelism=2"], "Complete").await;
}

#[tokio::test(start_paused = true)]
async fn of_an_indexed_job() {
    let words = ["completions=4", "parallelism=2", "indexed", "per_index=2"];
    dies_everywhere(&words, "Complete").await;
}

#[tokio::test(start_paused = true)]
async fn of_a_job_that_fails() {
    let words = ["completions=4", "parallelism=3", "backoff=0"];
    dies_everywhere(&words, "Failed").await;
}
