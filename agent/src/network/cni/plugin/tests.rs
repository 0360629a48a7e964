//! Real programs: what they are told, and what becomes of those that do not end or say too much.

use super::{Invocation, PluginError, find, run};
use crate::network::cni::testing::{Node, PATIENCE, wait};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Long enough for a shell on a busy machine to begin.
const SHORT: Duration = Duration::from_secs(2);

async fn said(
    node: &Node,
    body: &str,
    input: &[u8],
    time_max: Duration,
) -> Result<String, PluginError> {
    node.script("it", body);
    let invocation = Invocation {
        program: node.path("bin/it"),
        environment: vec![("CNI_COMMAND", "ADD".into())],
        input: input.to_vec(),
        time_max,
    };
    let said = run(&invocation, &CancellationToken::new()).await?;
    Ok(String::from_utf8(said).unwrap())
}

/// None until it was written; then whether the process is there.
fn lives(node: &Node, file: &str) -> Option<bool> {
    let text = std::fs::read_to_string(node.path(file)).ok()?;
    let text = text.strip_suffix('\n')?;
    let stat = std::fs::read_to_string(format!("/proc/{text}/stat"));
    Some(stat.is_ok_and(|stat| !stat.contains(") Z ")))
}

#[tokio::test]
async fn it_is_told_and_answers() {
    let node = Node::new();
    let body = "read line; echo \"$CNI_COMMAND $line\"; echo complaint >&2";
    assert_eq!(
        said(&node, body, b"{}\n", PATIENCE).await.unwrap(),
        "ADD {}\n"
    );
}

#[tokio::test]
async fn much_goes_both_ways_at_once() {
    let node = Node::new();
    let input = vec![b'x'; 1 << 19];
    let answer = said(&node, "cat", &input, PATIENCE).await.unwrap();
    assert_eq!(answer.len(), input.len());
    // It need not listen.
    assert_eq!(
        said(&node, "echo deaf", &input, PATIENCE).await.unwrap(),
        "deaf\n"
    );
    // Complaints are read on.
    let body = "head -c 3000000 /dev/zero >&2; echo done";
    assert_eq!(said(&node, body, b"", PATIENCE).await.unwrap(), "done\n");
}

#[tokio::test]
async fn one_that_hangs_is_killed_with_all_that_it_started() {
    let node = Node::new();
    let body = "sleep 1000 & echo $! > $here/child; echo $$ > $here/self; echo '{}'; wait";
    let error = said(&node, body, b"", SHORT).await.unwrap_err();
    assert_eq!(error.to_string(), "it did not end within 2s and was killed");
    wait("nothing of it is left", || {
        lives(&node, "self") == Some(false) && lives(&node, "child") == Some(false)
    })
    .await;
}

#[tokio::test]
async fn one_that_says_too_much_is_killed() {
    let node = Node::new();
    let body = "echo $$ > $here/self; while :; do cat /dev/zero; done";
    let error = said(&node, body, b"", PATIENCE).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "it said more than 1048576 bytes and was killed"
    );
    wait("it is gone", || lives(&node, "self") == Some(false)).await;
    // Or ended by itself, with as much.
    let body = "head -c 1048577 /dev/zero";
    let error = said(&node, body, b"", PATIENCE).await.unwrap_err();
    assert!(matches!(error, PluginError::Talkative), "{error}");
}

#[tokio::test]
async fn who_waits_no_more_ends_it() {
    let node = Node::new();
    node.script("it", "echo $$ > $here/self; exec sleep 1000");
    let invocation = Invocation {
        program: node.path("bin/it"),
        environment: Vec::new(),
        input: Vec::new(),
        time_max: PATIENCE,
    };
    let stop = CancellationToken::new();
    let (running, began) = (run(&invocation, &stop), async {
        wait("it runs", || lives(&node, "self") == Some(true)).await;
        stop.cancel();
    });
    let (ended, ()) = tokio::join!(running, began);
    assert!(matches!(ended, Err(PluginError::Stopped)), "{ended:?}");
    wait("it is gone", || lives(&node, "self") == Some(false)).await;
    // Nothing is begun then.
    std::fs::remove_file(node.path("self")).unwrap();
    let ended = run(&invocation, &stop).await;
    assert!(matches!(ended, Err(PluginError::Stopped)), "{ended:?}");
    assert_eq!(lives(&node, "self"), None);
}

#[tokio::test]
async fn what_it_leaves_running_keeps_nobody_waiting() {
    let node = Node::new();
    let body = "sleep 1000 & echo $! > $here/child; echo answer";
    assert_eq!(said(&node, body, b"", PATIENCE).await.unwrap(), "answer\n");
    // That is the plugin's own business.
    assert_eq!(lives(&node, "child"), Some(true));
    let child = std::fs::read_to_string(node.path("child")).unwrap();
    let child = nix::unistd::Pid::from_raw(child.trim().parse().unwrap());
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn failures_are_told() {
    let node = Node::new();
    let failed = async |body: &str| {
        said(&node, body, b"", PATIENCE)
            .await
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        failed("echo '{\"code\": 7, \"msg\": \"no subnet\"}'; echo x >&2; exit 2").await,
        "no subnet"
    );
    assert_eq!(
        failed("echo gone wrong >&2; exit 3").await,
        r#"netplugin failed: "gone wrong\n": exit status: 3"#
    );
    assert_eq!(
        failed("kill -9 $$").await,
        "netplugin failed with no error message: signal: 9 (SIGKILL)"
    );
    std::fs::write(node.path("bin/none"), "no program").unwrap();
    let invocation = Invocation {
        program: node.path("bin/none"),
        environment: Vec::new(),
        input: Vec::new(),
        time_max: PATIENCE,
    };
    let error = run(&invocation, &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("cannot run /"), "{error}");
}

#[test]
fn it_is_looked_for_in_order() {
    let node = Node::new();
    node.script("it", "");
    let (none, bin) = (node.path("none"), node.path("bin"));
    let found = find("it", &[none.clone(), bin.clone()]).unwrap();
    assert_eq!(found, bin.join("it"));
    let error = find("that", &["/a".into(), "/b".into()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"failed to find plugin "that" in path [/a /b]"#
    );
}
