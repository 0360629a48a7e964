//! How many pods a metric asks for. Pure; upstream's arithmetic.
//!
//! Pods that are not ready, or tell nothing, are taken for idle when pods are to be added, and for
//! busy when some are to go: what is not known never makes a change bigger, and never turns it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::metrics::{PodMetric, PodMetrics};
use super::requests::{self, Requests};
use crate::pods;

/// After its start a pod's use of CPU says little.
const CPU_INITIALIZATION: Duration = Duration::from_secs(5 * 60);
/// A pod that was unready by then and ever since was never ready.
const INITIAL_READINESS_DELAY: Duration = Duration::from_secs(30);
/// How far from the target nothing is done.
const TOLERANCE: f64 = 0.1;
const CPU: &str = "cpu";
const NO_PODS: &str = "no pods returned by selector while calculating replica count";
const NO_METRICS: &str = "did not receive metrics for targeted pods (pods might be unready)";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerances {
    pub down: f64,
    pub up: f64,
}

impl Default for Tolerances {
    fn default() -> Self {
        Self {
            down: TOLERANCE,
            up: TOLERANCE,
        }
    }
}

impl Tolerances {
    fn bear(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

/// What every calculation looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    /// Those that are selected.
    pub pods: &'a [Arc<Pod>],
    /// What the target asks for.
    pub spec_replicas: i32,
    /// What the target has.
    pub status_replicas: i32,
    pub tolerances: Tolerances,
    pub now: Timestamp,
}

/// Replicas, and what was measured: in thousandths, and where a request is known in percent of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub replicas: i32,
    pub milli: i64,
    pub percent: i32,
}

/// Pods by what their metrics are worth.
#[derive(Debug, Default)]
struct Groups {
    ready: usize,
    unready: Vec<String>,
    missing: Vec<String>,
    ignored: Vec<String>,
}

/// From the share of its request that each pod uses.
pub(super) fn utilization(
    situation: Situation<'_>,
    mut metrics: PodMetrics,
    target: i32,
    resource: &str,
    container: Option<&str>,
) -> Result<Answer, String> {
    let groups = counted(situation, &mut metrics, resource)?;
    let requests = requests::of(situation.pods, container, resource)?;
    let (ratio, percent, milli) = used_of(&metrics, &requests, target)?;
    let answer = |replicas| Answer {
        replicas,
        milli,
        percent,
    };
    if let Some(replicas) = certain(situation, &groups, ratio) {
        return Ok(answer(replicas));
    }
    // All of what it asked for, or what is aimed at where that is more.
    let busy = |name: &str| {
        let request = requests.get(name).copied().unwrap_or(0);
        request.saturating_mul(i64::from(target.max(100))) / 100
    };
    fill_in(&mut metrics, &groups, ratio, busy);
    let (new_ratio, ..) = used_of(&metrics, &requests, target)?;
    Ok(answer(cautious(situation, ratio, new_ratio, metrics.len())))
}

/// From what each pod uses, or a metric of it.
pub(super) fn average(
    situation: Situation<'_>,
    mut metrics: PodMetrics,
    target_milli: i64,
    resource: &str,
) -> Result<Answer, String> {
    let groups = counted(situation, &mut metrics, resource)?;
    let (ratio, milli) = used(&metrics, target_milli);
    let answer = |replicas| Answer {
        replicas,
        milli,
        percent: 0,
    };
    if let Some(replicas) = certain(situation, &groups, ratio) {
        return Ok(answer(replicas));
    }
    fill_in(&mut metrics, &groups, ratio, |_| target_milli);
    let (new_ratio, _) = used(&metrics, target_milli);
    Ok(answer(cautious(situation, ratio, new_ratio, metrics.len())))
}

/// From one value that the pods share the work of.
pub(super) fn value(
    situation: Situation<'_>,
    milli: i64,
    target_milli: i64,
) -> Result<Answer, String> {
    let ratio = milli as f64 / target_milli as f64;
    let replicas = match situation.spec_replicas {
        0 => ratio.ceil() as i32,
        current if situation.tolerances.bear(ratio) => current,
        _ => {
            let ready = ready(situation.pods)
                .map_err(|why| format!("unable to calculate ready pods: {why}"))?;
            (ratio * ready as f64).ceil() as i32
        }
    };
    Ok(Answer {
        replicas,
        milli,
        percent: 0,
    })
}

/// From one value that is divided among the pods there are.
pub(super) fn value_per_pod(situation: Situation<'_>, milli: i64, target_milli: i64) -> Answer {
    let (has, total) = (situation.status_replicas, milli as f64);
    let ratio = total / (target_milli as f64 * f64::from(has));
    let replicas = match situation.tolerances.bear(ratio) {
        true => has,
        false => (total / target_milli as f64).ceil() as i32,
    };
    let milli = match milli {
        i64::MAX => milli,
        _ => (total / f64::from(has)).ceil() as i64,
    };
    Answer {
        replicas,
        milli,
        percent: 0,
    }
}

fn ready(pods: &[Arc<Pod>]) -> Result<usize, &'static str> {
    if pods.is_empty() {
        return Err(NO_PODS);
    }
    let is_ready = |pod: &&Arc<Pod>| pods::phase(pod) == "Running" && pods::is_ready(pod);
    Ok(pods.iter().filter(is_ready).count())
}

