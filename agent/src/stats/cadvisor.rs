//! `/metrics/cadvisor`: under cAdvisor's names and labels, what of its metrics dashboards and
//! alerts are made of: processors, memory, processes, networks, disks and limits of containers,
//! pods and the machine (whose `id` is `/`).

use super::collect::{Seen, Stats};
use super::look::{SeenContainer, SeenPod};
use super::network::Interface;
use crate::runtime::{Resources, Stalls, Usage};
use crate::usage::pods::Places;
use coracle_api::exposition::{Text, go_number};
use std::collections::HashMap;

/// The device of all that containers write: the node's own disk.
const DEVICE: &str = "node";

/// Who a sample is of; the labels that every metric has.
struct Subject<'a> {
    id: String,
    container: &'a str,
    image: &'a str,
    name: &'a str,
    namespace: &'a str,
    pod: &'a str,
    at_ms: i64,
    usage: &'a Usage,
    /// Of a pod and of the machine: networks belong to those.
    interfaces: &'a [Interface],
    resources: Option<&'a Resources>,
    started: f64,
    /// What a container has written.
    disk_bytes: Option<u64>,
}

impl Subject<'_> {
    /// In the order in which Prometheus' clients write them.
    fn labels<'a>(&'a self, extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut labels = vec![
            ("container", self.container),
            ("id", self.id.as_str()),
            ("image", self.image),
            ("name", self.name),
            ("namespace", self.namespace),
            ("pod", self.pod),
        ];
        labels.extend_from_slice(extra);
        labels.sort_unstable();
        labels
    }
}

/// Values of one metric for one subject, each with labels of its own.
type Values<'a> = Vec<(Vec<(&'static str, &'a str)>, f64)>;

struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// cAdvisor gives limits and starts no time of their own.
    is_timed: bool,
    values: for<'a> fn(&'a Subject<'_>) -> Values<'a>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    values: for<'a> fn(&'a Subject<'_>) -> Values<'a>,
) -> Metric {
    Metric {
        name,
        kind: "counter",
        help,
        is_timed: true,
        values,
    }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    values: for<'a> fn(&'a Subject<'_>) -> Values<'a>,
) -> Metric {
    Metric {
        kind: "gauge",
        ..counter(name, help, values)
    }
}

const fn fixed(
    name: &'static str,
    help: &'static str,
    values: for<'a> fn(&'a Subject<'_>) -> Values<'a>,
) -> Metric {
    Metric {
        is_timed: false,
        ..gauge(name, help, values)
    }
}

fn one<'a>(value: f64) -> Values<'a> {
    vec![(Vec::new(), value)]
}

fn each_interface<'a>(subject: &'a Subject<'_>, count: fn(&Interface) -> u64) -> Values<'a> {
    let all = subject.interfaces.iter();
    all.map(|one| (vec![("interface", one.name.as_str())], count(one) as f64))
        .collect()
}

fn stalled<'a>(subject: &'a Subject<'_>, total_us: fn(&Stalls) -> u64) -> Values<'a> {
    let stalls = subject.usage.stalls.as_ref();
    stalls.map_or_else(Vec::new, |stalls| one(total_us(stalls) as f64 / 1e6))
}

fn limit<'a>(subject: &'a Subject<'_>, of: fn(&Resources) -> Option<f64>) -> Values<'a> {
    subject.resources.and_then(of).map_or_else(Vec::new, one)
}

