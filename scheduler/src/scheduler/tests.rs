//! What a binding that fails leaves behind.

use super::*;
use crate::framework::{Plugin, Points, SharedPlugin, StepError};
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

fn scheduler(stop: &CancellationToken) -> Scheduler {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        let error = std::io::Error::other("nobody answers");
        std::future::ready(Err::<http::Response<kube::client::Body>, _>(error))
    });
    let client = Client::new(service, "default");
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let plugins = vec![(Arc::new(Full) as SharedPlugin, 1)];
    let profile = Profile::new("default-scheduler", plugins);
    let (cache, places) = (Arc::default(), Places::new(stop.clone()));
    let lane = Lane::new(&profile, &client, &cache, &places, &clock);
    Scheduler {
        queue: Arc::new(Queue::new(profile.clone())),
        lanes: Arc::new(vec![lane]),
        cache,
        places,
        stop: stop.clone(),
        tasks: TaskTracker::new(),
    }
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
    scheduler.bind(attempt, "n", &mut place).await;

    let depth = queue.depth();
    assert_eq!((depth.unschedulable, depth.backoff + depth.active), (0, 2));
    assert!(!scheduler.cache.lock().contains("fails"));
}
