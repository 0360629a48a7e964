//! The whole loop against a server in memory. A target is stored in the form of its scale, so
//! that reading and writing the one is reading and writing the other.

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};

mod kinds;
mod trouble;

const DEFAULT: &str = "/namespaces/default";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// A cluster with metrics that change under the loop. `None` while nobody serves them.
struct Site {
    cluster: FakeCluster,
    metrics: Arc<Mutex<HashMap<String, Value>>>,
}

impl Site {
    fn new() -> Self {
        let site = Self {
            cluster: FakeCluster::new(),
            metrics: Arc::default(),
        };
        let metrics = site.metrics.clone();
        site.cluster.on_request(move |method, path| {
            let of_metrics = path.contains(".metrics.k8s.io/") || path.contains("/metrics.k8s.io/");
            if *method != Method::GET || !of_metrics {
                return None;
            }
            let known = metrics.lock().get(path).cloned();
            Some(match known {
                Some(answer) => (200, answer),
                // As of a server that does not know the group: no Status.
                None => (404, json!("404 page not found")),
            })
        });
        site
    }

    fn serve(&self, path: &str, answer: Value) {
        self.metrics.lock().insert(path.to_owned(), answer);
    }

    /// What each pod uses of CPU, in thousandths.
    fn use_cpu(&self, each: &[(&str, i64)]) {
        let of_pod = |(name, milli): &(&str, i64)| {
            json!({"metadata": {"name": name}, "timestamp": "2030-01-01T01:00:00Z",
                   "window": "30s",
                   "containers": [{"name": "main", "usage": {"cpu": format!("{milli}m")}}]})
        };
        let items: Vec<Value> = each.iter().map(of_pod).collect();
        let path = format!("/apis/metrics.k8s.io/v1beta1{DEFAULT}/pods");
        self.serve(&path, json!({"items": items}));
    }

    /// A pod that has been ready for long.
    fn pod(&self, name: &str, app: &str) {
        let path = format!("/api/v1{DEFAULT}/pods/{name}");
        self.cluster.api.put(
            &path,
            json!({
                "metadata": {"labels": {"app": app}},
                "spec": {"containers": [{"name": "main",
                    "resources": {"requests": {"cpu": "1"}}}]},
                "status": {"phase": "Running", "startTime": "2029-12-31T23:00:00Z",
                    "conditions": [{"type": "Ready", "status": "True",
                        "lastTransitionTime": "2029-12-31T23:00:10Z"}]},
            }),
        );
    }

    fn target(&self, path: &str, replicas: i64, selector: &str) {
        let scale = json!({"spec": {"replicas": replicas},
                           "status": {"replicas": replicas, "selector": selector}});
        self.cluster.api.put(path, scale);
    }

    fn autoscaler(&self, name: &str, change: Value) {
        let mut spec = json!({
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1, "maxReplicas": 10, "metrics": [cpu(50)],
        });
        for (field, value) in change.as_object().unwrap() {
            spec[field] = value.clone();
        }
        self.cluster.api.put(&path_of(name), json!({"spec": spec}));
    }

    fn replicas(&self, path: &str) -> i64 {
        self.cluster.api.get(path).unwrap()["spec"]["replicas"]
            .as_i64()
            .unwrap()
    }

    fn status(&self, name: &str) -> Value {
        self.cluster.api.get(&path_of(name)).unwrap()["status"].clone()
    }

    /// `True ReadyForNewScale: its message`, or nothing.
    fn condition(&self, name: &str, kind: &str) -> String {
        let status = self.status(name);
        let conditions = status["conditions"].as_array();
        let found = conditions
            .into_iter()
            .flatten()
            .find(|one| one["type"] == kind);
        found.map_or(String::new(), |one| {
            let text = |field: &str| one[field].as_str().unwrap_or("").to_owned();
            format!("{} {}: {}", text("status"), text("reason"), text("message"))
        })
    }

    fn told(&self, reason: &str) -> Vec<String> {
        let events = self.cluster.api.objects("/api/v1/events");
        let those = events.iter().filter(|event| event["reason"] == reason);
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let told = those.map(|one| format!("{} {}", text(&one["type"]), text(&one["message"])));
        told.collect()
    }

