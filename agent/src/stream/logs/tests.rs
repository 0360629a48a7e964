//! Logs as they are read: options, followed files, rotations.

use super::follow::End;
use super::{Options, Query, choose, read};
use crate::pods::state::Observed;
use crate::runtime::{
    ContainerConfig, ContainerEvent, ContainerId, ContainerState, ContainerStatus, EventKind,
    SandboxId,
};
use k8s_openapi::api::core::v1::Pod;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};

const LOG: &str = "\
2026-01-02T03:04:01.000000001Z stdout F one
2026-01-02T03:04:02.000000001Z stderr F two
2026-01-02T03:04:03.000000001Z stdout P thr
2026-01-02T03:04:03.000000002Z stdout F ee
no line at all
2026-01-02T03:04:04.000000001Z stdout F 
2026-01-02T03:04:05.000000001Z stdout F four  spaced
";

fn id() -> ContainerId {
    ContainerId("c".into())
}

async fn text(options: Options) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    std::fs::write(&path, LOG).unwrap();
    whole(&path, options).await
}

async fn whole(path: &Path, options: Options) -> String {
    let (_events, receiver) = broadcast::channel(4);
    let (chunks, mut out) = mpsc::channel(64);
    let end = End::new(receiver, id(), false);
    read::send(path, &options, end, &chunks).await.unwrap();
    drop(chunks);
    let mut text = String::new();
    while let Some(chunk) = out.recv().await {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    text
}

#[tokio::test]
async fn parts_are_joined_and_stamps_dropped() {
    let all = text(Options::default()).await;
    assert_eq!(all, "one\ntwo\nthree\n\nfour  spaced\n");
}

#[tokio::test]
async fn options_choose() {
    let stamped = text(Options {
        timestamps: true,
        tail_lines: Some(1),
        ..Options::default()
    });
    assert_eq!(
        stamped.await,
        "2026-01-02T03:04:05.000000001Z four  spaced\n"
    );
    let since = text(Options {
        since: Some("2026-01-02T03:04:04Z".parse().unwrap()),
        ..Options::default()
    });
    assert_eq!(since.await, "\nfour  spaced\n");
    let limited = text(Options {
        limit_bytes: Some(6),
        ..Options::default()
    });
    assert_eq!(limited.await, "one\ntw");
    let errors = text(Options {
        stream: Some("stderr"),
        ..Options::default()
    });
    assert_eq!(errors.await, "two\n");
    let none = text(Options {
        tail_lines: Some(0),
        ..Options::default()
    });
    assert_eq!(none.await, "");
}

#[tokio::test]
async fn the_tail_of_a_long_log_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    let mut log = String::new();
    for number in 0..20_000 {
        writeln!(log, "2026-01-02T03:04:01.000000001Z stdout F line {number}").unwrap();
    }
    std::fs::write(&path, log).unwrap();
    for count in [1, 3, 5000] {
        let options = Options {
            tail_lines: Some(count),
            ..Options::default()
        };
        let text = whole(&path, options).await;
        assert_eq!(text.lines().count() as u64, count);
        assert!(text.ends_with("line 19999\n"));
    }
}

async fn expect(out: &mut mpsc::Receiver<bytes::Bytes>, text: &str) {
    let mut got = String::new();
    while got.len() < text.len() {
        let next = tokio::time::timeout(Duration::from_secs(60), out.recv()).await;
        let chunk = next
            .expect("a chunk within the deadline")
            .expect("the log goes on");
        got.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert_eq!(got, text);
}

#[tokio::test]
async fn a_followed_log_grows_is_rotated_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    let stamp = "2026-01-02T03:04:01.000000001Z stdout F";
    std::fs::write(&path, format!("{stamp} one\n")).unwrap();
    let (events, receiver) = broadcast::channel(4);
    let (chunks, mut out) = mpsc::channel(64);
    let followed = path.clone();
    let reading = tokio::spawn(async move {
        let options = Options {
            follow: true,
            ..Options::default()
        };
        let end = End::new(receiver, id(), true);
        read::send(&followed, &options, end, &chunks).await
    });
    expect(&mut out, "one\n").await;
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    write!(file, "{stamp} tw").unwrap();
    writeln!(file, "o").unwrap();
    expect(&mut out, "two\n").await;
    std::fs::rename(&path, directory.path().join("0.log.old")).unwrap();
    writeln!(file, "{stamp} three").unwrap();
    expect(&mut out, "three\n").await;
    std::fs::write(&path, format!("{stamp} four\n")).unwrap();
    expect(&mut out, "four\n").await;
    let exited = ContainerEvent {
        container: id(),
        sandbox: SandboxId("s".into()),
        pod_uid: "u".into(),
        kind: EventKind::Exited {
            exit_code: 0,
            reason: "Completed".into(),
        },
    };
    events.send(exited).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), reading).await;
    ended.expect("ends with its container").unwrap().unwrap();
}

