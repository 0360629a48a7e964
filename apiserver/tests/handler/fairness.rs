//! A noisy client, and those that must not notice it.

use super::site::{CONFIG_MAPS, PATIENCE, Site, config_map, site_with};
use bytes::Bytes;
use coracle_apiserver::authenticate::User;
use coracle_apiserver::config::Limits;
use futures::StreamExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use std::convert::Infallible;
use tower::ServiceExt;

/// May patch and watch everything, by the roles that are there from the start.
const NOISY: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const NODE: &str = "system:node:n1";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

async fn small_site() -> Site {
    let site = site_with(Limits {
        reading: 12,
        mutating: 6,
        ..Limits::default()
    })
    .await;
    let node = json!({ "metadata": { "name": "n1" } });
    site.post("/api/v1/nodes", &node).await.ok();
    site
}

/// A write whose body never ends: it holds a seat, or waits for one, until it is dropped.
fn endless(site: &Site, user: &str) -> tokio::task::JoinHandle<Response<()>> {
    let service = site.acting_as(User::named(user));
    let begun = futures::stream::once(async { Ok::<_, Infallible>(Frame::data(Bytes::from("{"))) });
    let body = StreamBody::new(begun.chain(futures::stream::pending()));
    let request = Request::patch(format!("{CONFIG_MAPS}/a"))
        .header("content-type", "application/merge-patch+json")
        .body(BodyExt::boxed(body))
        .unwrap();
    tokio::spawn(async move { service.oneshot(request).await.unwrap().map(drop) })
}

async fn as_user(site: &Site, user: &str, method: &str, path: &str, body: String) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let service = site.acting_as(User::named(user));
    let answered = tokio::time::timeout(PATIENCE, service.oneshot(request));
    let response = answered.await.expect("nobody is kept waiting").unwrap();
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&text).into_owned())
}

/// Polls until a metric has reached a value.
async fn until(site: &Site, metric: &str, least: f64) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let text = String::from_utf8(site.get("/metrics").await.body.to_vec()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(metric));
        let value: f64 = line.map_or(0.0, |value| value.trim().parse().unwrap());
        if value >= least {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "{metric} is {value}\n{text}"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_flood_takes_nothing_from_nodes_leaders_and_others() {
    let site = small_site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    // More than the level has seats for, and more than the queues of its hand hold.
    let flood: Vec<_> = (0..400).map(|_| endless(&site, NOISY)).collect();
    let labels = "{flow_schema=\"kube-system-service-accounts\",priority_level=\"workload-high\"}";
    let waiting = format!("apiserver_flowcontrol_current_inqueue_requests{labels}");
    until(&site, &waiting, 250.0).await;

    // Leases of nodes go on.
    let lease = json!({ "metadata": { "name": "n1" }, "spec": { "holderIdentity": "n1" } });
    let made = as_user(&site, NODE, "POST", LEASES, lease.to_string()).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let mut lease: Value = serde_json::from_str(&made.1).unwrap();
    for round in 0..20 {
        lease["spec"]["leaseDurationSeconds"] = (40 + round).into();
        let path = format!("{LEASES}/n1");
        let renewed = as_user(&site, NODE, "PUT", &path, lease.to_string()).await;
        assert_eq!(renewed.0, 200, "{}", renewed.1);
        lease = serde_json::from_str(&renewed.1).unwrap();
    }
    // So do leaders, and the operator.
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";
    let leader = as_user(&site, "system:kube-scheduler", "GET", path, String::new()).await;
    assert_eq!(leader.0, 404, "{}", leader.1);
    site.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    // The noisy one itself is told to come back, by some of its requests.
    let mut refused = Vec::new();
    for one in flood {
        if one.is_finished() {
            refused.push(one.await.unwrap());
        } else {
            one.abort();
            drop(one.await);
        }
    }
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|answer| answer.status() == 429));
    assert!(
        refused
            .iter()
            .all(|answer| answer.headers().contains_key("retry-after"))
    );
    // Once it is gone, its level is free for another.
    let quiet = "system:serviceaccount:kube-system:root-ca-cert-publisher";
    let body = config_map("b", "1").to_string();
    let made = as_user(&site, quiet, "POST", CONFIG_MAPS, body).await;
    assert_eq!(made.0, 201, "{}", made.1);
}

#[tokio::test]
async fn an_answer_names_its_schema_and_level_and_a_watch_gives_its_seat_back() {
    let site = small_site().await;
    let base = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let schema = site.get(&format!("{base}/flowschemas/exempt")).await.ok();
    let level = site
        .get(&format!("{base}/prioritylevelconfigurations/exempt"))
        .await
        .ok();
    let answer = site.get("/api/v1/pods").await;
    let header = |name: &str| answer.headers[name].to_str().unwrap();
    assert_eq!(
        header("x-kubernetes-pf-flowschema-uid"),
        schema["metadata"]["uid"]
    );
    assert_eq!(
        header("x-kubernetes-pf-prioritylevel-uid"),
        level["metadata"]["uid"]
    );
    assert_eq!(header("audit-id").len(), 36);
    let service = site.acting_as(User::named(NOISY));
    let mut watches = Vec::new();
    // Far more than there are seats.
    for _ in 0..60 {
        let request = Request::get(format!(
            "{CONFIG_MAPS}?watch=true&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        ));
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let answered = tokio::time::timeout(PATIENCE, service.clone().oneshot(request));
        let mut response = answered.await.unwrap().unwrap();
        assert_eq!(response.status(), 200);
        response.body_mut().frame().await.unwrap().unwrap();
        watches.push(response);
    }
    let labels = "{flow_schema=\"kube-system-service-accounts\",priority_level=\"workload-high\"}";
    until(
        &site,
        &format!("apiserver_flowcontrol_dispatched_requests_total{labels}"),
        60.0,
    )
    .await;
}
