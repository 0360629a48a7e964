//! A configuration as it is in force, under upstream's names. Arguments of plugins are not told.

use super::{API_VERSION, Configuration, KIND};
use crate::framework::Point;
use crate::plugins::registry::Plan;
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Configuration {
    /// JSON, as `/configz` has it.
    pub fn shown(&self) -> String {
        let election = &self.election;
        let profiles: Vec<Value> = self.profiles.iter().map(profile).collect();
        let configuration = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "leaderElection": {
                "leaderElect": election.is_on,
                "leaseDuration": seconds(election.lease_duration),
                "renewDeadline": seconds(election.renew_deadline),
                "retryPeriod": seconds(election.retry_period),
                "resourceLock": "leases",
                "resourceName": election.name,
                "resourceNamespace": election.namespace,
            },
            "podInitialBackoffSeconds": self.backoff.initial.as_secs(),
            "podMaxBackoffSeconds": self.backoff.max.as_secs(),
            "profiles": profiles,
        });
        json!({"componentconfig": configuration}).to_string()
    }
}

fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

fn profile(plan: &Plan) -> Value {
    let mut points = Map::new();
    for point in Point::ALL {
        let plugins = &plan.by_point[point as usize];
        let plugins = plugins.iter().map(|name| match plan.weights.get(name) {
            Some(weight) if point == Point::Score => json!({"name": name, "weight": weight}),
            _ => json!({"name": name}),
        });
        let enabled: Vec<Value> = plugins.collect();
        points.insert(lower(point.name()), json!({"enabled": enabled}));
    }
    json!({
        "schedulerName": plan.scheduler_name,
        "percentageOfNodesToScore": plan.percentage_of_nodes,
        "plugins": points,
    })
}

/// As fields are written.
fn lower(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    name
}
