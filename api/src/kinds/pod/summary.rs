//! One word for the state of a pod, as `kubectl get pods` has it: `Running`, `Init:0/1`,
//! `CrashLoopBackOff`, `Terminating`.

use crate::json;
use crate::object::Object;
use crate::pod_spec::resources::is_sidecar;
use crate::print;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub reason: String,
    pub ready: usize,
    pub total: usize,
    pub restarts: i64,
    /// When a container last ended before it was restarted, RFC 3339.
    pub last_restart: Option<String>,
}

pub fn of(pod: &Object) -> Summary {
    let mut summary = Summary {
        reason: phase_or_reason(pod),
        ..Summary::default()
    };
    let sidecars = pod.list(&["spec", "initContainers"]).iter();
    let sidecars = sidecars.filter(|container| is_sidecar(container)).count();
    summary.total = pod.list(&["spec", "containers"]).len() + sidecars;

    let (initializing, of_sidecars) = init_containers(pod, &mut summary);
    if !initializing || condition(pod, "Initialized") == Some("True") {
        summary.restarts = of_sidecars.restarts;
        summary.last_restart = of_sidecars.last_restart;
        main_containers(pod, &mut summary);
    }
    if pod.is_deleting() {
        if pod.str(&["status", "reason"]) == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !matches!(pod.str(&["status", "phase"]), "Failed" | "Succeeded") {
            summary.reason = "Terminating".to_owned();
        }
    }
    summary
}

fn phase_or_reason(pod: &Object) -> String {
    let gated = pod.list(&["status", "conditions"]).iter().any(|condition| {
        json::text(condition, "type") == "PodScheduled"
            && json::text(condition, "reason") == "SchedulingGated"
    });
    if gated {
        return "SchedulingGated".to_owned();
    }
    match pod.str(&["status", "reason"]) {
        "" => pod.str(&["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

fn condition<'a>(pod: &'a Object, kind: &str) -> Option<&'a str> {
    pod.list(&["status", "conditions"])
        .iter()
        .find(|condition| json::text(condition, "type") == kind)
        .map(|condition| json::text(condition, "status"))
}

#[derive(Default)]
struct Restarts {
    restarts: i64,
    last_restart: Option<String>,
}

impl Restarts {
    fn count(&mut self, status: &Value) {
        self.restarts += json::int(status, "restartCount").unwrap_or(0);
        keep_latest(&mut self.last_restart, status);
    }
}

fn keep_latest(latest: &mut Option<String>, status: &Value) {
    let ended = json::at(status, &["lastState", "terminated", "finishedAt"]);
    let Some(ended) = ended.as_str().filter(|time| !time.is_empty()) else {
        return;
    };
    let newer = latest
        .as_ref()
        .is_none_or(|time| print::epoch_seconds(time) < print::epoch_seconds(ended));
    if newer {
        *latest = Some(ended.to_owned());
    }
}

/// Goes through the init containers up to the first that is not done. Returns whether there is
/// one, and the restarts of the sidecars.
fn init_containers(pod: &Object, summary: &mut Summary) -> (bool, Restarts) {
    let specs = pod.list(&["spec", "initContainers"]);
    let mut all = Restarts::default();
    let mut of_sidecars = Restarts::default();
    let mut initializing = false;
    for (index, status) in pod
        .list(&["status", "initContainerStatuses"])
        .iter()
        .enumerate()
    {
        all.count(status);
        let name = json::text(status, "name");
        let sidecar = specs
            .iter()
            .any(|spec| json::text(spec, "name") == name && is_sidecar(spec));
        if sidecar {
            of_sidecars.count(status);
        }
        let terminated = json::some(json::get(status, "state"), "terminated");
        if terminated.is_some_and(|end| json::int(end, "exitCode").unwrap_or(0) == 0) {
            continue;
        }
        if sidecar && json::flag(status, "started") {
            summary.ready += usize::from(json::flag(status, "ready"));
            continue;
        }
        let waiting = json::text(json::at(status, &["state", "waiting"]), "reason");
        summary.reason = match (terminated, waiting) {
            (Some(end), _) => format!("Init:{}", end_reason(end)),
            (None, "" | "PodInitializing") => format!("Init:{index}/{}", specs.len()),
            (None, reason) => format!("Init:{reason}"),
        };
        initializing = true;
        break;
    }
    summary.restarts = all.restarts;
    summary.last_restart = all.last_restart;
    (initializing, of_sidecars)
}

/// The reason of an end, or its signal, or its exit code.
fn end_reason(terminated: &Value) -> String {
    let reason = json::text(terminated, "reason");
    match json::int(terminated, "signal").unwrap_or(0) {
        _ if !reason.is_empty() => reason.to_owned(),
        0 => format!(
            "ExitCode:{}",
            json::int(terminated, "exitCode").unwrap_or(0)
        ),
        signal => format!("Signal:{signal}"),
    }
}

fn main_containers(pod: &Object, summary: &mut Summary) {
    let mut has_running = false;
    let mut error_reason = String::new();
    for status in pod.list(&["status", "containerStatuses"]).iter().rev() {
        summary.restarts += json::int(status, "restartCount").unwrap_or(0);
        keep_latest(&mut summary.last_restart, status);
        let state = json::get(status, "state");
        let waiting = json::text(json::get(state, "waiting"), "reason");
        if !waiting.is_empty() {
            summary.reason = waiting.to_owned();
        } else if let Some(end) = json::some(state, "terminated") {
            summary.reason = end_reason(end);
            if json::int(end, "exitCode").unwrap_or(0) != 0 {
                error_reason.clone_from(&summary.reason);
            }
        } else if json::flag(status, "ready") && json::has(state, "running") {
            has_running = true;
            summary.ready += 1;
        }
    }
    // A pod with one container left running is no completed pod.
    if summary.reason == "Completed" {
        if has_running && condition(pod, "Ready") == Some("True") {
            summary.reason = "Running".to_owned();
        } else if !error_reason.is_empty() {
            summary.reason = error_reason;
        } else if has_running {
            summary.reason = "NotReady".to_owned();
        }
    }
}
