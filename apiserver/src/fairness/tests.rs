//! Waiting and waking, with the runtime's own clock stopped.

use super::*;
use crate::metrics::text::Text;
use coracle_api::object::Object;
use http::Method;
use serde_json::json;

/// One level with `seats` seats, one queue a flow, and two places in each.
fn fairness(seats: u32) -> (Arc<Fairness>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(coracle_store::Config::new(directory.path().join("s"))).unwrap();
    let fairness = Arc::new(Fairness::new(seats, store));
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": { "name": "l", "uid": "level-uid" },
        "spec": { "type": "Limited", "limited": {
            "nominalConcurrencyShares": 1000, "borrowingLimitPercent": 0,
            "limitResponse": { "type": "Queue", "queuing": {
                "queues": 64, "handSize": 1, "queueLengthLimit": 2,
            } },
        } },
    });
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": "s", "uid": "schema-uid" },
        "spec": {
            "matchingPrecedence": 10, "priorityLevelConfiguration": { "name": "l" },
            "distinguisherMethod": { "type": "ByUser" },
            "rules": [{
                "subjects": [{ "kind": "Group", "group": { "name": "system:authenticated" } }],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                    "namespaces": ["*"], "clusterScope": true,
                }],
            }],
        },
    });
    let object = |value| Object::from_value(value).unwrap();
    let level = LevelSpec::of(&object(level)).unwrap();
    fairness.configure(vec![level], vec![FlowSchema::of(&object(schema))]);
    (fairness, directory)
}

struct Asking {
    user: Arc<User>,
    info: Arc<RequestInfo>,
    query: Query,
}

fn asking(user: &str) -> Asking {
    let uri = "/api/v1/namespaces/a/pods/p".parse().unwrap();
    Asking {
        user: Arc::new(User::named(user)),
        info: Arc::new(RequestInfo::parse(&Method::GET, &uri)),
        query: Query::default(),
    }
}

async fn admit(fairness: &Arc<Fairness>, user: &str) -> Result<Seat, Refused> {
    let Asking { user, info, query } = asking(user);
    fairness.admit(&user, &info, &query).await
}

/// Polls until the level has so many waiting.
async fn until_waiting(fairness: &Arc<Fairness>, count: usize) {
    loop {
        if fairness.state().levels["l"].inside.lock().set.waiting() == count {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_seat_that_is_given_back_wakes_who_waits() {
    let (fairness, _directory) = fairness(1);
    let first = admit(&fairness, "a").await.unwrap();
    let mut headers = HeaderMap::new();
    first.placed().mark(&mut headers);
    assert_eq!(headers["X-Kubernetes-PF-FlowSchema-UID"], "schema-uid");
    assert_eq!(headers["X-Kubernetes-PF-PriorityLevel-UID"], "level-uid");
    let waiting = tokio::spawn({
        let fairness = Arc::clone(&fairness);
        async move { admit(&fairness, "b").await }
    });
    until_waiting(&fairness, 1).await;
    drop(first);
    let second = waiting.await.unwrap().unwrap();
    drop(second);
    assert!(fairness.state().levels["l"].inside.lock().set.is_idle());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_and_a_full_queue_refuses_at_once() {
    let (fairness, _directory) = fairness(1);
    let _first = admit(&fairness, "a").await.unwrap();
    let begun = Instant::now();
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let fairness = Arc::clone(&fairness);
            tokio::spawn(async move { admit(&fairness, "a").await.map(drop) })
        })
        .collect();
    until_waiting(&fairness, 2).await;
    let refused = admit(&fairness, "a").await.unwrap_err().response();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(
        refused.headers()["X-Kubernetes-PF-FlowSchema-UID"],
        "schema-uid"
    );
    for one in waiting {
        assert!(one.await.unwrap().is_err());
    }
    assert_eq!(begun.elapsed().as_secs(), WAIT_MAX.as_secs());
    let mut text = Text::default();
    fairness.text(&mut text);
    let text = text.into_string();
    let labels = "flow_schema=\"s\",priority_level=\"l\"";
    for line in [
        format!("apiserver_flowcontrol_rejected_requests_total{{{labels},reason=\"time-out\"}} 2"),
        format!(
            "apiserver_flowcontrol_rejected_requests_total{{{labels},reason=\"queue-full\"}} 1"
        ),
        format!("apiserver_flowcontrol_current_executing_requests{{{labels}}} 1"),
        format!("apiserver_flowcontrol_current_inqueue_requests{{{labels}}} 0"),
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_leaves_its_queue_and_its_seat() {
    let (fairness, _directory) = fairness(1);
    let first = admit(&fairness, "a").await.unwrap();
    let waiting = tokio::spawn({
        let fairness = Arc::clone(&fairness);
        async move { admit(&fairness, "a").await.map(drop) }
    });
    until_waiting(&fairness, 1).await;
    waiting.abort();
    until_waiting(&fairness, 0).await;
    let dump = fairness.dump("dump_priority_levels", false, jiff::Timestamp::UNIX_EPOCH);
    let dump = dump.unwrap();
    let line = dump.lines().find(|line| line.starts_with("l,")).unwrap();
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    assert_eq!(
        columns,
        ["l", "0", "false", "false", "0", "1", "1", "1", "0", "1"]
    );
    drop(first);
    assert!(admit(&fairness, "a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_gone_when_its_turn_comes_passes_it_on() {
    let (fairness, _directory) = fairness(1);
    let first = admit(&fairness, "a").await.unwrap();
    let Asking { user, info, query } = asking("a");
    let mut gone = Box::pin(fairness.admit(&user, &info, &query));
    assert!(futures::poll!(gone.as_mut()).is_pending());
    let next = tokio::spawn({
        let fairness = Arc::clone(&fairness);
        async move { admit(&fairness, "b").await.map(drop) }
    });
    until_waiting(&fairness, 2).await;
    // It is the turn of one of the two; the one that is never looked at again gives it back.
    drop(first);
    drop(gone);
    next.await.unwrap().unwrap();
    assert!(fairness.state().levels["l"].inside.lock().set.is_idle());
}

#[tokio::test]
async fn an_idle_server_decides_at_once() {
    const ROUNDS: u32 = 20_000;
    let (fairness, _directory) = fairness(100);
    let Asking { user, info, query } = asking("a");
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        drop(fairness.admit(&user, &info, &query).await.unwrap());
    }
    let each = begun.elapsed() / ROUNDS;
    // Under 2 µs when optimized; this only stops what is out of all proportion.
    assert!(each < Duration::from_micros(100), "{each:?}");
}

#[test]
fn requests_that_stay_open_hold_no_seat() {
    let stream = |method: Method, path: &str| {
        is_stream(&RequestInfo::parse(&method, &path.parse().unwrap()))
    };
    assert!(stream(Method::POST, "/api/v1/namespaces/a/pods/p/exec"));
    assert!(stream(
        Method::GET,
        "/api/v1/namespaces/a/pods/p/log?follow=true"
    ));
    assert!(stream(Method::GET, "/coracle/v1/policy"));
    assert!(!stream(Method::GET, "/api/v1/pods?watch=1"));
    assert!(!stream(Method::GET, "/api/v1/namespaces/a/pods/p"));
}
