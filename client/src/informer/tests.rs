//! Informers against an API server in memory that breaks its watches on demand.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;

use super::*;
use crate::fake_api::{FakeApi, eventually};

const WEB: &str = "/api/v1/namespaces/default/pods/web";

fn pod(value: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "labels": {"v": value},
        "managedFields": [{"manager": "kubectl"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": value}],
    }})
}

struct Bench {
    api: FakeApi,
    pods: Informer<Pod>,
    told: Arc<Mutex<Vec<String>>>,
    shutdown: CancellationToken,
}

fn start(api: FakeApi) -> Bench {
    let shutdown = CancellationToken::new();
    let informers = Informers::new(api.client(), shutdown.clone());
    let pods = informers.get::<Pod>();
    let told = Arc::new(Mutex::new(Vec::new()));
    pods.on_change(note(told.clone()));
    Bench {
        api,
        pods,
        told,
        shutdown,
    }
}

/// Writes each change down as one word, the key and the label `v`.
fn note(told: Arc<Mutex<Vec<String>>>) -> impl Fn(&Change<Pod>) + Send + Sync {
    move |change| {
        let word = match change {
            Change::Added(_) => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted(_) => "deleted",
            Change::Resync(_) => "resync",
        };
        let object = change.object();
        let label = &object.metadata.labels.as_ref().expect("labels")["v"];
        told.lock()
            .push(format!("{word} {} {label}", crate::key_of(object.as_ref())));
    }
}

