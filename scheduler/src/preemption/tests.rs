//! Victims are told why they end, then asked to; over an API server that writes down requests.

use super::*;
use expect_test::{Expect, expect};
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use tokio_util::sync::CancellationToken;

/// What was asked, and which requests are refused.
#[derive(Clone, Default)]
struct Scribe {
    requests: Arc<Mutex<Vec<String>>>,
    /// Part of a request's line, and the answer's code.
    refuses: Option<(&'static str, u16)>,
    /// Nobody answers.
    is_silent: bool,
}

impl Scribe {
    fn client(&self) -> Client {
        let scribe = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let scribe = scribe.clone();
            async move { scribe.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head
            .uri
            .path()
            .trim_start_matches("/api/v1/namespaces/default/");
        let said = match head.method {
            Method::DELETE => body["preconditions"].to_string(),
            Method::POST => format!("{}: {}", body["reason"], body["message"]),
            _ => body.to_string(),
        };
        let line = format!("{} {path} {said}", head.method);
        let refused = self.refuses.filter(|(part, _)| line.contains(part));
        self.requests.lock().push(line);
        let code = refused.map_or(200, |(_, code)| code);
        let answer = match code {
            200 => json!({ "metadata": { "name": "x", "namespace": "default" } }),
            code => json!({ "kind": "Status", "status": "Failure", "code": code, "message": "no",
                            "reason": "as told" }),
        };
        let answer = Response::builder()
            .status(code)
            .body(Body::from(answer.to_string().into_bytes()));
        answer.map_err(std::io::Error::other)
    }
}

fn pod(name: &str, priority: i32, status: Value, ends: bool) -> Arc<PodInfo> {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("{name}-uid"),
                      "generation": 3 },
        "spec": { "containers": [], "priority": priority },
        "status": status,
    });
    if ends {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    let pod: Pod = serde_json::from_value(pod).unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

/// Ends `victims`, which are on node `n`; what was asked, and how it ended.
async fn ended_by(scribe: &Scribe, mut cache: Cache, victims: Vec<Arc<PodInfo>>) -> String {
    let places = Places::new(CancellationToken::new());
    for victim in &victims {
        cache.assume(Arc::clone(victim), "n");
    }
    ended_beside(places, scribe, cache, victims).await
}

async fn ended_beside(
    places: Places,
    scribe: &Scribe,
    cache: Cache,
    victims: Vec<Arc<PodInfo>>,
) -> String {
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let client = scribe.client();
    let evictor = Evictor {
        recorder: Recorder::with_clock(client.clone(), "default-scheduler", "", clock.clone()),
        client,
        clock,
        cache: Arc::new(Mutex::new(cache)),
        places,
    };
    let plan = Preemption {
        node: "n".into(),
        victims,
    };
    let result = evictor
        .evict(&pod("new", 10, json!({}), false), &plan)
        .await;
    let mut lines = scribe.requests.lock().clone();
    if let Err(error) = result {
        lines.push(error.to_string());
    }
    lines.retain(|line| !line.starts_with("POST"));
    lines.join("\n")
}

async fn check(scribe: &Scribe, victims: Vec<Arc<PodInfo>>, expected: Expect) {
    expected.assert_eq(&ended_by(scribe, Cache::default(), victims).await);
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_told_why_and_asked_to_go() {
    let scribe = Scribe::default();
    let victims = vec![
        pod("low", 1, json!({}), false),
        pod("going", 0, json!({}), true),
    ];
    check(
        &scribe,
        victims,
        expect![[r#"
            PATCH pods/low/status {"metadata":{"uid":"low-uid"},"status":{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"default-scheduler: preempting to accommodate a higher priority pod","observedGeneration":3,"reason":"PreemptionByScheduler","status":"True","type":"DisruptionTarget"}]}}
            DELETE pods/low {"uid":"low-uid"}"#]],
    )
    .await;
    expect![[r#"POST events "Preempted": "Preempted by pod new-uid on node n""#]]
        .assert_eq(&event(&scribe).await);
}

async fn event(scribe: &Scribe) -> String {
    let event = async {
        loop {
            let requests = scribe.requests.lock().clone();
            if let Some(event) = requests.into_iter().find(|line| line.starts_with("POST")) {
                return event;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(EVICTION_MAX, event).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn who_is_not_bound_yet_is_called_off_and_stays() {
    let scribe = Scribe::default();
    let places = Places::new(CancellationToken::new());
    let victim = pod("low", 1, json!({}), false);
    let mut place = places.take().await;
    place.begin(&victim);
    let ended = ended_beside(places.clone(), &scribe, Cache::default(), vec![victim]).await;
    assert_eq!(ended, "", "nothing is asked of the API");
    expect![[
        r#"POST events "Preempted": "Preempted by pod new-uid on node n (in kube-scheduler memory).""#
    ]]
    .assert_eq(&event(&scribe).await);
}

#[tokio::test(start_paused = true)]
async fn who_waits_again_or_is_elsewhere_by_now_stays() {
    let scribe = Scribe::default();
    let victims = ["waits", "elsewhere"].map(|name| pod(name, 1, json!({}), false));
    let mut cache = Cache::default();
    cache.assume(Arc::clone(&victims[1]), "m");
    let places = Places::new(CancellationToken::new());
    let ended = ended_beside(places, &scribe, cache, victims.to_vec()).await;
    assert_eq!(ended, "", "nothing is asked of the API");
}

#[tokio::test(start_paused = true)]
async fn who_says_so_already_is_asked_to_go_only() {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    });
    let victim = pod("low", 1, json!({ "conditions": [condition] }), false);
    check(
        &Scribe::default(),
        vec![victim],
        expect![[r#"DELETE pods/low {"uid":"low-uid"}"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_is_gone_already_is_no_failure_and_a_refusal_is() {
    let victim = || vec![pod("low", 1, json!({}), false)];
    for (request, code) in [
        ("PATCH", 404),
        ("PATCH", 409),
        ("DELETE", 404),
        ("DELETE", 409),
    ] {
        let scribe = Scribe {
            refuses: Some((request, code)),
            ..Scribe::default()
        };
        let ended = ended_by(&scribe, Cache::default(), victim()).await;
        assert!(ended.ends_with('}'), "{request} {code}: {ended}");
    }
    let scribe = Scribe {
        refuses: Some(("PATCH", 403)),
        ..Scribe::default()
    };
    let ended = ended_by(&scribe, Cache::default(), victim()).await;
    assert!(
        ended.ends_with("default/low was not asked to go"),
        "{ended}"
    );
    assert!(!ended.contains("DELETE"), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_waited_for_for_ever() {
    let scribe = Scribe {
        is_silent: true,
        ..Scribe::default()
    };
    check(
        &scribe,
        vec![pod("low", 1, json!({}), false)],
        expect!["not all pods were asked to go within 60 s"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_was_promised_the_node_and_is_less_important_looks_elsewhere() {
    let mut cache = Cache::default();
    for (name, priority) in [("less", 9), ("equal", 10)] {
        cache.set_nominated(&pod(
            name,
            priority,
            json!({ "nominatedNodeName": "n" }),
            false,
        ));
    }
    let ended = ended_by(&Scribe::default(), cache, Vec::new()).await;
    expect![[r#"PATCH pods/less/status {"metadata":{"uid":"less-uid"},"status":{"nominatedNodeName":null}}"#]]
    .assert_eq(&ended);
}
