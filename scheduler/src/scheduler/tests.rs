//! What a binding that fails leaves behind.

use super::*;
use crate::framework::{Plugin, Points, Reason, SharedPlugin, Slot, StepError, Verdict};
use crate::node_info::NodeInfo;
use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

/// Its pods wait for a pod to go, and none of them is ever bound.
#[derive(Debug)]
struct Full;

impl Plugin for Full {
    fn name(&self) -> &'static str {
        "Full"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn can_help(&self, change: &WorldChange, _pod: &PodInfo) -> bool {
        matches!(change, WorldChange::PodGone(_))
    }

    fn bind<'a>(
        &'a self,
        _pod: &'a PodInfo,
        _node: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), StepError>>> {
        Box::pin(async {
            Some(Err(StepError::Refused {
                plugin: "Full",
                why: "as told".to_owned(),
            }))
        })
    }
}

/// Of no node it can tell whether the pod fits.
#[derive(Debug)]
struct Unsure;

impl Plugin for Unsure {
    fn name(&self) -> &'static str {
        "Unsure"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn filter(&self, _: &PodInfo, _: &NodeInfo, _: &Slot) -> Verdict {
        Verdict::Failed(Reason::Text("it broke"))
    }
}

fn scheduler(stop: &CancellationToken) -> Scheduler {
    scheduler_with(Arc::new(Full), stop)
}

fn scheduler_with(plugin: SharedPlugin, stop: &CancellationToken) -> Scheduler {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        let error = std::io::Error::other("nobody answers");
        std::future::ready(Err::<http::Response<kube::client::Body>, _>(error))
    });
    let client = Client::new(service, "default");
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let profile = Profile::new("default-scheduler", vec![(plugin, 1)]);
    let (cache, places) = (Arc::default(), Places::new(stop.clone()));
    let metrics: Arc<Metrics> = Arc::default();
    let counts = metrics.of(&profile);
    let lane = Lane::new(&profile, &client, &cache, &places, &clock, counts);
    Scheduler {
        queue: Arc::new(Queue::new(profile.clone())),
        lanes: Arc::new(vec![lane]),
        cache,
        places,
        chance: Arc::new(Mutex::new(rand::make_rng())),
        metrics,
        clock,
        stop: stop.clone(),
        tasks: TaskTracker::new(),
    }
}

/// As the loop's first.
async fn try_once(scheduler: &Scheduler, attempt: Attempt) {
    let (mut snapshot, mut rotation) = Default::default();
    let mut laps = Laps::new(Clock::system());
    scheduler
        .attempt(attempt, &mut snapshot, &mut rotation, &mut laps)
        .await;
}

