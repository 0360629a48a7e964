//! Candidates against an API server in memory; time is paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::Clock;
use crate::fake_api::{FakeApi, eventually};

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/scheduler";

struct Contender {
    leads: Arc<AtomicBool>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn stand(api: &FakeApi, identity: &str) -> Contender {
    let (leads, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
    let flag = leads.clone();
    let work = move |leading: CancellationToken| async move {
        flag.store(true, Ordering::SeqCst);
        leading.cancelled().await;
        flag.store(false, Ordering::SeqCst);
    };
    let election = Election::new("scheduler", identity);
    let task = tokio::spawn(lead(
        api.client(),
        election,
        Clock::system(),
        stop.clone(),
        work,
    ));
    Contender { leads, stop, task }
}

impl Contender {
    fn leads(&self) -> bool {
        self.leads.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_next_follows_a_release() {
    let api = FakeApi::new();
    let first = stand(&api, "a");
    eventually("a leads", || first.leads()).await;
    let second = stand(&api, "b");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(first.leads() && !second.leads());
    first.stop.cancel();
    first.task.await.unwrap();
    eventually("b leads", || second.leads()).await;
    let lease = api.get(PATH).unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "b");
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_holder_is_followed_after_its_duration() {
    let api = FakeApi::new();
    let first = stand(&api, "a");
    eventually("a leads", || first.leads()).await;
    first.task.abort();
    let second = stand(&api, "b");
    let start = Instant::now();
    eventually("b leads", || second.leads()).await;
    assert!(
        start.elapsed() > Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    assert!(
        start.elapsed() < Duration::from_secs(25),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_before_another_may_start() {
    let api = FakeApi::new();
    let only = stand(&api, "a");
    eventually("a leads", || only.leads()).await;
    api.refuse(&[500; 1000]);
    let start = Instant::now();
    eventually("a stops", || !only.leads()).await;
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_process_held_is_let_go_and_what_others_hold_is_not() {
    let api = FakeApi::new();
    let first = stand(&api, "a");
    eventually("a leads", || first.leads()).await;
    first.task.abort();
    let election = |identity| Election::new("scheduler", identity);
    let (client, clock) = (api.client(), Clock::system());
    let_go(client.clone(), election("b"), clock.clone()).await;
    assert_eq!(api.get(PATH).unwrap()["spec"]["holderIdentity"], "a");
    let_go(client, election("a"), clock).await;
    assert_eq!(api.get(PATH).unwrap()["spec"]["holderIdentity"], "");
    let start = Instant::now();
    let second = stand(&api, "b");
    eventually("b leads", || second.leads()).await;
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_node_lease_is_made_renewed_and_made_again() {
    let api = FakeApi::new();
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
    let mut lease = NodeLease::new(api.client(), "n1", Clock::system());
    lease.set_node_uid("uid-n1");
    lease.renew().await.unwrap();
    let made = api.get(path).unwrap();
    assert_eq!(made["spec"]["holderIdentity"], "n1");
    assert_eq!(made["spec"]["leaseDurationSeconds"], 40);
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "uid-n1");
    lease.renew().await.unwrap();
    // One request a renewal, as long as nobody else writes.
    assert_eq!(api.requests().len(), 3);
    api.put(path, made);
    lease.renew().await.unwrap();
    api.delete(path);
    lease.renew().await.unwrap();
    assert!(api.get(path).is_some());
}

#[tokio::test(start_paused = true)]
async fn who_asks_from_outside_sees_a_holder_that_does_not_renew() {
    let api = FakeApi::new();
    let election = Election::new("scheduler", "a");
    let (held, end) = (election.held.clone(), CancellationToken::new());
    let (stop, ended) = (CancellationToken::new(), end.clone());
    let work = async move |_leading: CancellationToken| ended.cancelled().await;
    let clock = Clock::system();
    let leading = tokio::spawn(lead(api.client(), election, clock, stop.clone(), work));
    eventually("it leads", || held.is_held()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(held.silent_for().unwrap() < Duration::from_secs(3));
    // Another took it, and the work does not end.
    let mut lease = api.get(PATH).unwrap();
    lease["spec"]["holderIdentity"] = "b".into();
    api.put(PATH, lease);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(held.silent_for().unwrap() > Duration::from_secs(50));
    end.cancel();
    leading.await.unwrap();
    assert_eq!(held.silent_for(), None);
}
