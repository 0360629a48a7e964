//! What is on the disk, and when.

use super::*;
use crate::network::policy::decode;
use crate::network::policy::feed::Hearing;
use coracle_api::policy_feed::Told;
use nix::sys::stat::Mode;
use serde_json::json;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc;
use tokio::time::Instant;

/// At most, for what takes a moment.
const WAIT: Duration = Duration::from_secs(60);

fn state() -> State {
    let mut state = State::default();
    let spec = json!({
        "podSelector": { "matchLabels": { "app": "web" } },
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{
            "from": [
                { "namespaceSelector": { "matchExpressions": [{ "key": "a", "operator": "Exists" }] } },
                { "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] } },
            ],
            "ports": [{ "port": "http" }, { "port": 80, "endPort": 90 }, { "protocol": "UDP" }],
        }],
    });
    state.set_policy(&"shop/a".into(), decode::policy("shop", spec));
    state.set_namespace("shop", Some(Labels::of([("a", "b")])));
    let pod = coracle_api::policy_feed::Pod {
        uid: "0d9a1a4e-5c0e-4a5c-9d36-0f6a4f8c9a11".to_owned(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        ports: vec![coracle_api::policy_feed::NamedPort {
            name: "http".to_owned(),
            protocol: "TCP".to_owned(),
            port: 80,
        }],
    };
    state.set_pod(&"shop/web".into(), Some(decode::pod(&pod)));
    state
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy");
    assert_eq!(open(&path).1, Source::Nothing);
    let text = as_json(&state()).unwrap();
    packed_file::write_json(&path, &text).unwrap();
    let (read, source) = open(&path);
    assert_eq!(source, Source::Disk);
    let (known, before) = (read.known, state().known);
    assert_eq!(known.policies, before.policies);
    assert_eq!(known.namespaces, before.namespaces);
    assert_eq!(known.pods, before.pods);
    std::fs::write(&path, b"no file of ours").unwrap();
    assert_eq!(open(&path).1, Source::Nothing);
}

#[tokio::test(start_paused = true)]
async fn rules_are_written_at_once_and_pods_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy");
    let shared = Arc::new(Shared::new(State::default(), Source::Nothing));
    let stop = CancellationToken::new();
    let task = tokio::spawn(run(shared.clone(), path.clone(), stop.clone()));
    let mut hearing = Hearing::default();
    let mut tell = |told: Told| shared.hear(|state| hearing.hear(state, told));
    tell(Told::Begin);
    tell(Told::Listed);
    let written = async |is_it: &dyn Fn(&State) -> bool| {
        while !path.exists() || !is_it(&open(&path).0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let begun = Instant::now();
    written(&|_| true).await;
    assert!(begun.elapsed() < PAUSE_MIN);
    tell(Told::Pod {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        pod: Some(coracle_api::policy_feed::Pod::default()),
    });
    let begun = Instant::now();
    written(&|state| state.known.pods.len() == 1).await;
    assert!(begun.elapsed() >= PAUSE_MIN, "{:?}", begun.elapsed());
    tell(Told::Namespace {
        name: "shop".to_owned(),
        labels: Some([("a".to_owned(), "b".to_owned())].into()),
    });
    let begun = Instant::now();
    written(&|state| state.known.namespaces.len() == 1).await;
    assert!(begun.elapsed() >= PAUSE_MIN, "{:?}", begun.elapsed());
    tell(Told::Pod {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        pod: None,
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    tell(Told::Policy {
        namespace: "shop".to_owned(),
        name: "deny".to_owned(),
        spec: Some(json!({ "podSelector": {} })),
    });
    written(&|state| state.known.policies.len() == 1 && state.known.pods.is_empty()).await;
    assert!(begun.elapsed() < PAUSE_MIN, "{:?}", begun.elapsed());
    stop.cancel();
    task.await.unwrap();
}

/// As after a list of the server.
fn listed() -> Arc<Shared> {
    let shared = Shared::new(State::default(), Source::Nothing);
    let mut hearing = Hearing::default();
    for told in [Told::Begin, Told::Listed] {
        shared.hear(|state| hearing.hear(state, told));
    }
    Arc::new(shared)
}

#[tokio::test]
async fn what_came_right_before_the_stop_is_written() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = directory.path().join(round.to_string());
        let stop = CancellationToken::new();
        stop.cancel();
        run(listed(), path.clone(), stop).await;
        assert_eq!(open(&path).1, Source::Disk, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_written_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("later/policy");
    let stop = CancellationToken::new();
    let task = tokio::spawn(run(listed(), path.clone(), stop.clone()));
    tokio::time::sleep(10 * RULES_PAUSE).await;
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < 2 * PAUSE_MAX);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stop.cancel();
    task.await.unwrap();
}

/// Attaching a pod takes the lock, and the disk of a board may take seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy");
    // What is there is compared: a pipe keeps its reader waiting.
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    let (shared, stop) = (listed(), CancellationToken::new());
    let task = tokio::spawn(run(shared.clone(), path.clone(), stop.clone()));
    let writing = async {
        loop {
            let mut options = OpenOptions::new();
            let end = options.write(true).custom_flags(libc::O_NONBLOCK);
            // Without a reader there is no such end.
            if let Ok(end) = end.open(&path) {
                return end;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let end = tokio::time::timeout(WAIT, writing).await.unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    let reading = std::thread::spawn(move || {
        _ = tell.send(shared.read(|state| state.known.pods.len()));
    });
    let read = told.recv_timeout(WAIT);
    drop(end);
    assert_eq!(read, Ok(0));
    reading.join().unwrap();
    stop.cancel();
    task.await.unwrap();
    assert_eq!(open(&path).1, Source::Disk);
}
