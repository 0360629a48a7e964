//! The node's conditions. Pure but for the measures that are given.

use super::facts::Disk;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Below this much memory the node takes no more pods: upstream's hard eviction threshold.
const MEMORY_AVAILABLE_BYTES_MIN: i64 = 100 << 20;
/// Half of upstream's threshold, as other distributions for the edge have it: a tenth of a disk
/// that holds other things too is not yet distress. Of the files a twentieth, as upstream.
const DISK_FREE_PERCENT_MIN: i64 = 5;
const FILES_FREE_PERCENT_MIN: i64 = 5;
/// Upstream has none by default; a node with so few free process ids is in trouble.
const PROCESS_IDS_FREE_PERCENT_MIN: i64 = 5;

#[derive(Clone, Copy, Debug)]
pub struct Measures {
    pub disk: Option<Disk>,
    pub available_memory_bytes: Option<i64>,
    pub process_count: Option<i64>,
    pub process_ids_max: i64,
    pub has_network: bool,
}

/// The conditions now; what did not change keeps its transition time. Conditions of others stay.
pub fn make(measures: &Measures, old: &[NodeCondition], now: Timestamp) -> Vec<NodeCondition> {
    let memory_is_low = measures
        .available_memory_bytes
        .is_some_and(|bytes| bytes < MEMORY_AVAILABLE_BYTES_MIN);
    let disk_is_low = measures.disk.is_some_and(|disk| {
        let below = |free: i64, total: i64, percent: i64| {
            total > 0 && i128::from(free) * 100 < i128::from(total) * i128::from(percent)
        };
        below(disk.free_bytes, disk.total_bytes, DISK_FREE_PERCENT_MIN)
            || below(disk.free_files, disk.files, FILES_FREE_PERCENT_MIN)
    });
    let ids_are_low = measures.process_count.is_some_and(|count| {
        let free = measures.process_ids_max - count;
        measures.process_ids_max > 0
            && free * 100 < measures.process_ids_max * PROCESS_IDS_FREE_PERCENT_MIN
    });
    // The names and words of no pressure, then of pressure.
    let pressure = |type_: &str, holds: bool, names: [&str; 2], words: [&str; 2]| {
        let at = usize::from(holds);
        let reason = format!("KubeletHas{}", names[at]);
        let message = format!("kubelet has {}", words[at]);
        (type_.to_owned(), holds, reason, message)
    };
    let made = [
        pressure(
            "MemoryPressure",
            memory_is_low,
            ["SufficientMemory", "InsufficientMemory"],
            [
                "sufficient memory available",
                "insufficient memory available",
            ],
        ),
        pressure(
            "DiskPressure",
            disk_is_low,
            ["NoDiskPressure", "DiskPressure"],
            ["no disk pressure", "disk pressure"],
        ),
        pressure(
            "PIDPressure",
            ids_are_low,
            ["SufficientPID", "InsufficientPID"],
            ["sufficient PID available", "insufficient PID available"],
        ),
        ready(measures.has_network),
    ];
    let is_ours = |condition: &NodeCondition| made.iter().any(|made| made.0 == condition.type_);
    let others = old.iter().filter(|condition| !is_ours(condition)).cloned();
    let mut all: Vec<_> = others.collect();
    all.extend(made.iter().map(|made| condition(made, old, now)));
    all
}

type Made = (String, bool, String, String);

fn ready(has_network: bool) -> Made {
    let (reason, message) = if has_network {
        ("KubeletReady", "kubelet is posting ready status")
    } else {
        ("KubeletNotReady", super::NETWORK_NOT_READY)
    };
    (
        "Ready".to_owned(),
        has_network,
        reason.to_owned(),
        message.to_owned(),
    )
}

fn condition(made: &Made, old: &[NodeCondition], now: Timestamp) -> NodeCondition {
    let (type_, holds, reason, message) = made;
    let status = if *holds { "True" } else { "False" };
    let before = old.iter().find(|condition| &condition.type_ == type_);
    let since = before
        .filter(|before| before.status == status)
        .and_then(|before| before.last_transition_time.clone());
    NodeCondition {
        type_: type_.clone(),
        status: status.to_owned(),
        reason: Some(reason.clone()),
        message: Some(message.clone()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(since.unwrap_or(Time(now))),
    }
}

#[cfg(test)]
mod tests;