#[tokio::test]
async fn a_follower_that_hangs_up_ends_the_reading() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0.log");
    std::fs::write(&path, LOG).unwrap();
    let (_events, receiver) = broadcast::channel(4);
    let (chunks, out) = mpsc::channel(64);
    let reading = tokio::spawn(async move {
        let options = Options {
            follow: true,
            ..Options::default()
        };
        read::send(&path, &options, End::new(receiver, id(), true), &chunks).await
    });
    drop(out);
    let ended = tokio::time::timeout(Duration::from_secs(60), reading).await;
    ended.expect("ends with its reader").unwrap().unwrap();
}

fn instance(attempt: u32, state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        id: ContainerId(format!("c{attempt}")),
        sandbox: SandboxId("s".into()),
        config: ContainerConfig {
            name: "main".into(),
            attempt,
            ..ContainerConfig::default()
        },
        state,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        started_at: None,
        finished_at: None,
        exit_code: None,
        reason: String::new(),
        message: String::new(),
        image_id: String::new(),
        pid: None,
        user: None,
    }
}

/// Of a pod whose container waits with this reason, or does not wait.
fn chosen(waiting: Option<&str>, instances: &[ContainerStatus], previous: bool) -> String {
    let state = match waiting {
        Some(reason) => serde_json::json!({"waiting": {"reason": reason}}),
        None => serde_json::json!({"running": {}}),
    };
    let status = serde_json::json!({
        "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 1,
        "state": state,
    });
    let pod: Pod = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "web"},
        "status": {"containerStatuses": [status]},
    }))
    .unwrap();
    let observed = Observed {
        containers: instances.to_vec(),
        ..Observed::default()
    };
    match choose(&pod, &observed, "main", previous) {
        Ok(found) => found.id.0.clone(),
        Err(text) => text,
    }
}

#[test]
fn the_log_before_is_that_of_the_last_state() {
    use ContainerState::{Created, Exited, Running};
    let none = "previous terminated container \"main\" in pod \"web\" not found";
    let runs = [instance(0, Exited), instance(1, Running)];
    assert_eq!(chosen(None, &runs, false), "c1");
    assert_eq!(chosen(None, &runs, true), "c0");
    assert_eq!(chosen(None, &runs[1..], true), none);
    // It waits for its next start: what ended last is its last state, whichever is asked for.
    let waits = [instance(0, Exited), instance(1, Exited)];
    let reason = Some("CrashLoopBackOff");
    assert_eq!(chosen(reason, &waits, false), "c1");
    assert_eq!(chosen(reason, &waits, true), "c1");
    // It has ended for good.
    assert_eq!(chosen(None, &waits, true), "c0");
    let never = chosen(Some("ErrImagePull"), &[instance(0, Created)], false);
    let why = "is waiting to start: image can't be pulled";
    assert_eq!(never, format!("container \"main\" in pod \"web\" {why}"));
}

/// What an API server lets nobody ask, a caller of the node's own port may.
#[test]
fn options_out_of_bounds_are_refused() {
    let status = |query: &str| {
        let query = Query::parse(&format!("/x?{query}").parse().unwrap());
        let read = Options::read(&query, jiff::Timestamp::UNIX_EPOCH);
        read.map_or_else(|(status, _)| status.as_u16(), |_| 200)
    };
    for query in [
        "",
        "tailLines=0",
        "tail=all",
        "tail=5&tailLines=-1",
        "limitBytes=1",
        "sinceSeconds=1",
        "stream=All",
    ] {
        assert_eq!(status(query), 200, "{query}");
    }
    for query in [
        "tailLines=-1",
        "tail=-1",
        "tail=-1&tailLines=5",
        "limitBytes=0",
        "limitBytes=-5",
        "sinceSeconds=0",
        "stream=x",
    ] {
        assert_eq!(status(query), 422, "{query}");
    }
    assert_eq!(status("tailLines=many"), 400);
}
