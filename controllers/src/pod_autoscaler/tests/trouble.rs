//! What goes wrong, and how it ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// What is said where nobody serves metrics.
const NOBODY: &str = "failed to get cpu utilization: unable to get metrics for resource cpu: \
                      unable to fetch metrics from resource metrics API: the server could not \
                      find the requested resource (get pods.metrics.k8s.io)";

#[tokio::test(start_paused = true)]
async fn metrics_that_come_late_are_seen_at_the_next_look() {
    let site = two_pods();
    let _running = site.run();
    site.is_told("FailedGetResourceMetric", &format!("Warning {NOBODY}"))
        .await;
    assert_eq!(
        site.condition("web", "ScalingActive"),
        format!(
            "False FailedGetResourceMetric: the HPA was unable to compute the replica count: \
             {NOBODY}"
        )
    );
    assert_eq!(site.status("web")["currentMetrics"], json!([{"type": ""}]));
    // Long enough that whoever backs off is minutes behind.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(site.replicas(WEB), 2);
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let come = tokio::time::Instant::now();
    eventually("four", || site.replicas(WEB) == 4).await;
    assert!(
        come.elapsed() <= Duration::from_secs(16),
        "{:?}",
        come.elapsed()
    );
    // And each time again.
    site.metrics.lock().clear();
    site.target(WEB, 2, "app=web");
    eventually("failing again", || {
        site.condition("web", "ScalingActive")
            .starts_with("False FailedGetResourceMetric")
    })
    .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let come = tokio::time::Instant::now();
    eventually("four again", || site.replicas(WEB) == 4).await;
    assert!(
        come.elapsed() <= Duration::from_secs(16),
        "{:?}",
        come.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_target_that_comes_late_is_seen_at_the_next_look() {
    let site = two_pods();
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    site.cluster.api.delete(WEB);
    let _running = site.run();
    eventually("not there", || {
        site.condition("web", "AbleToScale")
            == "False FailedGetScale: the HPA controller was unable to get the target's current \
                scale: NotFound"
    })
    .await;
    site.is_told("FailedGetScale", "Warning NotFound").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    site.target(WEB, 2, "app=web");
    let come = tokio::time::Instant::now();
    eventually("four", || site.replicas(WEB) == 4).await;
    assert!(
        come.elapsed() <= Duration::from_secs(16),
        "{:?}",
        come.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_knows_is_told_of() {
    for (version, kind, why) in [
        (
            "apps/v1",
            "Engine",
            r#"no matches for kind "Engine" in group "apps""#,
        ),
        (
            "none.org/v1",
            "Engine",
            r#"no matches for kind "Engine" in group "none.org""#,
        ),
        (
            "a/b/c",
            "Deployment",
            "unexpected GroupVersion string: a/b/c",
        ),
    ] {
        let site = two_pods();
        site.cluster.on_request(|method, path| {
            let is_asked = *method == Method::GET && path == "/apis/none.org/v1";
            is_asked.then(|| (404, json!("404 page not found")))
        });
        let target = json!({"apiVersion": version, "kind": kind, "name": "web"});
        site.autoscaler("web", json!({"scaleTargetRef": target}));
        let _running = site.run();
        site.is_told("FailedGetScale", &format!("Warning {why}"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_two_autoscalers_are_scaled_by_neither() {
    let site = two_pods();
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let other = "/apis/apps/v1/namespaces/default/deployments/other";
    site.target(other, 2, "app in (web,db)");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"});
    site.autoscaler("other", json!({"scaleTargetRef": target}));
    site.target(WEB, 0, "app=web");
    let _running = site.run();
    // One of them has no say while its target stands at zero.
    eventually("the other", || site.replicas(other) == 4).await;
    site.target(WEB, 2, "app=web");
    let who = "are controlled by multiple HPAs: [default/other default/web]";
    eventually("ambiguous", || {
        site.condition("web", "ScalingActive")
            == format!("False AmbiguousSelector: pods by selector app=web {who}")
    })
    .await;
    let text = format!("Warning pods by selector app in (web,db) {who}");
    site.is_told("AmbiguousSelector", &text).await;
    assert_eq!(site.replicas(WEB), 2);
    site.cluster.api.delete(&path_of("other"));
    eventually("alone", || site.replicas(WEB) == 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_selector_is_needed_and_has_to_be_one() {
    let site = two_pods();
    site.target(WEB, 2, "");
    let _running = site.run();
    eventually("none", || {
        site.condition("web", "ScalingActive")
            == "False InvalidSelector: the HPA target's scale is missing a selector"
    })
    .await;
    site.is_told("SelectorRequired", "Warning selector is required")
        .await;
    site.target(WEB, 2, "app in");
    eventually("bad", || {
        site.condition("web", "ScalingActive").starts_with(
            "False InvalidSelector: couldn't convert selector into a corresponding internal \
             selector object: ",
        )
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn whoever_scales_at_the_same_time_does_not_win() {
    let site = two_pods();
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let (metrics, api) = (site.metrics.clone(), site.cluster.api.clone());
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    site.cluster.on_request(move |method, path| {
        if *method == Method::PUT && path.ends_with("/scale") {
            // Just before the first two of them somebody else writes.
            if counted.fetch_add(1, Ordering::Relaxed) < 2 {
                let stored = api.get(WEB).unwrap();
                api.put(WEB, stored);
            }
            return None;
        }
        let known = metrics.lock().get(path).cloned();
        known.map(|answer| (200, answer))
    });
    let _running = site.run();
    eventually("four", || site.replicas(WEB) == 4).await;
    assert_eq!(writes.load(Ordering::Relaxed), 3);
    assert!(site.told("FailedRescale").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_is_refused_is_told_of_and_tried_again() {
    let site = two_pods();
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let metrics = site.metrics.clone();
    let is_shut = Arc::new(AtomicUsize::new(1));
    let shut = is_shut.clone();
    site.cluster.on_request(move |method, path| {
        if *method == Method::PUT && path.ends_with("/scale") && shut.load(Ordering::Relaxed) == 1 {
            return Some((403, crate::fake_cluster::failure(403, "Forbidden")));
        }
        let known = metrics.lock().get(path).cloned();
        known.map(|answer| (200, answer))
    });
    let _running = site.run();
    let text = "Warning New size: 4; reason: cpu resource utilization (percentage of request) \
                above target; error: Forbidden";
    site.is_told("FailedRescale", text).await;
    eventually("written", || {
        site.condition("web", "AbleToScale")
            == "False FailedUpdateScale: the HPA controller was unable to update the target \
                scale: Forbidden"
    })
    .await;
    assert!(site.status("web")["lastScaleTime"].is_null());
    is_shut.store(0, Ordering::Relaxed);
    eventually("four", || site.replicas(WEB) == 4).await;
}

/// Grows, and shrinks again.
async fn live(death: Option<Death>) -> Calls {
    let site = two_pods();
    site.use_cpu(&[("a", 1000), ("b", 1000)]);
    let living = spawn_mortal(&site.cluster, run, death);
    eventually(&format!("four, {death:?}"), || site.replicas(WEB) == 4).await;
    eventually(&format!("told, {death:?}"), || {
        site.status("web")["desiredReplicas"] == 4
    })
    .await;
    site.use_cpu(&[("a", 10), ("b", 10)]);
    let limit = Duration::from_secs(900);
    let shrunk = async {
        while site.replicas(WEB) != 1 || site.status("web")["desiredReplicas"] != 1 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    assert!(
        tokio::time::timeout(limit, shrunk).await.is_ok(),
        "never one, {death:?}"
    );
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_the_number_is_right_in_the_end() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes >= 4, "{writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