/// In the order of their names.
const METRICS: &[Metric] = &[
    counter(
        "container_cpu_usage_seconds_total",
        "Cumulative cpu time consumed in seconds.",
        |subject| vec![(vec![("cpu", "total")], subject.usage.cpu_ns as f64 / 1e9)],
    ),
    gauge(
        "container_fs_usage_bytes",
        "Number of bytes that are consumed by the container on this filesystem.",
        |subject| match subject.disk_bytes {
            Some(bytes) => vec![(vec![("device", DEVICE)], bytes as f64)],
            None => Vec::new(),
        },
    ),
    gauge(
        "container_last_seen",
        "Last time a container was seen by the exporter",
        |subject| one((subject.at_ms / 1000) as f64),
    ),
    counter(
        "container_memory_failures_total",
        "Cumulative count of memory allocation failures.",
        |subject| {
            let (all, major) = (subject.usage.page_faults, subject.usage.major_page_faults);
            let of = |kind, count: u64| {
                let labels = vec![("failure_type", kind), ("scope", "hierarchy")];
                (labels, count as f64)
            };
            vec![of("pgfault", all), of("pgmajfault", major)]
        },
    ),
    gauge("container_memory_rss", "Size of RSS in bytes.", |subject| {
        one(subject.usage.memory_rss_bytes as f64)
    }),
    gauge(
        "container_memory_swap",
        "Container swap usage in bytes.",
        |subject| {
            let swap = subject.usage.swap_bytes;
            swap.map_or_else(Vec::new, |bytes| one(bytes as f64))
        },
    ),
    gauge(
        "container_memory_usage_bytes",
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        |subject| one(subject.usage.memory_usage_bytes as f64),
    ),
    gauge(
        "container_memory_working_set_bytes",
        "Current working set in bytes.",
        |subject| one(subject.usage.memory_working_set_bytes as f64),
    ),
    counter(
        "container_network_receive_bytes_total",
        "Cumulative count of bytes received",
        |subject| each_interface(subject, |one| one.received.bytes),
    ),
    counter(
        "container_network_receive_errors_total",
        "Cumulative count of errors encountered while receiving",
        |subject| each_interface(subject, |one| one.received.errors),
    ),
    counter(
        "container_network_receive_packets_dropped_total",
        "Cumulative count of packets dropped while receiving",
        |subject| each_interface(subject, |one| one.received.dropped),
    ),
    counter(
        "container_network_receive_packets_total",
        "Cumulative count of packets received",
        |subject| each_interface(subject, |one| one.received.packets),
    ),
    counter(
        "container_network_transmit_bytes_total",
        "Cumulative count of bytes transmitted",
        |subject| each_interface(subject, |one| one.sent.bytes),
    ),
    counter(
        "container_network_transmit_errors_total",
        "Cumulative count of errors encountered while transmitting",
        |subject| each_interface(subject, |one| one.sent.errors),
    ),
    counter(
        "container_network_transmit_packets_dropped_total",
        "Cumulative count of packets dropped while transmitting",
        |subject| each_interface(subject, |one| one.sent.dropped),
    ),
    counter(
        "container_network_transmit_packets_total",
        "Cumulative count of packets transmitted",
        |subject| each_interface(subject, |one| one.sent.packets),
    ),
    counter(
        "container_pressure_cpu_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to CPU congestion.",
        |subject| stalled(subject, |stalls| stalls.cpu.full.total_us),
    ),
    counter(
        "container_pressure_cpu_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to CPU congestion.",
        |subject| stalled(subject, |stalls| stalls.cpu.some.total_us),
    ),
    counter(
        "container_pressure_io_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to IO congestion.",
        |subject| stalled(subject, |stalls| stalls.io.full.total_us),
    ),
    counter(
        "container_pressure_io_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to IO congestion.",
        |subject| stalled(subject, |stalls| stalls.io.some.total_us),
    ),
    counter(
        "container_pressure_memory_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to memory \
         congestion.",
        |subject| stalled(subject, |stalls| stalls.memory.full.total_us),
    ),
    counter(
        "container_pressure_memory_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to memory congestion.",
        |subject| stalled(subject, |stalls| stalls.memory.some.total_us),
    ),
    fixed(
        "container_spec_cpu_period",
        "CPU period of the container.",
        |subject| {
            limit(subject, |resources| match resources.cpu_period_us {
                0 => Some(100_000.0),
                period => Some(period as f64),
            })
        },
    ),
    fixed(
        "container_spec_cpu_quota",
        "CPU quota of the container.",
        |subject| {
            limit(subject, |resources| {
                let quota = Some(resources.cpu_quota_us).filter(|quota| *quota > 0);
                quota.map(|quota| quota as f64)
            })
        },
    ),
    fixed(
        "container_spec_cpu_shares",
        "CPU share of the container.",
        |subject| {
            limit(
                subject,
                |resources| Some(resources.cpu_shares.max(2) as f64),
            )
        },
    ),
    fixed(
        "container_spec_memory_limit_bytes",
        "Memory limit for the container.",
        |subject| {
            limit(subject, |resources| {
                Some(resources.memory_limit_bytes.max(0) as f64)
            })
        },
    ),
    fixed(
        "container_start_time_seconds",
        "Start time of the container since unix epoch in seconds.",
        |subject| one(subject.started),
    ),
    gauge(
        "container_threads",
        "Number of threads running inside the container",
        |subject| one(subject.usage.process_count as f64),
    ),
];

