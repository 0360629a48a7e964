//! The whole loop, cut off from the server at its calls in turn, before or after the call took
//! effect, and started anew: each pod is counted exactly once, and none too many is made. `survival` shows the same of the pure part, with many deaths in a row.

use std::collections::HashMap;
use std::time::Duration;

use super::whole::{JOB, end, holds, pods, put_job, status};
use super::*;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn_mortal};

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

/// What was asked, and the number of pods that were made.
async fn live(words: &[&str], last: &str, death: Option<Death>) -> (Calls, usize) {
    let said = format!("{words:?} {death:?}");
    let cluster = FakeCluster::new();
    put_job(&cluster, words);
    let living = spawn_mortal(&cluster, run, death);
    let mut node = Node::default();
    let mut looks = 0;
    while !holds(&cluster, last) {
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
    let changes = cluster.api.changes("/api/v1/pods").into_iter();
    let made = changes.filter(|(kind, _)| *kind == "ADDED").count();
    assert_eq!(made, node.seen.len(), "{said}");
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
    (living.calls.clone(), made)
}

async fn dies_everywhere(words: &[&str], last: &str) {
    let (calls, made) = live(words, last, None).await;
    // Two pods that fail at the same time may be counted in one pass.
    assert!(calls.writes() > 7, "{}", calls.writes());
    for death in calls.deaths(1) {
        let (_, again) = live(words, last, Some(death)).await;
        assert_eq!(again, made, "{words:?} {death:?}");
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
