//! Lets a pod in, or says why not. Asked once a pod, before anything of it is made.
//!
//! In upstream's order: what the node is short of, what it forbids, what does not fit, what it
//! cannot enforce. A critical pod that does not fit has others make place for it. Pods are looked
//! at one after the other, so that two never take the same room.

use super::evict::Eviction;
use super::fit::{self, NODE_AFFINITY, Reason, Share, Short};
use super::preempt::Victim;
use super::state::{Observed, Verdict, has_ended, spec};
use super::worker::Desired;
use super::{Handle, Shared, admission, asked, preempt};
use crate::pressure::{Condition, message};
use coracle_api::amounts::Amounts;
use coracle_api::pod_spec::resources::is_extended;
use coracle_client::events::{EventType, reference};
use coracle_client::toleration::tolerates;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::Api;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PREEMPTING: &str = "Preempting";
const PREEMPTED: &str = "Preempted in order to admit critical pod";
/// Least time that pods have to make place, as upstream has it; else half as long again as their
/// grace.
const PLACE_WAIT_MIN: Duration = Duration::from_secs(10);
/// Upstream's default of `terminationGracePeriodSeconds`.
const GRACE_SECONDS: i64 = 30;

impl Handle {
    /// Whether the pod has its share of the node.
    fn has_share(&self) -> bool {
        let desired = self.desired.borrow();
        // Deleted by force: the scheduler has given its room to others, and so does upstream's
        // kubelet, while its containers end.
        if desired.is_gone {
            return false;
        }
        let status = desired.pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        // After a start of the agent, one that ran before may not have been asked yet.
        (self.is_admitted || phase == Some("Running")) && !has_ended(&desired.pod)
    }
}

impl Shared {
    /// Why the pod is not run here, told in an event.
    pub(super) async fn admit(
        &self,
        uid: &str,
        desired: &Desired,
        observed: &Observed,
    ) -> Option<Verdict> {
        let pod = &desired.pod;
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let is_new = observed.sandboxes.is_empty() && matches!(phase, None | Some("Pending"));
        if !is_new || desired.is_gone || pod.metadata.deletion_timestamp.is_some() {
            self.let_in(uid);
            return None;
        }
        let mut verdict = self.refuse(uid, pod).await?;
        let message = verdict.message.clone();
        self.context
            .event(pod, EventType::Warning, &verdict.reason, message);
        verdict.message = format!("Pod was rejected: {}", verdict.message);
        Some(verdict)
    }

    async fn refuse(&self, uid: &str, pod: &Pod) -> Option<Verdict> {
        let rules = &self.context.confines.admission;
        let early = under_pressure(pod, &self.context.pressures.now());
        if let Some(verdict) = early.or_else(|| admission::refuse_sysctls(pod, rules)) {
            return Some(verdict);
        }
        if let Some(verdict) = self.fit(uid, pod).await {
            return Some(verdict);
        }
        let late = admission::refuse_app_armor(pod, rules);
        late.as_ref()?;
        if let Some(handle) = self.workers.lock().get_mut(uid) {
            handle.is_admitted = false;
        }
        late
    }

    fn let_in(&self, uid: &str) {
        if let Some(handle) = self.workers.lock().get_mut(uid) {
            handle.is_admitted = true;
        }
    }

    async fn fit(&self, uid: &str, pod: &Pod) -> Option<Verdict> {
        let name = &self.context.node_name;
        let key = coracle_client::ObjectKey::new("", name);
        let Some(node) = self.context.node.get(&key) else {
            // Deleted, and not made again yet: nothing to compare with.
            self.let_in(uid);
            return None;
        };
        let mut reasons = self.try_in(uid, pod, &node);
        let is_other_node = |reasons: &[Reason]| reasons.iter().all(|one| *one == NODE_AFFINITY);
        if !reasons.is_empty() && is_other_node(&reasons) {
            // Labels may have come this moment.
            let api: Api<Node> = Api::all(self.context.client.clone());
            if let Ok(node) = api.get(name).await {
                reasons = self.try_in(uid, pod, &node);
            }
        }
        let first = reasons.first()?;
        if !asked::is_critical(pod) {
            return Some(verdict(first));
        }
        let mut short = Vec::new();
        for reason in &reasons {
            match reason {
                Reason::Short(one) => short.push(one.clone()),
                other @ Reason::Predicate { .. } => return Some(verdict(other)),
            }
        }
        let failed = self.make_place(uid, pod, &short).await.err()?;
        Some(Verdict {
            reason: "UnexpectedAdmissionError".to_owned(),
            message: format!(
                "Unexpected error while attempting to recover from admission failure: preemption: \
                 error finding a set of pods to preempt: {failed}"
            ),
        })
    }

