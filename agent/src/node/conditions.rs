//! The node's conditions. Pure.

use crate::pressure::Condition;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub struct Measures {
    pub pressures: BTreeSet<Condition>,
    /// Why it is not ready.
    pub problem: Option<String>,
}

/// The conditions now; what did not change keeps its transition time. Conditions of others stay.
pub fn make(measures: &Measures, old: &[NodeCondition], now: Timestamp) -> Vec<NodeCondition> {
    let has = |condition: Condition| measures.pressures.contains(&condition);
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
            has(Condition::Memory),
            ["SufficientMemory", "InsufficientMemory"],
            [
                "sufficient memory available",
                "insufficient memory available",
            ],
        ),
        pressure(
            "DiskPressure",
            has(Condition::Disk),
            ["NoDiskPressure", "DiskPressure"],
            ["no disk pressure", "disk pressure"],
        ),
        pressure(
            "PIDPressure",
            has(Condition::Pid),
            ["SufficientPID", "InsufficientPID"],
            ["sufficient PID available", "insufficient PID available"],
        ),
        ready(measures.problem.as_deref()),
    ];
    let is_ours = |condition: &NodeCondition| made.iter().any(|made| made.0 == condition.type_);
    let others = old.iter().filter(|condition| !is_ours(condition)).cloned();
    let mut all: Vec<_> = others.collect();
    all.extend(made.iter().map(|made| condition(made, old, now)));
    all
}

type Made = (String, bool, String, String);

fn ready(problem: Option<&str>) -> Made {
    let (reason, message) = match problem {
        None => ("KubeletReady", "kubelet is posting ready status"),
        Some(problem) => ("KubeletNotReady", problem),
    };
    (
        "Ready".to_owned(),
        problem.is_none(),
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