/// Leaves the metrics of those that count.
fn counted(
    situation: Situation<'_>,
    metrics: &mut PodMetrics,
    resource: &str,
) -> Result<Groups, String> {
    if situation.pods.is_empty() {
        return Err(NO_PODS.to_owned());
    }
    let groups = group(situation, metrics, resource);
    for name in groups.ignored.iter().chain(&groups.unready) {
        metrics.remove(name);
    }
    if metrics.is_empty() {
        return Err(NO_METRICS.to_owned());
    }
    Ok(groups)
}

fn group(situation: Situation<'_>, metrics: &PodMetrics, resource: &str) -> Groups {
    let mut groups = Groups::default();
    for pod in situation.pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if pods::is_deleting(pod) || pods::phase(pod) == "Failed" {
            groups.ignored.push(name);
            continue;
        }
        if pods::phase(pod) == "Pending" {
            groups.unready.push(name);
            continue;
        }
        match metrics.get(&name) {
            None => groups.missing.push(name),
            Some(metric) if resource == CPU && is_warming_up(pod, metric, situation.now) => {
                groups.unready.push(name);
            }
            Some(_) => groups.ready += 1,
        }
    }
    groups
}

/// What it uses of CPU now is of its start.
fn is_warming_up(pod: &Pod, metric: &PodMetric, now: Timestamp) -> bool {
    let started = pod
        .status
        .as_ref()
        .and_then(|status| status.start_time.as_ref());
    let (Some(ready), Some(started)) = (pods::condition(pod, "Ready"), started) else {
        return true;
    };
    let is_unready = ready.status == "False";
    let changed = ready.last_transition_time.as_ref();
    let changed = changed.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let later = |time: Timestamp, by: Duration| time.saturating_add(by).unwrap_or(Timestamp::MAX);
    if later(started.0, CPU_INITIALIZATION) > now {
        is_unready || metric.at < later(changed, metric.window)
    } else {
        is_unready && later(started.0, INITIAL_READINESS_DELAY) > changed
    }
}

/// The answer, where no pod is in doubt.
fn certain(situation: Situation<'_>, groups: &Groups, ratio: f64) -> Option<i32> {
    let grows_with_unready = !groups.unready.is_empty() && ratio > 1.0;
    if grows_with_unready || !groups.missing.is_empty() {
        return None;
    }
    if situation.tolerances.bear(ratio) {
        return Some(situation.spec_replicas);
    }
    Some((ratio * groups.ready as f64).ceil() as i32)
}

/// Takes pods in doubt for what keeps the change small.
fn fill_in(metrics: &mut PodMetrics, groups: &Groups, ratio: f64, busy: impl Fn(&str) -> i64) {
    let mut put = |name: &String, milli| {
        let metric = PodMetric {
            at: Timestamp::UNIX_EPOCH,
            window: Duration::ZERO,
            milli,
        };
        metrics.insert(name.clone(), metric);
    };
    for name in &groups.missing {
        if ratio < 1.0 {
            put(name, busy(name));
        } else if ratio > 1.0 {
            put(name, 0);
        }
    }
    if ratio > 1.0 {
        for name in &groups.unready {
            put(name, 0);
        }
    }
}

/// The answer with pods in doubt filled in, unless it would go the other way then.
fn cautious(situation: Situation<'_>, ratio: f64, new_ratio: f64, pods: usize) -> i32 {
    let current = situation.spec_replicas;
    let turns = (ratio < 1.0 && new_ratio > 1.0) || (ratio > 1.0 && new_ratio < 1.0);
    if situation.tolerances.bear(new_ratio) || turns {
        return current;
    }
    let replicas = (new_ratio * pods as f64).ceil() as i32;
    if (new_ratio < 1.0 && replicas > current) || (new_ratio > 1.0 && replicas < current) {
        return current;
    }
    replicas
}

/// The ratio to the target, the share of what was asked for in percent, and the average.
fn used_of(
    metrics: &PodMetrics,
    requests: &Requests,
    target: i32,
) -> Result<(f64, i32, i64), String> {
    let (mut used, mut asked, mut count) = (0_i64, 0_i64, 0_i64);
    for (name, metric) in metrics {
        if let Some(request) = requests.get(name) {
            used = used.saturating_add(metric.milli);
            asked = asked.saturating_add(*request);
            count += 1;
        }
    }
    if asked == 0 {
        return Err("no metrics returned matched known pods".to_owned());
    }
    let percent = used.saturating_mul(100) / asked;
    let percent = i32::try_from(percent).unwrap_or(i32::MAX);
    let ratio = f64::from(percent) / f64::from(target);
    Ok((ratio, percent, used / count))
}

/// The ratio to the target, and the average.
fn used(metrics: &PodMetrics, target_milli: i64) -> (f64, i64) {
    let total = metrics
        .values()
        .fold(0_i64, |sum, one| sum.saturating_add(one.milli));
    let count = i64::try_from(metrics.len()).unwrap_or(i64::MAX).max(1);
    let average = total / count;
    (average as f64 / target_milli as f64, average)
}

#[cfg(test)]
mod tests;