    async fn is_told(&self, reason: &str, text: &str) {
        let told = async {
            while !self.told(reason).iter().any(|told| told == text) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let limit = Duration::from_secs(300);
        let is_told = tokio::time::timeout(limit, told).await.is_ok();
        assert!(
            is_told,
            "{reason} {text} is not among {:?}",
            self.told(reason)
        );
    }

    fn run(&self) -> tokio_util::sync::DropGuard {
        spawn(self.cluster.client(), Config::default(), run)
    }
}

fn path_of(name: &str) -> String {
    format!("/apis/autoscaling/v2{DEFAULT}/horizontalpodautoscalers/{name}")
}

fn cpu(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// Two pods of a Deployment, and an autoscaler for it.
fn two_pods() -> Site {
    let site = Site::new();
    site.target(WEB, 2, "app=web");
    site.pod("a", "web");
    site.pod("b", "web");
    site.autoscaler("web", json!({}));
    site
}

#[tokio::test(start_paused = true)]
async fn busy_pods_get_company_and_everybody_is_told() {
    let site = two_pods();
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let _running = site.run();
    eventually("four", || site.replicas(WEB) == 4).await;
    let reason = "New size: 4; reason: cpu resource utilization (percentage of request) above \
                  target";
    site.is_told("SuccessfulRescale", &format!("Normal {reason}"))
        .await;
    eventually("written", || site.status("web")["desiredReplicas"] == 4).await;
    let status = site.status("web");
    assert_eq!(status["currentReplicas"], 2);
    assert!(status["lastScaleTime"].is_string(), "{status}");
    assert_eq!(
        status["currentMetrics"],
        json!([{"type": "Resource", "resource": {"name": "cpu", "current":
            {"averageUtilization": 90, "averageValue": "900m"}}}])
    );
    let text = "the HPA controller was able to update the target scale to 4";
    assert_eq!(
        site.condition("web", "AbleToScale"),
        format!("True SucceededRescale: {text}")
    );
    assert_eq!(
        site.condition("web", "ScalingActive"),
        "True ValidMetricFound: the HPA was able to successfully calculate a replica count from \
         cpu resource utilization (percentage of request)"
    );
    assert_eq!(
        site.condition("web", "ScalingLimited"),
        "False DesiredWithinRange: the desired count is within the acceptable range"
    );
}

#[tokio::test(start_paused = true)]
async fn idle_pods_go_when_five_minutes_have_passed() {
    let site = two_pods();
    site.use_cpu(&[("a", 10), ("b", 10)]);
    let begun = tokio::time::Instant::now();
    let _running = site.run();
    eventually("waits", || {
        site.condition("web", "AbleToScale")
            .starts_with("True ScaleDownStabilized: ")
    })
    .await;
    assert_eq!(site.replicas(WEB), 2);
    while site.replicas(WEB) == 2 && begun.elapsed() < Duration::from_secs(600) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(site.replicas(WEB), 1);
    assert!(
        begun.elapsed() >= Duration::from_secs(300),
        "{:?}",
        begun.elapsed()
    );
    let text = "Normal New size: 1; reason: All metrics below target";
    site.is_told("SuccessfulRescale", text).await;
}

#[tokio::test(start_paused = true)]
async fn bounds_need_no_metrics() {
    let site = two_pods();
    site.autoscaler("web", json!({"minReplicas": 3}));
    let _running = site.run();
    eventually("three", || site.replicas(WEB) == 3).await;
    let text = "Normal New size: 3; reason: Current number of replicas below Spec.MinReplicas";
    site.is_told("SuccessfulRescale", text).await;
    site.autoscaler("web", json!({"minReplicas": 1, "maxReplicas": 2}));
    eventually("two", || site.replicas(WEB) == 2).await;
    let text = "Normal New size: 2; reason: Current number of replicas above Spec.MaxReplicas";
    site.is_told("SuccessfulRescale", text).await;
}

#[tokio::test(start_paused = true)]
async fn what_stands_at_zero_stays_there() {
    let site = two_pods();
    site.target(WEB, 0, "app=web");
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let _running = site.run();
    eventually("off", || {
        site.condition("web", "ScalingActive")
            == "False ScalingDisabled: scaling is disabled since the replica count of the target \
                is zero"
    })
    .await;
    assert_eq!(site.replicas(WEB), 0);
    // Whoever takes it from there gets it back.
    site.target(WEB, 2, "app=web");
    eventually("on again", || site.replicas(WEB) == 4).await;
}

#[tokio::test(start_paused = true)]
async fn rates_hold_between_passes() {
    let site = two_pods();
    let rules = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]});
    site.autoscaler(
        "web",
        json!({"behavior": {"scaleUp": rules, "scaleDown": rules}}),
    );
    site.use_cpu(&[("a", 1000), ("b", 1000)]);
    let _running = site.run();
    eventually("three", || site.replicas(WEB) == 3).await;
    let third = tokio::time::Instant::now();
    eventually("limited", || {
        site.condition("web", "ScalingLimited")
            == "True ScaleUpLimit: the desired replica count is increasing faster than the \
                maximum scale rate"
    })
    .await;
    eventually("four", || site.replicas(WEB) == 4).await;
    assert!(
        third.elapsed() >= Duration::from_secs(59),
        "{:?}",
        third.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn without_autoscalers_nothing_is_asked() {
    let site = Site::new();
    site.target(WEB, 2, "app=web");
    site.pod("a", "web");
    let _running = site.run();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let requests = site.cluster.api.requests();
    let lists = |request: &&String| {
        !request.ends_with("/horizontalpodautoscalers") && !request.ends_with("/api/v1/pods")
    };
    assert_eq!(requests.iter().find(lists), None);
    assert!(requests.len() >= 4, "{requests:?}");
}

/// The metrics that begin with a name, without upstream's prefix.
fn counted(name: &str) -> Vec<String> {
    let mut text = coracle_api::exposition::Text::default();
    metrics_text(&mut text);
    let text = text.into_string();
    let lines = text.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("horizontal_pod_autoscaler_controller_"));
    let named = lines.filter(|line| line.starts_with(name));
    named.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn looks_and_metrics_are_counted() {
    let site = two_pods();
    site.cluster.api.delete(&path_of("web"));
    site.autoscaler("counted", json!({}));
    let target = json!({"apiVersion": "a/b/c", "kind": "Deployment", "name": "web"});
    site.autoscaler("misnamed", json!({"scaleTargetRef": target}));
    site.use_cpu(&[("a", 800), ("b", 1000)]);
    let running = site.run();
    let wants = r#"desired_replicas{namespace="default",hpa_name="counted"} 4"#;
    let shown = || counted("desired_replicas").iter().any(|line| line == wants);
    eventually("shown", shown).await;
    // Those of other tests are counted with it.
    for line in [
        r#"reconciliations_total{action="scale_up",error="none"} "#,
        r#"reconciliations_total{action="none",error="spec"} "#,
        r#"reconciliation_duration_seconds_count{action="scale_up",error="none"} "#,
        r#"metric_computation_total{action="scale_up",error="none",metric_type="Resource"} "#,
    ] {
        eventually(line, || !counted(line).is_empty()).await;
    }
    site.cluster.api.delete(&path_of("counted"));
    eventually("gone", || !shown()).await;
    drop(running);
}
