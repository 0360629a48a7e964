//! All of it as text. What help says is upstream's.

use super::{ATTEMPTS_MAX, Ended, Metrics, OfProfile};
use crate::laps::{Stage, Status};
use crate::queue::Figures;
use coracle_api::exposition::Text;
use coracle_api::exposition::histogram::Durations;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Upstream's prefix of all names.
macro_rules! name {
    ($name:literal) => {
        concat!("scheduler_", $name)
    };
}

fn value(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Series that nothing was added to are left out, as upstream has none before.
fn seen(text: &mut Text, name: &str, labels: &[(&str, &str)], times: &Durations) {
    if times.count() > 0 {
        times.text(text, name, labels);
    }
}

impl Metrics {
    pub fn text(&self, text: &mut Text) {
        let profiles = self.profiles.lock();
        let profiles: Vec<Arc<OfProfile>> = profiles.values().cloned().collect();
        attempts(text, &profiles);
        points(text, &profiles);
        evaluations(text, &profiles);
        self.of_plugins(text);
        self.of_pods(text);
        self.of_preemption(text);
        self.of_bindings(text);
        let world = self.world.lock();
        let Some(world) = &*world else {
            return;
        };
        if let Some(queue) = world.queue.upgrade() {
            waiting(text, &queue.figures());
        }
        if let Some(cache) = world.cache.upgrade() {
            let sizes = cache.lock().sizes();
            let name = name!("cache_size");
            let help = "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.";
            text.family(name, "gauge", help);
            text.sample(name, &[("type", "assumed_pods")], sizes.assumed_pods);
            text.sample(name, &[("type", "nodes")], sizes.nodes);
            text.sample(name, &[("type", "pods")], sizes.pods);
        }
    }

    fn of_plugins(&self, text: &mut Text) {
        let name = name!("plugin_execution_duration_seconds");
        let help = "Duration for running a plugin at a specific extension point.";
        text.family(name, "histogram", help);
        for ((plugin, stage, status), times) in &*self.plugins.lock() {
            let labels = [
                ("extension_point", stage.name()),
                ("plugin", *plugin),
                ("status", status.name()),
            ];
            times.text(text, name, &labels);
        }
    }

    fn of_pods(&self, text: &mut Text) {
        let name = name!("scheduling_algorithm_duration_seconds");
        text.family(name, "histogram", "Scheduling algorithm latency in seconds");
        self.algorithm.text(text, name, &[]);
        let name = name!("pod_scheduling_attempts");
        let help = "Number of attempts to successfully schedule a pod.";
        text.family(name, "histogram", help);
        self.tries.text(text, name, &[]);
        let name = name!("pod_scheduling_sli_duration_seconds");
        let help = "E2e latency for a pod being scheduled, from the time the pod enters the \
                    scheduling queue and might involve multiple scheduling attempts.";
        text.family(name, "histogram", help);
        for (number, times) in (1..).zip(&self.since_first) {
            let attempts = match number {
                ATTEMPTS_MAX => format!("{number}+"),
                _ => number.to_string(),
            };
            seen(text, name, &[("attempts", &attempts)], times);
        }
        let name = name!("pod_scheduled_after_flush_total");
        let help = "Number of pods that were successfully scheduled after being flushed from \
                    unschedulablePods due to timeout. This metric helps detect potential queueing \
                    hint misconfigurations or event handling issues.";
        text.family(name, "counter", help);
        text.sample(name, &[], value(&self.after_flush));
    }

    fn of_preemption(&self, text: &mut Text) {
        let name = name!("preemption_attempts_total");
        let help = "Total preemption attempts in the cluster till now";
        text.family(name, "counter", help);
        text.sample(name, &[], value(&self.preemptions));
        let name = name!("preemption_victims");
        text.family(name, "histogram", "Number of selected preemption victims");
        self.victims.text(text, name, &[]);
        let results = ["success", "error"];
        let name = name!("preemption_goroutines_duration_seconds");
        let help = "Duration in seconds for running goroutines for the preemption.";
        text.family(name, "histogram", help);
        for (result, times) in results.into_iter().zip(&self.evictions) {
            seen(text, name, &[("result", result)], times);
        }
        let name = name!("preemption_goroutines_execution_total");
        let help = "Number of preemption goroutines executed.";
        text.family(name, "counter", help);
        for (result, times) in results.into_iter().zip(&self.evictions) {
            if times.count() > 0 {
                text.sample(name, &[("result", result)], times.count());
            }
        }
    }

    fn of_bindings(&self, text: &mut Text) {
        let name = name!("permit_wait_duration_seconds");
        text.family(name, "histogram", "Duration of waiting on permit.");
        for (status, times) in Status::ALL.into_iter().zip(&self.permit_waits) {
            seen(text, name, &[("result", status.name())], times);
        }
        let name = name!("goroutines");
        let help = "Number of running goroutines split by the work they do such as binding.";
        text.family(name, "gauge", help);
        text.sample(name, &[("operation", "binding")], value(&self.bindings));
        let name = name!("resourceclaim_creates_total");
        let help = "Number of ResourceClaims creation requests within scheduler";
        text.family(name, "counter", help);
        for (status, claims) in self.claims_made.by_status() {
            if claims > 0 {
                text.sample(name, &[("status", status)], claims);
            }
        }
    }
}

fn attempts(text: &mut Text, profiles: &[Arc<OfProfile>]) {
    let name = name!("schedule_attempts_total");
    let help = "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod \
                could not be scheduled, while 'error' means an internal scheduler problem.";
    text.family(name, "counter", help);
    for profile in profiles {
        for (how, times) in Ended::ALL.into_iter().zip(&profile.attempts) {
            if times.count() > 0 {
                let labels = [("profile", &*profile.name), ("result", how.name())];
                text.sample(name, &labels, times.count());
            }
        }
    }
    let name = name!("scheduling_attempt_duration_seconds");
    let help = "Scheduling attempt latency in seconds (scheduling algorithm + binding)";
    text.family(name, "histogram", help);
    for profile in profiles {
        for (how, times) in Ended::ALL.into_iter().zip(&profile.attempts) {
            let labels = [("profile", &*profile.name), ("result", how.name())];
            seen(text, name, &labels, times);
        }
    }
}

fn points(text: &mut Text, profiles: &[Arc<OfProfile>]) {
    let name = name!("framework_extension_point_duration_seconds");
    let help = "Latency for running all plugins of a specific extension point.";
    text.family(name, "histogram", help);
    for profile in profiles {
        for (stage, row) in Stage::ALL.into_iter().zip(&profile.points) {
            for (status, times) in Status::ALL.into_iter().zip(row) {
                let labels = [
                    ("extension_point", stage.name()),
                    ("profile", &*profile.name),
                    ("status", status.name()),
                ];
                seen(text, name, &labels, times);
            }
        }
    }
}

fn evaluations(text: &mut Text, profiles: &[Arc<OfProfile>]) {
    let name = name!("plugin_evaluation_total");
    let help = "Number of attempts to schedule pods by each plugin and the extension point \
                (available only in PreFilter, Filter, PreScore, and Score).";
    text.family(name, "counter", help);
    for profile in profiles {
        for plugin in &profile.plugins {
            for (stage, times) in Stage::COUNTED.into_iter().zip(&plugin.times) {
                let Some(times) = times else {
                    continue;
                };
                let labels = [
                    ("extension_point", stage.name()),
                    ("plugin", plugin.name),
                    ("profile", &*profile.name),
                ];
                text.sample(name, &labels, value(times));
            }
        }
    }
}

fn waiting(text: &mut Text, figures: &Figures) {
    let name = name!("pending_pods");
    let help = "Number of pending pods, by the queue type. 'active' means number of pods in \
                activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number \
                of pods in unschedulablePods that the scheduler attempted to schedule and failed; \
                'gated' is the number of unschedulable pods that the scheduler never attempted to \
                schedule because they are gated.";
    text.family(name, "gauge", help);
    let places = [
        ("active", figures.depth.active),
        ("backoff", figures.depth.backoff),
        ("gated", figures.gated),
        ("unschedulable", figures.depth.unschedulable),
    ];
    for (queue, pods) in places {
        text.sample(name, &[("queue", queue)], pods);
    }
    let name = name!("queue_incoming_pods_total");
    let help = "Number of pods added to scheduling queues by event and queue type.";
    text.family(name, "counter", help);
    for ((queue, event), pods) in &figures.came {
        text.sample(name, &[("event", event), ("queue", queue)], pods);
    }
    let name = name!("unschedulable_pods");
    let help = "The number of unschedulable pods broken down by plugin name. A pod will increment \
                the gauge for all plugins that caused it to not schedule and so this metric have \
                meaning only when broken down by plugin.";
    text.family(name, "gauge", help);
    for ((plugin, profile), pods) in &figures.refused {
        text.sample(name, &[("plugin", plugin), ("profile", profile)], pods);
    }
    let name = name!("inflight_events");
    let help = "Number of events currently tracked in the scheduling queue.";
    text.family(name, "gauge", help);
    for (event, changes) in &figures.kept {
        text.sample(name, &[("event", event)], changes);
    }
}
