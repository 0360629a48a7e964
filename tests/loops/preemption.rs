//! Important pods come to a site that is full: others make room, as few as will do, and at no moment
//! is there more on a node than it holds.

use crate::site::Site;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NODE_CPUS: u32 = 4;

fn pod(name: &str, class: &str, cpus: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"class": class}},
        "spec": {
            "priorityClassName": class,
            "containers": [{"name": "main", "image": "i",
                            "resources": {"requests": {"cpu": cpus.to_string()}}}],
        },
    })
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn is(pod: &Pod, class: &str) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.get("class").is_some_and(|it| it == class))
}

/// What holds at every moment; the pods.
fn looked_at(site: &Site) -> Vec<Pod> {
    let pods = site.pods("default");
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    for pod in &pods {
        let name = pod.metadata.name.as_deref().expect("a name");
        assert!(
            is(pod, "low") || pod.metadata.deletion_timestamp.is_none(),
            "{name} had to go"
        );
        if let Some(node) = node_of(pod) {
            *used.entry(node).or_default() += if is(pod, "low") { 1 } else { 2 };
        }
    }
    assert!(used.values().all(|used| *used <= NODE_CPUS), "{used:?}");
    pods
}

/// Until as many pods of each class are on nodes, and no other waits or is there.
fn placed(site: &mut Site, low: usize, high: usize) {
    site.until("the pods to be placed", |site| {
        let pods = looked_at(site);
        let on_nodes = |class: &str| {
            let placed = pods
                .iter()
                .filter(|pod| is(pod, class) && node_of(pod).is_some());
            placed.count()
        };
        let found = (on_nodes("low"), on_nodes("high"), pods.len());
        match found == (low, high, low + high) {
            true => Ok(()),
            false => Err(format!("{found:?}")),
        }
    });
}

pub fn run(seed: u64) {
    let mut site = Site::new(seed);
    // The service account of pods is of the loops.
    site.live();
    let create = |site: &Site, pod: Value| {
        let pods: Api<Pod> = Api::namespaced(site.admin.clone(), "default");
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let created = site.block_on(pods.create(&PostParams::default(), &pod));
        created.map(|_| ()).map_err(|error| error.to_string())
    };
    let classes: Api<PriorityClass> = Api::all(site.admin.clone());
    for (name, value) in [("low", 1), ("high", 1000)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        let class = serde_json::from_value(class).expect("a class");
        let created = site.block_on(classes.create(&PostParams::default(), &class));
        created.expect("a class");
    }
    site.until("pods to be let in", |site| {
        create(site, pod("low-0", "low", 1))
    });
    for number in 1..8 {
        create(&site, pod(&format!("low-{number}"), "low", 1)).expect("a pod");
    }
    placed(&mut site, 8, 0);

    for number in 0..3 {
        create(&site, pod(&format!("high-{number}"), "high", 2)).expect("a pod");
    }
    placed(&mut site, 2, 3);
    for pod in looked_at(&site) {
        let nominated = pod.status.and_then(|status| status.nominated_node_name);
        assert_eq!(nominated, None, "it is there");
    }
    // What is seen of a binding is counted a moment later.
    site.until("all that was decided to be counted", counted);
}

/// Eight and three are bound, after three made room for twice two. Who was on its way when it
/// happened was called off, and is bound once more.
fn counted(site: &Site) -> Result<(), String> {
    let ended = |result: &str| {
        let labels = format!(r#"profile="default-scheduler",result="{result}""#);
        site.metric(&format!("scheduler_schedule_attempts_total{{{labels}}}"))
    };
    let (scheduled, unschedulable) = (ended("scheduled"), ended("unschedulable"));
    let bound = site.metric("scheduler_pod_scheduling_attempts_count");
    if scheduled != bound || bound < 11.0 || unschedulable < 3.0 {
        return Err(format!("{scheduled} {bound} {unschedulable}"));
    }
    for (sample, least) in [
        ("scheduler_preemption_attempts_total", 3.0),
        ("scheduler_preemption_victims_sum", 6.0),
        (
            r#"scheduler_preemption_goroutines_execution_total{result="success"}"#,
            3.0,
        ),
        (r#"scheduler_cache_size{type="nodes"}"#, 2.0),
        (r#"scheduler_cache_size{type="pods"}"#, 5.0),
        (
            r#"scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"}"#,
            11.0,
        ),
    ] {
        let found = site.metric(sample);
        if found < least {
            return Err(format!("{sample} {found}"));
        }
    }
    match site.metric(r#"scheduler_pending_pods{queue="active"}"#) {
        0.0 => Ok(()),
        active => Err(format!("{active} are active")),
    }
}
