//! Names, kinds, labels, bounds and words as upstream has them, and what is added where.

use super::*;
use crate::framework::{SharedPlugin, WorldChange};
use crate::plugins::{node_name, node_resources_fit, scheduling_gates, taint_toleration};
use crate::pod_info::PodInfo;
use coracle_api::exposition::Text;
use coracle_client::clock::{Clock, Instant};
use expect_test::{Expect, expect};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// From upstream's pkg/scheduler/metrics/metrics.go: kind, labels, and of a histogram how many
/// bounds there are, the first and the factor.
const UPSTREAM: &str = "
    cache_size gauge type
    framework_extension_point_duration_seconds histogram extension_point,profile,status 12*0.0001*2.0
    goroutines gauge operation
    inflight_events gauge event
    pending_pods gauge queue
    permit_wait_duration_seconds histogram result 15*0.001*2.0
    plugin_evaluation_total counter extension_point,plugin,profile
    plugin_execution_duration_seconds histogram extension_point,plugin,status 20*0.00001*1.5
    pod_scheduled_after_flush_total counter
    pod_scheduling_attempts histogram  5*1*2.0
    pod_scheduling_sli_duration_seconds histogram attempts 20*0.01*2.0
    preemption_attempts_total counter
    preemption_goroutines_duration_seconds histogram result 20*0.01*2.0
    preemption_goroutines_execution_total counter result
    preemption_victims histogram  7*1*2.0
    queue_incoming_pods_total counter event,queue
    resourceclaim_creates_total counter status
    schedule_attempts_total counter profile,result
    scheduling_algorithm_duration_seconds histogram  15*0.001*2.0
    scheduling_attempt_duration_seconds histogram profile,result 15*0.001*2.0
    unschedulable_pods gauge plugin,profile
";

fn profile() -> Profile {
    let plugins: Vec<(SharedPlugin, i64)> = vec![
        (Arc::new(scheduling_gates::SchedulingGates), 0),
        (Arc::new(node_name::NodeName), 0),
        (Arc::new(taint_toleration::TaintToleration), 3),
        (Arc::new(node_resources_fit::NodeResourcesFit::default()), 1),
    ];
    Profile::new("edge", plugins)
}

fn pod(name: &str, spec: Value) -> Arc<PodInfo> {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": spec,
    });
    pod["spec"]["schedulerName"] = "edge".into();
    pod["spec"]["containers"] = json!([]);
    let pod = serde_json::from_value(pod).unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

fn told(metrics: &Metrics) -> String {
    let mut text = Text::default();
    metrics.text(&mut text);
    text.into_string()
}

/// Something of everything.
async fn busy(metrics: &Arc<Metrics>) -> (Arc<Queue>, Arc<Mutex<Cache>>) {
    let profile = profile();
    let queue = Arc::new(Queue::new(profile.clone()));
    let cache: Arc<Mutex<Cache>> = Arc::default();
    metrics.watch(&queue, &cache);
    let counts = metrics.of(&profile);
    let now = Instant::now();
    for (name, spec) in [
        ("gated", json!({"schedulingGates": [{"name": "g"}]})),
        ("bound", json!({})),
        ("refused", json!({})),
        ("waits", json!({})),
    ] {
        queue.set(pod(name, spec), now);
    }
    let bound = queue.next().await;
    let refused = queue.next().await;
    let mut laps = Laps::new(Clock::starting_at(Timestamp::UNIX_EPOCH));
    laps.begin(4, true);
    let timing = laps.timing();
    for (stage, place) in [
        (Stage::PreFilter, 3),
        (Stage::Filter, 2),
        (Stage::Filter, 2),
    ] {
        timing.call((stage, place), || (), |()| Status::Success);
    }
    timing.point(Stage::PostFilter, || (), |()| Status::Unschedulable);
    let counting = Counting::new(metrics, &counts, now, true);
    counting.decided(&mut laps, Instant::now());
    counting.permitted(Status::Success, now, Instant::now());
    counting.scheduled(&bound, Instant::now());
    counting.ended(Ended::Unschedulable, Instant::now());
    metrics.claims_made.count(true);
    metrics.evicted(3, true, Duration::from_millis(30));
    cache.lock().assume(Arc::clone(&bound.pod), "n");
    queue.unschedulable(&refused, vec!["NodeResourcesFit"], now);
    queue.world_changed(WorldChange::PodGone(Arc::clone(&bound.pod)), now);
    (queue, cache)
}

