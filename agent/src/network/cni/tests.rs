//! Sandboxes on networks of plugins that are scripts.

use super::testing::{Node, PATIENCE, RESULT, attach, begun, detach, list, sandbox, wait};
use super::{Cni, Resolvers};
use crate::runtime::SandboxId;
use expect_test::expect;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CHANGED: &str =
    r#"{"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/16"}], "routes": []}"#;

/// Of a plugin that makes the link and one that is chained.
fn two() -> Node {
    let node = Node::new();
    node.plugin("link", RESULT);
    node.plugin("chained", CHANGED);
    let plugins = r#"{"type": "link"}, {"type": "chained", "capabilities": {"ipRanges": true}}"#;
    node.configure("10-lab.conflist", &list("1.0.0", plugins));
    node
}

fn addresses_of(cni: &Cni, id: &str) -> Option<String> {
    let addresses = cni.addresses_of(&SandboxId(id.into()))?;
    Some(format!("{addresses:?}"))
}

#[tokio::test]
async fn plugins_are_asked_one_after_the_other() {
    let node = two();
    let cni = node.cni(PATIENCE);
    cni.use_cidrs(vec!["10.1.0.0/16".into()]);
    assert!(cni.is_used());
    assert_eq!(cni.problem(), None);
    assert_eq!(attach(&cni, "s1").await, "[10.1.0.2]");
    assert_eq!(addresses_of(&cni, "s1").unwrap(), "[10.1.0.2]");
    expect![[r#"
        link ADD s1 [/proc/self/ns/net] eth0
        chained ADD s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
    let told = json!({"type": "link", "name": "lab", "cniVersion": "1.0.0"});
    assert_eq!(node.told("link", "ADD"), told);
    let before: serde_json::Value = serde_json::from_str(RESULT).unwrap();
    let told = json!({
        "type": "chained", "name": "lab", "cniVersion": "1.0.0", "prevResult": before,
        "capabilities": {"ipRanges": true},
        "runtimeConfig": {"ipRanges": [[{"subnet": "10.1.0.0/16"}]]},
    });
    assert_eq!(node.told("chained", "ADD"), told);
    assert_eq!(detach(&cni, "s1").await, "true");
    expect![[r#"
        chained DEL s1 [/proc/self/ns/net] eth0
        link DEL s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
    let last: serde_json::Value = serde_json::from_str(CHANGED).unwrap();
    for plugin in ["link", "chained"] {
        assert_eq!(node.told(plugin, "DEL")["prevResult"], last);
    }
    assert_eq!(addresses_of(&cni, "s1"), None);
    assert_eq!(detach(&cni, "s1").await, "false");
    assert_eq!(node.log(), "");
}

#[tokio::test]
async fn a_network_that_is_not_made_whole_is_taken_back() {
    let node = two();
    let cni = node.cni(PATIENCE);
    node.fails("chained", "ADD", true);
    assert_eq!(
        attach(&cni, "s1").await,
        "failed to setup network for sandbox \"s1\": plugin type=\"chained\" failed (add): not \
         now; later"
    );
    expect![[r#"
        link ADD s1 [/proc/self/ns/net] eth0
        chained ADD s1 [/proc/self/ns/net] eth0
        chained DEL s1 [/proc/self/ns/net] eth0
        link DEL s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
    assert_eq!(detach(&cni, "s1").await, "false");
    // A result without an address is of no use.
    node.fails("chained", "ADD", false);
    node.plugin("chained", r#"{"cniVersion": "1.0.0"}"#);
    assert_eq!(
        attach(&cni, "s1").await,
        "failed to find network info for sandbox \"s1\""
    );
    assert!(
        node.log()
            .ends_with("link DEL s1 [/proc/self/ns/net] eth0\n")
    );
    node.script("chained", "echo busy");
    assert_eq!(
        attach(&cni, "s1").await,
        "failed to setup network for sandbox \"s1\": plugin type=\"chained\" failed (add): its \
         result is no JSON object: \"busy\\n\""
    );
    std::fs::remove_file(node.path("bin/chained")).unwrap();
    let said = attach(&cni, "s1").await;
    assert!(
        said.contains("failed (add): failed to find plugin \"chained\" in path [/"),
        "{said}"
    );
}

#[tokio::test]
async fn del_is_asked_until_it_is_done_and_as_add_was() {
    let node = two();
    let cni = node.cni(PATIENCE);
    attach(&cni, "s1").await;
    node.log();
    node.fails("link", "DEL", true);
    let failed = "failed to destroy network for sandbox \"s1\": plugin type=\"link\" failed \
                  (delete): not now; later";
    assert_eq!(detach(&cni, "s1").await, failed);
    // It is still known, to the next agent too, whatever the network is by then.
    node.configure("10-lab.conflist", &list("0.4.0", r#"{"type": "other"}"#));
    let cni = node.cni(PATIENCE);
    assert_eq!(addresses_of(&cni, "s1").unwrap(), "[10.1.0.2]");
    assert_eq!(detach(&cni, "s1").await, failed);
    node.fails("link", "DEL", false);
    node.unconfigure("10-lab.conflist");
    assert_eq!(detach(&cni, "s1").await, "true");
    assert!(
        node.log()
            .ends_with("link DEL s1 [/proc/self/ns/net] eth0\n")
    );
    assert_eq!(node.told("chained", "DEL")["cniVersion"], "1.0.0");
}

#[tokio::test]
async fn del_goes_on_where_there_is_nothing_to_take_away() {
    let node = two();
    let cni = node.cni(PATIENCE);
    let mut gone = sandbox("s1");
    gone.network_namespace = Some(node.path("no-namespace"));
    let attached = cni.attach(&gone, &Resolvers::default()).await;
    assert!(attached.unwrap().is_some());
    // As after a reboot: the namespace is not named.
    node.log();
    let fails = |text: &str| format!("echo '{{\"msg\": \"{text}\"}}'; exit 1");
    node.script("chained", &fails("open /x: no such file or directory"));
    assert_eq!(detach(&cni, "s1").await, "true");
    assert_eq!(node.log(), "link DEL s1 [] eth0\n");
    // With a namespace that is no reason.
    node.plugin("chained", CHANGED);
    attach(&cni, "s2").await;
    node.script("chained", &fails("open /x: no such file or directory"));
    assert!(detach(&cni, "s2").await.starts_with("failed to destroy"));
    node.script("chained", &fails("container s2 not found"));
    assert_eq!(detach(&cni, "s2").await, "true");
}

#[tokio::test]
async fn what_is_attached_is_checked_and_made_again_if_need_be() {
    let node = two();
    attach(&node.cni(PATIENCE), "s1").await;
    node.log();
    let cni = node.cni(PATIENCE);
    assert_eq!(attach(&cni, "s1").await, "[10.1.0.2]");
    expect![[r#"
        link CHECK s1 [/proc/self/ns/net] eth0
        chained CHECK s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
    let last: serde_json::Value = serde_json::from_str(CHANGED).unwrap();
    assert_eq!(node.told("link", "CHECK")["prevResult"], last);
    node.fails("chained", "CHECK", true);
    node.plugin("chained", r#"{"ips": [{"address": "10.1.0.3/16"}]}"#);
    assert_eq!(attach(&cni, "s1").await, "[10.1.0.3]");
    expect![[r#"
        link CHECK s1 [/proc/self/ns/net] eth0
        chained CHECK s1 [/proc/self/ns/net] eth0
        chained DEL s1 [/proc/self/ns/net] eth0
        link DEL s1 [/proc/self/ns/net] eth0
        link ADD s1 [/proc/self/ns/net] eth0
        chained ADD s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
}

#[tokio::test]
async fn networks_that_know_no_check_are_believed() {
    let plugin = r#"{"type": "link"}"#;
    let closed = list("1.0.0", plugin).replacen('{', r#"{"disableCheck": true, "#, 1);
    for text in [list("0.3.1", plugin), closed] {
        let node = Node::new();
        node.plugin("link", RESULT);
        node.configure("10-lab.conflist", &text);
        let cni = node.cni(PATIENCE);
        attach(&cni, "s1").await;
        node.log();
        assert_eq!(attach(&cni, "s1").await, "[10.1.0.2]");
        assert_eq!(node.log(), "");
    }
    // Nor are they told at DEL what was before, before 0.4.0.
    let node = Node::new();
    node.plugin("link", RESULT);
    node.configure("10-lab.conflist", &list("0.3.1", plugin));
    let cni = node.cni(PATIENCE);
    attach(&cni, "s1").await;
    detach(&cni, "s1").await;
    assert_eq!(node.told("link", "DEL").get("prevResult"), None);
}

#[tokio::test]
async fn what_is_broken_off_is_undone_before_it_is_done_again() {
    let node = two();
    let hang = "echo link $CNI_COMMAND >> $here/log; if [ $CNI_COMMAND = ADD ]; then exec sleep \
                1000; fi";
    node.script("link", hang);
    let cni = node.cni(PATIENCE);
    let sandbox = sandbox("s1");
    {
        let resolvers = Resolvers::default();
        let attaching = cni.attach(&sandbox, &resolvers);
        let has_begun = || std::fs::read(node.path("log")).is_ok_and(|log| !log.is_empty());
        let begun = wait("it has begun", has_begun);
        tokio::select! {
            attached = attaching => panic!("{attached:?}"),
            () = begun => {}
        }
    }
    assert_eq!(addresses_of(&cni, "s1"), None);
    node.plugin("link", RESULT);
    assert_eq!(attach(&cni, "s1").await, "[10.1.0.2]");
    expect![[r#"
        link ADD
        chained DEL s1 [/proc/self/ns/net] eth0
        link DEL s1 [/proc/self/ns/net] eth0
        link ADD s1 [/proc/self/ns/net] eth0
        chained ADD s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
}

#[tokio::test]
async fn what_is_unreadable_is_taken_back_before_it_is_made_again() {
    let node = two();
    attach(&node.cni(PATIENCE), "s1").await;
    std::fs::write(node.path("network.cni/s1"), "{").unwrap();
    let cni = node.cni(PATIENCE);
    assert_eq!(addresses_of(&cni, "s1"), None);
    node.log();
    node.fails("chained", "DEL", true);
    assert_eq!(
        attach(&cni, "s1").await,
        "failed to destroy network for sandbox \"s1\": plugin type=\"chained\" failed (delete): \
         not now; later"
    );
    node.fails("chained", "DEL", false);
    for _ in 0..2 {
        assert_eq!(attach(&cni, "s1").await, "[10.1.0.2]");
    }
    expect![[r#"
        chained DEL s1 [/proc/self/ns/net] eth0
        chained DEL s1 [/proc/self/ns/net] eth0
        link DEL s1 [/proc/self/ns/net] eth0
        link ADD s1 [/proc/self/ns/net] eth0
        chained ADD s1 [/proc/self/ns/net] eth0
        link CHECK s1 [/proc/self/ns/net] eth0
        chained CHECK s1 [/proc/self/ns/net] eth0
    "#]]
    .assert_eq(&node.log());
}

/// An agent that is killed takes no plugin with it.
#[tokio::test]
async fn a_plugin_of_an_agent_that_was_killed_is_ended_before_the_next_runs() {
    let node = two();
    let cni = node.cni(PATIENCE);
    node.fails("chained", "ADD", true);
    node.fails("chained", "DEL", true);
    attach(&cni, "s1").await;
    node.fails("chained", "DEL", false);
    node.fails("chained", "ADD", false);
    node.log();
    // As that agent started it, and with what it runs in turn.
    node.script("link-of-before", "sleep 1000; echo late >> $here/log");
    let mut command = std::process::Command::new(node.path("bin/link-of-before"));
    let path = super::plugin::joined(&node.settings(PATIENCE).plugins);
    command
        .env("CNI_COMMAND", "ADD")
        .env("CNI_CONTAINERID", "s1");
    command.env("CNI_PATH", path);
    let mut before = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .unwrap();
    begun(&before).await;
    let cni = node.cni(PATIENCE);
    let waiting = std::thread::spawn(move || before.wait().unwrap());
    assert_eq!(detach(&cni, "s1").await, "true");
    assert!(!waiting.join().unwrap().success(), "it was killed");
    let log = node.log();
    assert!(log.starts_with("chained DEL s1 "), "{log}");
}

#[tokio::test]
async fn a_wipe_that_finds_no_list_says_so() {
    let node = two();
    std::fs::write(node.path("network.cni"), "").unwrap();
    assert!(Cni::wipe(node.path("network.cni")).await.is_err());
}

#[tokio::test]
async fn who_waits_no_more_gives_up_its_turn() {
    let node = two();
    let cni = node.cni(PATIENCE);
    attach(&cni, "s1").await;
    let id = SandboxId("s1".into());
    let (sandbox, resolvers) = (sandbox("s1"), Resolvers::default());
    let stopped = |stop: CancellationToken| {
        let (cni, id, sandbox, resolvers) = (&cni, &id, &sandbox, &resolvers);
        async move {
            let attached = cni.0.attach(sandbox, resolvers, &stop).await;
            assert!(attached.is_err(), "{attached:?}");
            let detached = cni.0.detach(id, &stop).await;
            assert!(detached.is_err(), "{detached:?}");
        }
    };
    let all = cni.0.runner.permits().await;
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::task::yield_now().await;
        stop.cancel();
    };
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::join!(stopped(stop.clone()), stopping);
        drop(all);
        let stop = CancellationToken::new();
        stop.cancel();
        let locked = cni.0.exclusion.write().await;
        stopped(stop.clone()).await;
        drop(locked);
        let _alone = cni.0.alone(&id).await;
        stopped(stop).await;
    });
    waited.await.unwrap();
    assert_eq!(addresses_of(&cni, "s1").unwrap(), "[10.1.0.2]");
}

#[tokio::test]
async fn a_plugin_that_hangs_is_told_of() {
    let node = two();
    node.script(
        "chained",
        "if [ $CNI_COMMAND = ADD ]; then exec sleep 1000; fi",
    );
    let cni = node.cni(Duration::from_secs(2));
    assert_eq!(
        attach(&cni, "s1").await,
        "failed to setup network for sandbox \"s1\": plugin type=\"chained\" failed (add): it did \
         not end within 2s and was killed"
    );
    assert_eq!(detach(&cni, "s1").await, "false", "it was taken back");
}

#[tokio::test]
async fn without_a_configuration_there_is_no_network_of_plugins() {
    let node = two();
    let cni = node.cni(PATIENCE);
    node.unconfigure("10-lab.conflist");
    assert_eq!(attach(&cni, "s1").await, "no network of plugins");
    node.configure("10-lab.conflist", "{");
    let said = attach(&cni, "s1").await;
    assert!(
        said.starts_with("failed to load CNI config file /"),
        "{said}"
    );
    // A change counts at once.
    node.configure("10-lab.conflist", &list("0.3.0", r#"{"type": "link"}"#));
    assert_eq!(attach(&cni, "s1").await, "[10.1.0.2]");
}

#[tokio::test]
async fn a_node_that_goes_leaves_no_network() {
    let node = two();
    let cni = node.cni(PATIENCE);
    attach(&cni, "s1").await;
    attach(&cni, "s2").await;
    node.log();
    node.unconfigure("10-lab.conflist");
    // Each waits for the other.
    let meet = "echo chained $CNI_COMMAND $CNI_CONTAINERID [$CNI_NETNS] $CNI_IFNAME >> $here/log\n\
                until [ $(grep -c ^chained $here/log) = 2 ]; do sleep 0.01; done";
    node.script("chained", meet);
    Cni::wipe(node.path("network.cni")).await.unwrap();
    let log = node.log();
    let of = |id: &str| {
        let lines = log.lines().filter(|line| line.contains(id));
        lines.collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        chained DEL s1 [/proc/self/ns/net] eth0
        link DEL s1 [/proc/self/ns/net] eth0"#]]
    .assert_eq(&of(" s1 "));
    expect![[r#"
        chained DEL s2 [/proc/self/ns/net] eth0
        link DEL s2 [/proc/self/ns/net] eth0"#]]
    .assert_eq(&of(" s2 "));
    assert_eq!(log.lines().count(), 4);
}