fn pod(name: &str) -> Arc<PodInfo> {
    let pod = json!({"metadata": {"name": name, "namespace": "default", "uid": name}});
    let pod = serde_json::from_value(pod).expect("a pod");
    Arc::new(PodInfo::new(Arc::new(pod)))
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_fails_wakes_those_who_wait_for_its_room() {
    let scheduler = scheduler(&CancellationToken::new());
    let queue = &scheduler.queue;
    queue.set(pod("waits"), Instant::now());
    let waits = queue.next().await;
    queue.unschedulable(&waits, vec!["Full"], Instant::now());
    assert_eq!(queue.depth().unschedulable, 1);

    queue.set(pod("fails"), Instant::now());
    let attempt = queue.next().await;
    let assumed = Arc::clone(&attempt.pod);
    scheduler.cache.lock().assume(assumed, "n");
    let mut place = scheduler.places.take().await;
    scheduler.bind(attempt, "n", &mut place, Ok(())).await;

    let depth = queue.depth();
    assert_eq!((depth.unschedulable, depth.backoff + depth.active), (0, 2));
    assert!(!scheduler.cache.lock().contains("fails"));
}

/// One waits for room, and another one is there.
async fn with_one_that_waits() -> (Scheduler, Arc<PodInfo>) {
    let scheduler = scheduler(&CancellationToken::new());
    let queue = &scheduler.queue;
    queue.set(pod("waits"), Instant::now());
    let waits = queue.next().await;
    queue.unschedulable(&waits, vec!["Full"], Instant::now());
    (scheduler, pod("other"))
}

fn node(name: &str) -> Arc<k8s_openapi::api::core::v1::Node> {
    let node = json!({"metadata": {"name": name}, "status": {"allocatable": {"pods": "9"}}});
    Arc::new(serde_json::from_value(node).expect("a node"))
}

#[tokio::test(start_paused = true)]
async fn a_promise_taken_back_wakes_those_who_wait_for_its_room() {
    let (scheduler, other) = with_one_that_waits().await;
    let queue = &scheduler.queue;
    queue.set(Arc::clone(&other), Instant::now());
    let attempt = queue.next().await;
    scheduler.nominate(&other, &Nomination::Node("n".into()));
    assert_eq!(queue.depth().unschedulable, 1, "nothing was given up yet");
    scheduler.nominate(&other, &Nomination::Clear);
    assert_eq!(queue.depth().unschedulable, 0);
    queue.unschedulable(&attempt, vec!["Full"], Instant::now());
    assert_eq!(queue.depth().unschedulable, 1, "it does not help itself");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_elsewhere_than_it_was_promised_wakes_those_who_wait_for_its_room() {
    let (scheduler, other) = with_one_that_waits().await;
    scheduler.queue.set(Arc::clone(&other), Instant::now());
    let attempt = scheduler.queue.next().await;
    scheduler.nominate(&other, &Nomination::Node("gone".into()));
    scheduler.cache.lock().set_node(&node("n"));
    try_once(&scheduler, attempt).await;
    assert!(scheduler.cache.lock().is_on("other", "n"));
    assert_eq!(scheduler.queue.depth().unschedulable, 0);
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_is_never_confirmed_wakes_those_who_wait_for_its_room() {
    let (scheduler, other) = with_one_that_waits().await;
    scheduler.cache.lock().assume(other, "n");
    let long_ago = Instant::now();
    scheduler.cache.lock().finish_binding("other", long_ago);
    tokio::time::advance(Duration::from_secs(60 * 60)).await;
    scheduler.expire();
    let depth = scheduler.queue.depth();
    assert_eq!((depth.unschedulable, depth.active), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_pod_shown_on_a_node_since_it_was_queued_is_left_there() {
    let scheduler = scheduler(&CancellationToken::new());
    scheduler.cache.lock().set_node(&node("n"));
    scheduler.queue.set(pod("p"), Instant::now());
    let attempt = scheduler.queue.next().await;
    let mut shown = k8s_openapi::api::core::v1::Pod::clone(attempt.pod.waiting.as_ref().unwrap());
    shown.spec.get_or_insert_default().node_name = Some("m".to_owned());
    let shown = Arc::new(PodInfo::new(Arc::new(shown)));
    scheduler.cache.lock().set_pod(shown);
    try_once(&scheduler, attempt).await;
    assert!(scheduler.cache.lock().is_on("p", "m"));
    assert_eq!(scheduler.queue.depth(), crate::queue::Depth::default());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_could_not_be_decided_on_is_tried_again_after_its_delay() {
    let scheduler = scheduler_with(Arc::new(Unsure), &CancellationToken::new());
    let queue = &scheduler.queue;
    scheduler.cache.lock().set_node(&node("n"));
    queue.set(pod("new"), Instant::now());
    let (mut snapshot, mut rotation) = Default::default();
    let mut laps = Laps::new(Clock::system());
    for number in 1..3 {
        let since = Instant::now();
        let attempt = queue.next().await;
        assert_eq!(attempt.number, number);
        let waited = Instant::now() - since;
        assert_eq!(waited.is_zero(), number == 1, "{waited:?}");
        scheduler
            .attempt(attempt, &mut snapshot, &mut rotation, &mut laps)
            .await;
        let depth = queue.depth();
        assert_eq!((depth.unschedulable, depth.backoff), (0, 1));
    }
    scheduler.tasks.close();
    scheduler.tasks.wait().await;
    let free = scheduler.places.free();
    assert_eq!(
        free[0],
        crate::binding::Places::new(scheduler.stop.clone()).free()[0]
    );
}
