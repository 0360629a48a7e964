//! `/metrics/resource`: what autoscalers and `kubectl top` are made of. Names and stability are
//! upstream's.

use super::collect::{Seen, Stats};
use super::look::{SeenContainer, SeenPod};
use crate::runtime::Usage;
use coracle_api::exposition::{Text, go_number};

/// A family of one number for each of many.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Usage) -> Option<f64>,
}

const CPU: fn(&Usage) -> Option<f64> = |usage| Some(usage.cpu_ns as f64 / 1e9);
const MEMORY: fn(&Usage) -> Option<f64> = |usage| Some(usage.memory_working_set_bytes as f64);
const SWAP: fn(&Usage) -> Option<f64> = |usage| Some(usage.swap_bytes? as f64);

const fn family(
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Usage) -> Option<f64>,
) -> Family {
    Family {
        name,
        kind,
        help,
        value,
    }
}

const CONTAINER: [Family; 3] = [
    family(
        "container_cpu_usage_seconds_total",
        "counter",
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
        CPU,
    ),
    family(
        "container_memory_working_set_bytes",
        "gauge",
        "[STABLE] Current working set of the container in bytes",
        MEMORY,
    ),
    family(
        "container_swap_usage_bytes",
        "gauge",
        "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows \
         systems",
        SWAP,
    ),
];
const NODE: [Family; 3] = [
    family(
        "node_cpu_usage_seconds_total",
        "counter",
        "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
        CPU,
    ),
    family(
        "node_memory_working_set_bytes",
        "gauge",
        "[STABLE] Current working set of the node in bytes",
        MEMORY,
    ),
    family(
        "node_swap_usage_bytes",
        "gauge",
        "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems",
        SWAP,
    ),
];
const POD: [Family; 3] = [
    family(
        "pod_cpu_usage_seconds_total",
        "counter",
        "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
        CPU,
    ),
    family(
        "pod_memory_working_set_bytes",
        "gauge",
        "[STABLE] Current working set of the pod in bytes",
        MEMORY,
    ),
    family(
        "pod_swap_usage_bytes",
        "gauge",
        "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows \
         systems",
        SWAP,
    ),
];

impl Stats {
    pub async fn resource_metrics(&self) -> String {
        let seen = self.look().await;
        if let Err(error) = &seen {
            tracing::warn!(%error, "cannot tell what pods use");
        }
        text(seen.ok().as_ref())
    }
}

/// Families stand in the order of their names.
fn text(seen: Option<&Seen>) -> String {
    let mut text = Text::default();
    if let Some(seen) = seen {
        CONTAINER[..2]
            .iter()
            .for_each(|family| of_containers(&mut text, family, &seen.pods));
        started(&mut text, &seen.pods);
        CONTAINER[2..]
            .iter()
            .for_each(|family| of_containers(&mut text, family, &seen.pods));
        for family in &NODE {
            let at_ms = seen.machine.at.as_millisecond();
            if let Some(value) = (family.value)(&seen.machine.usage) {
                text.family(family.name, family.kind, family.help);
                text.sample_at(family.name, &[], go_number(value), at_ms);
            }
        }
        POD.iter()
            .for_each(|family| of_pods(&mut text, family, &seen.pods));
    }
    let failed = u8::from(seen.is_none());
    let help = "1 if there was an error while getting container metrics, 0 otherwise";
    for (name, stability) in [
        ("resource_scrape_error", "[STABLE]"),
        ("scrape_error", "[ALPHA] (Deprecated since 1.29.0)"),
    ] {
        text.family(name, "gauge", &format!("{stability} {help}"));
        text.sample(name, &[], failed);
    }
    text.into_string()
}

fn containers(pods: &[SeenPod]) -> impl Iterator<Item = (&SeenPod, &SeenContainer)> {
    let each = |pod| move |container| (pod, container);
    pods.iter()
        .flat_map(move |pod| pod.containers.iter().map(each(pod)))
}

fn of_containers(text: &mut Text, family: &Family, pods: &[SeenPod]) {
    let mut all = containers(pods).peekable();
    if all
        .peek()
        .is_none_or(|(_, first)| (family.value)(&first.usage).is_none())
    {
        return;
    }
    text.family(family.name, family.kind, family.help);
    for (pod, container) in all {
        if let Some(value) = (family.value)(&container.usage) {
            let labels = labels(pod, container);
            text.sample_at(
                family.name,
                &labels,
                go_number(value),
                pod.at.as_millisecond(),
            );
        }
    }
}

fn labels<'a>(pod: &'a SeenPod, container: &'a SeenContainer) -> [(&'static str, &'a str); 3] {
    let config = &pod.sandbox.config;
    [
        ("container", &container.status.config.name),
        ("namespace", &config.pod_namespace),
        ("pod", &config.pod_name),
    ]
}

fn started(text: &mut Text, pods: &[SeenPod]) {
    let name = "container_start_time_seconds";
    let help = "[STABLE] Start time of the container since unix epoch in seconds";
    let mut all = containers(pods).peekable();
    if all.peek().is_none() {
        return;
    }
    text.family(name, "gauge", help);
    for (pod, container) in all {
        let since = container.status.created_at.as_nanosecond() as f64 / 1e9;
        text.sample(name, &labels(pod, container), go_number(since));
    }
}

fn of_pods(text: &mut Text, family: &Family, pods: &[SeenPod]) {
    let of = |pod: &SeenPod| pod.usage.as_ref().and_then(family.value);
    let mut all = pods
        .iter()
        .filter_map(|pod| Some((pod, of(pod)?)))
        .peekable();
    if all.peek().is_none() {
        return;
    }
    text.family(family.name, family.kind, family.help);
    for (pod, value) in all {
        let config = &pod.sandbox.config;
        let labels: [(&str, &str); 2] = [
            ("namespace", &config.pod_namespace),
            ("pod", &config.pod_name),
        ];
        text.sample_at(
            family.name,
            &labels,
            go_number(value),
            pod.at.as_millisecond(),
        );
    }
}

#[cfg(test)]
pub mod tests;