impl Stats {
    pub async fn cadvisor_metrics(&self) -> String {
        let mut out = Text::default();
        let seen = match self.look().await {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(%error, "cannot tell what pods use");
                scrape_error(&mut out, 1);
                return out.into_string();
            }
        };
        let disks = self.layers_of(&seen).await;
        write(
            &mut out,
            &subjects(&seen, &disks, &self.image_names().await),
        );
        scrape_error(&mut out, 0);
        self.machine(&mut out, &seen);
        out.into_string()
    }

    /// By id, which is what containers were made from.
    async fn image_names(&self) -> HashMap<String, String> {
        let images = self.context.runtime.list_images().await.unwrap_or_default();
        let named = images.into_iter().filter_map(|image| {
            let name = image.names.into_iter().chain(image.digests).next()?;
            Some((image.id, name))
        });
        named.collect()
    }

    /// What containers have written, by id.
    async fn layers_of(&self, seen: &Seen) -> HashMap<String, u64> {
        let mut found = HashMap::new();
        let (context, now) = (&self.context, self.context.clock.monotonic());
        for pod in self.pods.list() {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            let mut all = seen.pods.iter();
            let Some(own) = all.find(|one| one.sandbox.config.pod_uid == uid) else {
                continue;
            };
            let places = Places {
                directory: context.pod_directory(&pod),
                logs: context.log_directory(&pod),
            };
            let runtime = context.runtime.as_ref();
            let Ok(kept) = context.disks.of_pod(runtime, &pod, places, now).await else {
                continue;
            };
            for container in &own.containers {
                let name = &container.status.config.name;
                let mut all = kept.containers.iter();
                if let Some(kept) = all.find(|one| one.name == *name) {
                    let bytes = kept.root.bytes.saturating_add(kept.logs.bytes);
                    found.insert(container.status.id.0.clone(), bytes);
                }
            }
        }
        found
    }

    fn machine(&self, out: &mut Text, seen: &Seen) {
        let cores = self.context.cpu_milli as f64 / 1000.0;
        let gauges = [
            ("machine_cpu_cores", "Number of logical CPU cores.", cores),
            (
                "machine_memory_bytes",
                "Amount of memory installed on the machine.",
                seen.machine.memory_bytes as f64,
            ),
            (
                "machine_swap_bytes",
                "Amount of swap memory available on the machine.",
                seen.machine.swap_total_bytes as f64,
            ),
        ];
        for (name, help, value) in gauges {
            out.family(name, "gauge", help);
            out.sample_at(
                name,
                &[],
                go_number(value),
                seen.machine.at.as_millisecond(),
            );
        }
    }
}

fn scrape_error(out: &mut Text, value: u8) {
    let name = "container_scrape_error";
    let help = "1 if there was an error while getting container metrics, 0 otherwise";
    out.family(name, "gauge", help);
    out.sample(name, &[], value);
}

fn subjects<'a>(
    seen: &'a Seen,
    disks: &HashMap<String, u64>,
    images: &'a HashMap<String, String>,
) -> Vec<Subject<'a>> {
    let machine = &seen.machine;
    let mut all = vec![Subject {
        id: "/".to_owned(),
        container: "",
        image: "",
        name: "",
        namespace: "",
        pod: "",
        at_ms: machine.at.as_millisecond(),
        usage: &machine.usage,
        interfaces: &machine.interfaces,
        resources: None,
        started: machine.booted_at.as_second() as f64,
        disk_bytes: None,
    }];
    for pod in &seen.pods {
        all.extend(of_pod(pod));
        for container in &pod.containers {
            let disk_bytes = disks.get(&container.status.id.0).copied();
            let mut subject = of_container(pod, container, disk_bytes);
            if let Some(name) = images.get(subject.image) {
                subject.image = name;
            }
            all.push(subject);
        }
    }
    all
}

fn of_pod(pod: &SeenPod) -> Option<Subject<'_>> {
    let config = &pod.sandbox.config;
    Some(Subject {
        id: format!("/{}", config.cgroup),
        container: "",
        image: "",
        name: &pod.sandbox.id.0,
        namespace: &config.pod_namespace,
        pod: &config.pod_name,
        at_ms: pod.at.as_millisecond(),
        usage: pod.usage.as_ref()?,
        interfaces: &pod.interfaces,
        resources: Some(&config.resources),
        started: pod.sandbox.created_at.as_second() as f64,
        disk_bytes: None,
    })
}

fn of_container<'a>(
    pod: &'a SeenPod,
    container: &'a SeenContainer,
    disk_bytes: Option<u64>,
) -> Subject<'a> {
    let (config, status) = (&pod.sandbox.config, &container.status);
    Subject {
        id: format!("/{}/{}", config.cgroup, status.id),
        container: &status.config.name,
        image: &status.config.image,
        name: &status.id.0,
        namespace: &config.pod_namespace,
        pod: &config.pod_name,
        at_ms: pod.at.as_millisecond(),
        usage: &container.usage,
        interfaces: &[],
        resources: Some(&status.config.resources),
        started: status.created_at.as_second() as f64,
        disk_bytes,
    }
}

fn write(out: &mut Text, subjects: &[Subject<'_>]) {
    for metric in METRICS {
        let mut has_begun = false;
        for subject in subjects {
            for (extra, value) in (metric.values)(subject) {
                if !std::mem::replace(&mut has_begun, true) {
                    out.family(metric.name, metric.kind, metric.help);
                }
                let labels = subject.labels(&extra);
                if metric.is_timed {
                    out.sample_at(metric.name, &labels, go_number(value), subject.at_ms);
                } else {
                    out.sample(metric.name, &labels, go_number(value));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