/// `NAME KIND LABELS BOUNDS`, a family a line, without the prefix of all.
fn shape(text: &str) -> BTreeSet<String> {
    let mut shape = BTreeSet::new();
    for head in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = head.split_once(' ').unwrap();
        let sample = match kind {
            "histogram" => format!("{name}_bucket"),
            _ => name.to_owned(),
        };
        let starts = |line: &&str| {
            let rest = line.strip_prefix(&sample);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        let samples: Vec<&str> = text.lines().filter(starts).collect();
        let (first, bounds) = labels_of(samples.first().unwrap_or_else(|| panic!("{name}")));
        assert_eq!(bounds.is_some(), kind == "histogram");
        let of_first = |line: &&&str| labels_of(line).0 == first && !line.contains("+Inf");
        let bounds: Vec<f64> = samples
            .iter()
            .take_while(|line| !line.contains("+Inf"))
            .filter(of_first)
            .filter_map(|line| labels_of(line).1?.parse().ok())
            .collect();
        let name = name.strip_prefix("scheduler_").unwrap();
        let names: Vec<&str> = first.iter().map(|(label, _)| label.as_str()).collect();
        let mut line = format!("{name} {kind} {}", names.join(","));
        if let [one, two, ..] = bounds.as_slice() {
            line.push_str(&format!(" {}*{one}*{:.1}", bounds.len(), two / one));
        }
        shape.insert(line.trim_end().to_owned());
    }
    shape
}

/// Labels with their values, and the bound of a bucket.
fn labels_of(line: &str) -> (Vec<(String, String)>, Option<String>) {
    let Some((_, rest)) = line.split_once('{') else {
        return (Vec::new(), None);
    };
    let labels = rest.rsplit_once('}').unwrap().0;
    let mut labels: Vec<(String, String)> = labels
        .split(',')
        .map(|label| {
            let (name, value) = label.split_once('=').unwrap();
            (name.to_owned(), value.trim_matches('"').to_owned())
        })
        .collect();
    labels.sort();
    let bound = labels.iter().position(|(name, _)| name == "le");
    let bound = bound.map(|place| labels.remove(place).1);
    (labels, bound)
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
}