impl Bench {
    async fn told(&self, expected: &[&str]) {
        let reached = || self.told.lock().len() >= expected.len();
        let within = Duration::from_secs(300);
        let _ = tokio::time::timeout(within, eventually("told", reached)).await;
        assert_eq!(*self.told.lock(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_then_follows() {
    let api = FakeApi::new();
    api.put(WEB, pod("1"));
    let bench = start(api);
    assert!(bench.pods.synced().await);
    bench.api.put(WEB, pod("2"));
    bench.api.put("/api/v1/namespaces/other/pods/web", pod("3"));
    bench.api.delete(WEB);
    let story = [
        "added default/web 1",
        "updated default/web 2",
        "added other/web 3",
        "deleted default/web 2",
    ];
    bench.told(&story).await;
    assert_eq!(bench.pods.len(), 1);
    assert!(bench.pods.list_namespace("default").is_empty());
    let found = bench
        .pods
        .get(&ObjectKey::new("other", "web"))
        .expect("still there");
    assert_eq!(
        found.metadata.managed_fields, None,
        "managedFields are dropped"
    );
}

#[tokio::test(start_paused = true)]
async fn resumes_a_broken_watch_without_listing_again() {
    let bench = start(FakeApi::new());
    assert!(bench.pods.synced().await);
    for value in ["1", "2", "3"] {
        bench.api.break_watches();
        bench.api.put(WEB, pod(value));
    }
    bench
        .told(&[
            "added default/web 1",
            "updated default/web 2",
            "updated default/web 3",
        ])
        .await;
    let lists = bench
        .api
        .requests()
        .iter()
        .filter(|one| *one == "GET /api/v1/pods")
        .count();
    assert_eq!(lists, 1);
}

#[tokio::test(start_paused = true)]
async fn lists_again_after_history_is_gone_and_reports_what_was_missed() {
    let api = FakeApi::new();
    api.put(WEB, pod("1"));
    api.put("/api/v1/namespaces/default/pods/gone", pod("1"));
    api.put("/api/v1/namespaces/default/pods/same", pod("1"));
    let bench = start(api);
    assert!(bench.pods.synced().await);
    bench.told.lock().clear();
    bench.api.break_watches();
    // All of it is missed: the watch cannot start again before the history is gone.
    bench.api.delete(WEB);
    bench.api.put(WEB, pod("2"));
    bench.api.delete("/api/v1/namespaces/default/pods/gone");
    bench.api.compact();
    bench
        .told(&[
            "deleted default/web 1",
            "added default/web 2",
            "deleted default/gone 1",
        ])
        .await;
    assert_eq!(bench.pods.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn outlives_a_server_that_refuses() {
    let api = FakeApi::new();
    api.put(WEB, pod("1"));
    api.refuse(&[500, 403, 503, 410]);
    let bench = start(api);
    assert!(bench.pods.synced().await);
    bench.told(&["added default/web 1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_resume_for_old_history_lists_again() {
    let bench = start(FakeApi::new());
    assert!(bench.pods.synced().await);
    bench.api.refuse(&[410]);
    bench.api.break_watches();
    bench.api.put(WEB, pod("1"));
    bench.told(&["added default/web 1"]).await;
}

#[tokio::test(start_paused = true)]
async fn indices_follow_the_objects() {
    let api = FakeApi::new();
    api.put(WEB, pod("1"));
    let bench = start(api);
    assert!(bench.pods.synced().await);
    bench.pods.add_index("label", |pod| {
        pod.metadata
            .labels
            .iter()
            .flatten()
            .map(|(_, value)| value.clone())
            .collect()
    });
    let names = |found: Vec<Arc<Pod>>| -> Vec<String> {
        found
            .iter()
            .filter_map(|pod| pod.metadata.name.clone())
            .collect()
    };
    assert_eq!(names(bench.pods.by_index("label", "1")), ["web"]);
    assert_eq!(names(bench.pods.by_owner_uid("1")), ["web"]);
    bench.api.put(WEB, pod("2"));
    eventually("reindexed", || {
        !bench.pods.by_index("label", "2").is_empty()
    })
    .await;
    assert!(bench.pods.by_index("label", "1").is_empty());
    assert!(bench.pods.by_owner_uid("1").is_empty());
    bench.api.delete(WEB);
    eventually("dropped", || bench.pods.is_empty()).await;
    assert!(bench.pods.by_owner_uid("2").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_gets_everything_first_and_resyncs_repeat_it() {
    let api = FakeApi::new();
    api.put(WEB, pod("1"));
    let bench = start(api);
    assert!(bench.pods.synced().await);
    let late = Arc::new(Mutex::new(Vec::new()));
    bench.pods.on_change(note(late.clone()));
    assert_eq!(*late.lock(), ["added default/web 1"]);
    let resynced = || {
        late.lock()
            .last()
            .is_some_and(|last| last == "resync default/web 1")
    };
    tokio::time::advance(RESYNC_PERIOD * 2).await;
    eventually("resync", resynced).await;
}

#[tokio::test(start_paused = true)]
async fn informers_are_shared_by_kind_and_filter() {
    let bench = start(FakeApi::new());
    let informers = Informers::new(bench.api.client(), bench.shutdown.clone());
    let (one, same) = (informers.get::<Pod>(), informers.get::<Pod>());
    assert!(Arc::ptr_eq(&one.shared, &same.shared));
    let mine = informers.get_filtered::<Pod>(Filter::fields("spec.nodeName=n1"));
    assert!(!Arc::ptr_eq(&one.shared, &mine.shared));
    let _nodes = informers.get::<Node>();
    assert_eq!(format!("{informers:?}"), "Informers { started: 3 }");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_before_the_first_list_is_not_a_sync() {
    let api = FakeApi::new();
    api.refuse(&[500; 100]);
    let bench = start(api);
    bench.shutdown.cancel();
    assert!(!bench.pods.synced().await);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_not_asked_for_in_a_tight_loop() {
    let bench = start(FakeApi::new());
    assert!(bench.pods.synced().await);
    bench.api.end_watches_at_once();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let watches = bench
        .api
        .requests()
        .iter()
        .filter(|one| one.starts_with("WATCH"))
        .count();
    assert!((10..50).contains(&watches), "{watches} in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_stops_neither_the_others_nor_the_informer() {
    let bench = start(FakeApi::new());
    assert!(bench.pods.synced().await);
    bench.pods.on_change(|_| panic!("a bug"));
    let last = Arc::new(Mutex::new(Vec::new()));
    bench.pods.on_change(note(last.clone()));
    bench.api.put(WEB, pod("1"));
    bench.api.put(WEB, pod("2"));
    bench
        .told(&["added default/web 1", "updated default/web 2"])
        .await;
    assert_eq!(*last.lock(), *bench.told.lock());
}
