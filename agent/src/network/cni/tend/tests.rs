//! The state of the node, and what is cleaned up.

use super::State;
use crate::network::cni::Cni;
use crate::network::cni::testing::{Node, PATIENCE, RESULT, attach, detach, list, wait};
use crate::runtime::SandboxId;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

fn both(version: &str) -> String {
    list(version, r#"{"type": "one"}, {"type": "two"}"#)
}

fn node(version: &str) -> Node {
    let node = Node::new();
    node.plugin("one", RESULT);
    node.plugin("two", RESULT);
    node.configure("10-lab.conflist", &both(version));
    node
}

/// Until the guard is dropped.
fn go_on<Running>(work: impl FnOnce(CancellationToken) -> Running) -> DropGuard
where
    Running: Future<Output = ()> + Send + 'static,
{
    let stop = CancellationToken::new();
    tokio::spawn(work(stop.clone()));
    stop.drop_guard()
}

fn watch(cni: &Cni) -> DropGuard {
    go_on(|stop| cni.clone().watch(stop))
}

async fn until(cni: &Cni, what: &str, holds: impl FnMut(&State) -> bool) {
    let mut states = cni.subscribe();
    let waited = tokio::time::timeout(PATIENCE, states.wait_for(holds)).await;
    assert!(
        waited.is_ok_and(|state| state.is_ok()),
        "waited until {what}"
    );
}

#[tokio::test]
async fn configurations_come_and_go() {
    let node = node("1.0.0");
    let cni = node.cni(PATIENCE);
    let _watch = watch(&cni);
    assert_eq!(*cni.subscribe().borrow(), State::Ready);
    node.unconfigure("10-lab.conflist");
    until(&cni, "none is there", |state| *state == State::Unused).await;
    assert!(!cni.is_used());
    node.configure("10-lab.conflist", "no JSON");
    until(&cni, "a bad one is told of", |state| {
        matches!(state, State::Problem(text) if text.contains("10-lab.conflist: it is no JSON"))
    })
    .await;
    assert!(cni.is_used() && cni.problem().is_some());
    node.configure("10-lab.conflist", &both("1.0.0"));
    until(&cni, "a good one is there", |state| *state == State::Ready).await;
    assert_eq!(cni.problem(), None);
    // None is asked for STATUS before 1.1.0.
    assert_eq!(node.log(), "");
}

#[tokio::test]
async fn plugins_say_how_they_are() {
    let node = node("1.1.0");
    node.fails("two", "STATUS", true);
    let cni = node.cni(PATIENCE);
    let _watch = watch(&cni);
    until(&cni, "one complains", |state| {
        *state == State::Problem("plugin type=\"two\" failed (status): not now; later".into())
    })
    .await;
    assert!(node.log().starts_with("one STATUS  [] \ntwo STATUS  [] \n"));
    let told = json!({"type": "two", "name": "lab", "cniVersion": "1.1.0"});
    assert_eq!(node.told("two", "STATUS"), told);
    node.fails("two", "STATUS", false);
    node.configure("11-more.conflist", "wakes who looks");
    until(&cni, "none complains", |state| *state == State::Ready).await;
}

#[tokio::test]
async fn one_that_hangs_is_not_well() {
    let node = node("1.1.0");
    node.script(
        "two",
        "if [ $CNI_COMMAND = STATUS ]; then exec sleep 1000; fi",
    );
    let cni = node.cni(Duration::from_secs(2));
    let _watch = watch(&cni);
    until(&cni, "it is told of", |state| {
        matches!(state, State::Problem(text) if text.ends_with("(status): it did not end within 2s and \
                                                                was killed"))
    })
    .await;
}

#[tokio::test]
async fn an_agent_that_stops_blames_no_plugin() {
    let node = node("1.1.0");
    node.script("two", "echo > $here/asked; exec sleep 1000");
    let cni = node.cni(PATIENCE);
    let stop = CancellationToken::new();
    let watching = tokio::spawn(cni.clone().watch(stop.clone()));
    wait("it is asked", || node.path("asked").exists()).await;
    stop.cancel();
    watching.await.unwrap();
    assert_eq!(cni.problem(), None);
}

#[tokio::test]
async fn what_is_lost_is_taken_back_and_the_rest_is_told() {
    let node = node("1.1.0");
    let cni = node.cni(PATIENCE);
    attach(&cni, "s1").await;
    attach(&cni, "s2").await;
    node.log();
    let cni = node.cni(PATIENCE);
    let _sweep = go_on(|stop| cni.clone().sweep(stop));
    cni.reclaim(&[SandboxId("s2".into())].into());
    wait("both were told", || node.path("two-GC").exists()).await;
    assert_eq!(
        node.log(),
        "two DEL s1 [/proc/self/ns/net] eth0\none DEL s1 [/proc/self/ns/net] eth0\n\
         one GC  [] \ntwo GC  [] \n"
    );
    let valid = json!([{"containerID": "s2", "ifname": "eth0"}]);
    for plugin in ["one", "two"] {
        let told = node.told(plugin, "GC");
        assert_eq!(told["cni.dev/valid-attachments"], valid);
        assert_eq!(told["cni.dev/attachments"], valid);
        assert_eq!(told["name"], "lab");
    }
}

#[tokio::test]
async fn what_is_unreadable_keeps_its_network() {
    let node = node("1.1.0");
    let cni = node.cni(PATIENCE);
    attach(&cni, "s1").await;
    attach(&cni, "s2").await;
    std::fs::write(node.path("network.cni/s1"), "{").unwrap();
    let valid = ["s1", "s2"].map(|id| json!({"containerID": id, "ifname": "eth0"}));
    // As long as it is set aside.
    for _ in 0..2 {
        cni.0.collect(&CancellationToken::new()).await;
        let told = node.told("one", "GC");
        assert_eq!(told["cni.dev/valid-attachments"], json!(valid));
        std::fs::remove_file(node.path("one-GC")).unwrap();
    }
    // And no longer than its sandbox is there, for this agent or the next.
    assert_eq!(detach(&cni, "s1").await, "false");
    std::fs::write(node.path("network.cni/.unreadable-s3"), "{").unwrap();
    let cni = node.cni(PATIENCE);
    cni.reclaim(&[SandboxId("s2".into())].into());
    assert!(cni.0.take_back(&CancellationToken::new()).await);
    cni.0.collect(&CancellationToken::new()).await;
    let told = node.told("one", "GC");
    assert_eq!(told["cni.dev/valid-attachments"], json!(valid[1..]));
    std::fs::remove_file(node.path("one-GC")).unwrap();
    // Where nothing can be read, nothing is taken.
    std::fs::remove_dir_all(node.path("network.cni")).unwrap();
    std::fs::write(node.path("network.cni"), "").unwrap();
    cni.0.collect(&CancellationToken::new()).await;
    assert!(!node.path("one-GC").exists());
}

#[tokio::test]
async fn what_cannot_be_listed_at_the_start_is_listed_later() {
    let node = node("1.1.0");
    attach(&node.cni(PATIENCE), "s1").await;
    attach(&node.cni(PATIENCE), "s2").await;
    node.log();
    // No directory for a while.
    std::fs::rename(node.path("network.cni"), node.path("away")).unwrap();
    std::fs::write(node.path("network.cni"), "").unwrap();
    let cni = node.cni(PATIENCE);
    cni.reclaim(&[SandboxId("s2".into())].into());
    let stop = CancellationToken::new();
    assert!(!cni.0.take_back(&stop).await, "it is to be tried again");
    std::fs::remove_file(node.path("network.cni")).unwrap();
    std::fs::rename(node.path("away"), node.path("network.cni")).unwrap();
    attach(&cni, "s3").await;
    node.log();
    assert!(cni.0.take_back(&stop).await);
    assert_eq!(
        node.log(),
        "two DEL s1 [/proc/self/ns/net] eth0\none DEL s1 [/proc/self/ns/net] eth0\n"
    );
}

#[tokio::test]
async fn who_cleans_up_keeps_no_pod_waiting() {
    let node = node("1.1.0");
    let cni = node.cni(PATIENCE);
    let stop = CancellationToken::new();
    let slow = cni.0.exclusion.read().await;
    let worked = tokio::time::timeout(PATIENCE, async {
        assert!(!cni.0.collect(&stop).await, "a plugin works for a pod");
        attach(&cni, "s1").await;
    });
    worked.await.unwrap();
    assert!(!node.path("one-GC").exists());
    drop(slow);
    assert!(cni.0.collect(&stop).await);
    assert!(node.path("one-GC").exists());
}

#[tokio::test]
async fn networks_that_know_no_gc_are_not_asked() {
    for text in [
        both("1.0.0"),
        both("1.1.0").replacen('{', r#"{"disableGC": true, "#, 1),
    ] {
        let node = node("1.0.0");
        node.configure("10-lab.conflist", &text);
        let cni = node.cni(PATIENCE);
        attach(&cni, "s1").await;
        node.log();
        assert!(cni.0.take_back(&CancellationToken::new()).await);
        cni.0.collect(&CancellationToken::new()).await;
        assert_eq!(node.log(), "");
    }
}