#[tokio::test(start_paused = true)]
async fn names_kinds_labels_and_bounds_are_upstreams() {
    let metrics = Arc::default();
    let _world = busy(&metrics).await;
    let upstream: BTreeSet<String> = UPSTREAM
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let ours = shape(&told(&metrics));
    let missing: Vec<_> = upstream.difference(&ours).collect();
    let own: Vec<_> = ours.difference(&upstream).collect();
    assert!(
        missing.is_empty() && own.is_empty(),
        "{missing:#?} {own:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_there_without_any_pod() {
    let metrics = Metrics::default();
    let helps = told(&metrics);
    let helps: Vec<&str> = helps
        .lines()
        .filter(|line| !line.contains("_bucket{") && !line.starts_with("# TYPE"))
        .collect();
    check(
        &helps.join("\n"),
        expect![[r##"
            # HELP scheduler_schedule_attempts_total Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.
            # HELP scheduler_scheduling_attempt_duration_seconds Scheduling attempt latency in seconds (scheduling algorithm + binding)
            # HELP scheduler_framework_extension_point_duration_seconds Latency for running all plugins of a specific extension point.
            # HELP scheduler_plugin_evaluation_total Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, PreScore, and Score).
            # HELP scheduler_plugin_execution_duration_seconds Duration for running a plugin at a specific extension point.
            # HELP scheduler_scheduling_algorithm_duration_seconds Scheduling algorithm latency in seconds
            scheduler_scheduling_algorithm_duration_seconds_sum 0
            scheduler_scheduling_algorithm_duration_seconds_count 0
            # HELP scheduler_pod_scheduling_attempts Number of attempts to successfully schedule a pod.
            scheduler_pod_scheduling_attempts_sum 0
            scheduler_pod_scheduling_attempts_count 0
            # HELP scheduler_pod_scheduling_sli_duration_seconds E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts.
            # HELP scheduler_pod_scheduled_after_flush_total Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.
            scheduler_pod_scheduled_after_flush_total 0
            # HELP scheduler_preemption_attempts_total Total preemption attempts in the cluster till now
            scheduler_preemption_attempts_total 0
            # HELP scheduler_preemption_victims Number of selected preemption victims
            scheduler_preemption_victims_sum 0
            scheduler_preemption_victims_count 0
            # HELP scheduler_preemption_goroutines_duration_seconds Duration in seconds for running goroutines for the preemption.
            # HELP scheduler_preemption_goroutines_execution_total Number of preemption goroutines executed.
            # HELP scheduler_permit_wait_duration_seconds Duration of waiting on permit.
            # HELP scheduler_goroutines Number of running goroutines split by the work they do such as binding.
            scheduler_goroutines{operation="binding"} 0
            # HELP scheduler_resourceclaim_creates_total Number of ResourceClaims creation requests within scheduler"##]],
    );
}

fn check(found: &str, expected: Expect) {
    expected.assert_eq(found);
}

#[tokio::test(start_paused = true)]
async fn each_figure_is_where_it_belongs() {
    let metrics = Arc::default();
    let _world = busy(&metrics).await;
    let text = told(&metrics);
    for line in [
        r#"schedule_attempts_total{profile="edge",result="scheduled"} 1"#,
        r#"schedule_attempts_total{profile="edge",result="unschedulable"} 1"#,
        r#"plugin_evaluation_total{extension_point="Filter",plugin="TaintToleration",profile="edge"} 2"#,
        r#"plugin_evaluation_total{extension_point="Filter",plugin="NodeName",profile="edge"} 0"#,
        r#"plugin_execution_duration_seconds_count{extension_point="Filter",plugin="TaintToleration",status="Success"} 2"#,
        r#"framework_extension_point_duration_seconds_count{extension_point="PostFilter",profile="edge",status="Unschedulable"} 1"#,
        r#"pod_scheduling_sli_duration_seconds_count{attempts="1"} 1"#,
        "pod_scheduling_attempts_sum 1",
        "preemption_attempts_total 1",
        "preemption_victims_sum 3",
        r#"preemption_goroutines_execution_total{result="success"} 1"#,
        r#"permit_wait_duration_seconds_count{result="Success"} 1"#,
        r#"pending_pods{queue="gated"} 1"#,
        r#"pending_pods{queue="active"} 1"#,
        r#"pending_pods{queue="backoff"} 1"#,
        r#"pending_pods{queue="unschedulable"} 0"#,
        r#"queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 3"#,
        r#"queue_incoming_pods_total{event="UnschedulablePodAdd",queue="unschedulable"} 1"#,
        r#"queue_incoming_pods_total{event="ScheduleAttemptFailure",queue="unschedulable"} 1"#,
        r#"queue_incoming_pods_total{event="AssignedPodDelete",queue="backoff"} 1"#,
        r#"unschedulable_pods{plugin="NodeResourcesFit",profile="edge"} 1"#,
        r#"unschedulable_pods{plugin="SchedulingGates",profile="edge"} 1"#,
        r#"inflight_events{event="PodPopped"} 1"#,
        r#"inflight_events{event="AssignedPodDelete"} 1"#,
        r#"cache_size{type="assumed_pods"} 1"#,
        r#"cache_size{type="pods"} 1"#,
        r#"goroutines{operation="binding"} 0"#,
    ] {
        has(&text, &format!("scheduler_{line}"));
    }
}

#[tokio::test(start_paused = true)]
async fn many_attempts_are_one_label_and_a_binding_counts_while_it_lasts() {
    let metrics: Arc<Metrics> = Arc::default();
    let counts = metrics.of(&profile());
    let now = Instant::now();
    let counting = Counting::new(&metrics, &counts, now, false);
    for number in [14, 15, 400] {
        let attempt = crate::queue::Attempt {
            pod: pod("p", json!({})),
            number,
            first_active: now,
            was_flushed: number == 15,
        };
        counting.scheduled(&attempt, now);
    }
    counting.plugin("NodeName", (Stage::Bind, Status::Success), now, now);
    let binding = metrics.binding();
    let text = told(&metrics);
    for line in [
        r#"pod_scheduling_sli_duration_seconds_count{attempts="14"} 1"#,
        r#"pod_scheduling_sli_duration_seconds_count{attempts="15+"} 2"#,
        "pod_scheduled_after_flush_total 1",
        r#"goroutines{operation="binding"} 1"#,
    ] {
        has(&text, &format!("scheduler_{line}"));
    }
    assert!(!text.contains("plugin_execution_duration_seconds_count"));
    drop(binding);
    has(
        &told(&metrics),
        r#"scheduler_goroutines{operation="binding"} 0"#,
    );
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_ended_shows_no_pods_and_one_that_begins_again_goes_on_counting() {
    let metrics: Arc<Metrics> = Arc::default();
    let world = busy(&metrics).await;
    drop(world);
    assert!(!told(&metrics).contains("scheduler_pending_pods"));
    let _world = busy(&metrics).await;
    let twice = r#"scheduler_schedule_attempts_total{profile="edge",result="scheduled"} 2"#;
    has(&told(&metrics), twice);
}