    /// Lets the pod in when nothing speaks against it.
    fn try_in(&self, uid: &str, pod: &Pod, node: &Node) -> Vec<Reason> {
        let allocatable = self.allocatable(node);
        let mut workers = self.workers.lock();
        let others = workers
            .iter()
            .filter(|(other, handle)| *other != uid && handle.has_share());
        let others: Vec<_> = others
            .map(|(uid, handle)| {
                let pod = &handle.desired.borrow().pod;
                Share::of(pod, self.held(uid, pod))
            })
            .collect();
        let reasons = fit::reasons(pod, &others, &allocatable, node);
        if let Some(handle) = workers.get_mut(uid).filter(|_| reasons.is_empty()) {
            handle.is_admitted = true;
        }
        reasons
    }

    fn held(&self, uid: &str, pod: &Pod) -> Amounts {
        asked::held(pod, self.context.ledger.given(uid))
    }

    /// The node's own, and what others have said that it has.
    fn allocatable(&self, node: &Node) -> Amounts {
        let mut all = self.context.allocatable.clone();
        let told = node.status.as_ref();
        let told = told.and_then(|status| status.allocatable.as_ref());
        let told = Amounts::of(&serde_json::to_value(told).unwrap_or_default());
        for (name, amount) in told.iter().filter(|(name, _)| is_extended(name)) {
            all.set(name, amount);
        }
        all
    }

    async fn make_place(&self, uid: &str, pod: &Pod, short: &[Short]) -> Result<(), String> {
        let victims = {
            let mut workers = self.workers.lock();
            let others = workers
                .iter()
                .filter(|(other, handle)| *other != uid && handle.has_share());
            let others = others.map(|(uid, handle)| {
                let pod = handle.desired.borrow().pod.clone();
                let requests = self.held(uid, &pod);
                Victim { pod, requests }
            });
            let victims = preempt::choose(pod, others.collect(), short)?;
            if let Some(handle) = workers.get_mut(uid) {
                handle.is_admitted = true;
            }
            victims
        };
        let wait = victims.iter().map(|victim| place_wait(victim)).max();
        let ending: Vec<_> = victims
            .iter()
            .filter_map(|victim| self.preempt(victim))
            .collect();
        let gone = futures::future::join_all(ending.iter().map(CancellationToken::cancelled));
        tokio::select! {
            _ = gone => {}
            () = tokio::time::sleep(wait.unwrap_or(PLACE_WAIT_MIN)) => {
                tracing::warn!("pods that make place for a critical one do not end");
            }
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }

    fn preempt(&self, victim: &Arc<Pod>) -> Option<CancellationToken> {
        let (recorder, type_) = (&self.context.recorder, EventType::Warning);
        recorder.event(&reference(victim.as_ref()), type_, PREEMPTING, PREEMPTED);
        let disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";
        let eviction = Eviction {
            reason: PREEMPTING.to_owned(),
            message: PREEMPTED.to_owned(),
            grace_seconds: None,
            disruption: Some(disruption.to_owned()),
            done: CancellationToken::new(),
        };
        self.evict(victim, eviction)
    }
}

fn place_wait(victim: &Pod) -> Duration {
    let grace = spec(victim).termination_grace_period_seconds;
    let grace = u64::try_from(grace.unwrap_or(GRACE_SECONDS)).unwrap_or(0);
    PLACE_WAIT_MIN.max(Duration::from_secs(grace + grace / 2))
}

fn verdict(reason: &Reason) -> Verdict {
    Verdict {
        reason: reason.reason(),
        message: reason.message(),
    }
}

/// A node that is short of something takes critical pods alone. Short of memory, it takes those
/// that have a claim on memory, too, and those that say that they can do without.
fn under_pressure(pod: &Pod, conditions: &BTreeSet<Condition>) -> Option<Verdict> {
    if conditions.is_empty() || asked::is_critical(pod) {
        return None;
    }
    let is_memory_alone = conditions.iter().eq([&Condition::Memory]);
    if is_memory_alone && (asked::class(pod) != "BestEffort" || bears_memory_pressure(pod)) {
        return None;
    }
    Some(Verdict {
        reason: message::EVICTED.to_owned(),
        message: message::refused(conditions),
    })
}

fn bears_memory_pressure(pod: &Pod) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    let mut tolerations = spec(pod).tolerations.iter().flatten();
    tolerations.any(|toleration| tolerates(toleration, &taint))
}

#[cfg(test)]
mod tests;
