//! What is on the disk, and when.

use super::*;
use crate::network::policy::decode;
use crate::network::policy::feed::Hearing;
use coracle_api::policy_feed::Told;
use serde_json::json;

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
    write(&state(), &path).unwrap();
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
    let begun = tokio::time::Instant::now();
    written(&|_| true).await;
    assert!(begun.elapsed() < PAUSE_MIN);
    tell(Told::Pod {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        pod: Some(coracle_api::policy_feed::Pod::default()),
    });
    let begun = tokio::time::Instant::now();
    written(&|state| state.known.pods.len() == 1).await;
    assert!(begun.elapsed() >= PAUSE_MIN, "{:?}", begun.elapsed());
    tell(Told::Pod {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        pod: None,
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = tokio::time::Instant::now();
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
