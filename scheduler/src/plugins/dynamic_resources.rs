//! A pod gets only a node on which its claims have, or can get, devices.
//!
//! PreFilter: all claims are there, and their classes. Filter: allocated claims reach the node, and
//! for the others the allocator finds devices of the node's ResourceSlices. Reserve gives the claims
//! what was found, ahead of the API; PreBind writes it down, and waits for drivers that must make
//! devices ready first. Extended resources that a class of devices stands behind become a claim of
//! their own, which PreBind makes. For pods with neither nothing is done.

use crate::cache::Snapshot;
use crate::devices::allocation;
use crate::framework::{
    Plugin, Point, Points, PreFilter, Reason, Release, Remedy, Slot, StepError, Unfit, Verdict,
    WorldChange, normalize_to_max,
};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::views::Views;
use coracle_client::Client;
use coracle_client::clock::{Clock, Instant};
use coracle_client::key_of;
use futures::future::BoxFuture;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

mod allocator; // Which devices the claims of a pod get on one node. Pure.
mod claims; // Which claims a pod has. Pure.
mod expressions; // What classes and claims say of devices.
mod extended; // Extended resources as claims. Pure.
mod making; // Writes the claim that is made for them, and takes it away.
mod offer; // How many devices there are of an extended resource, for scores. Pure.
mod readiness; // Whether devices are made ready. Pure.
mod requests; // What containers ask for as requests of a claim. Pure.
mod settle; // Waits until they are.
mod task; // What a pod's claims need. Pure. Start reading here.
mod write; // Writes what was decided.

use allocator::Tools;
use expressions::Expressions;
use extended::Special;
pub use making::ClaimsMade;
pub use offer::{Offer, Offers};
use readiness::Readiness;
use task::Task;
use write::Writer;
pub use write::release;

const NAME: &str = "DynamicResources";

/// Upstream's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    /// How long devices are looked for on one node; none where it is zero.
    pub filter_timeout: Duration,
    /// How long drivers may take to make devices ready.
    pub binding_timeout: Duration,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            filter_timeout: Duration::from_secs(10),
            binding_timeout: Duration::from_secs(600),
        }
    }
}

pub struct DynamicResources {
    writer: Writer,
    args: Args,
    expressions: Expressions,
    /// Of the cycle at hand: Reserve and scores follow their filters.
    last: Mutex<Option<Arc<Task>>>,
    /// Of pods on their way to a node, by uid.
    reserved: Mutex<HashMap<String, Reserved>>,
}

/// The claims of a pod, each with what is new to it.
#[derive(Clone, Debug, Default)]
struct Reserved {
    claims: Vec<(Arc<ResourceClaim>, Option<Arc<AllocationResult>>)>,
    made: Option<Made>,
}

/// The claim for the pod's extended resources.
#[derive(Clone, Debug)]
struct Made {
    special: Special,
    gets: Arc<AllocationResult>,
    /// As the API last answered, once it has it.
    written: Option<Arc<ResourceClaim>>,
}

impl Made {
    /// By which its devices are kept from others.
    fn uid(&self) -> &str {
        claims::uid(self.written.as_ref().unwrap_or(&self.special.claim))
    }
}

impl fmt::Debug for DynamicResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl DynamicResources {
    pub fn new(client: Client, views: &Views, clock: Clock, args: Args) -> Self {
        Self {
            writer: Writer {
                client,
                clock,
                devices: Arc::clone(&views.devices),
                made: Arc::clone(&views.claims_made),
            },
            args,
            expressions: Expressions::default(),
            last: Mutex::default(),
            reserved: Mutex::default(),
        }
    }

    fn last(&self, pod: &PodInfo) -> Option<Arc<Task>> {
        let last = self.last.lock();
        last.as_ref()
            .filter(|task| task.pod_uid == pod.uid)
            .cloned()
    }

    /// Whether the devices of an allocated claim can still be made ready.
    fn is_usable(&self, claim: &ResourceClaim) -> bool {
        match readiness::of(claim) {
            Readiness::Ready => true,
            Readiness::Failed(_) => false,
            Readiness::Waiting => {
                let now = self.writer.clock.now();
                !readiness::is_over(claim, self.args.binding_timeout, now)
            }
        }
    }

    /// Whether PreFilter ended before it came to this plugin.
    fn was_not_asked(unfit: &Unfit<'_>) -> bool {
        let place = |name: &str| {
            let mut plugins = unfit.filters.profile.at(Point::PreFilter);
            plugins.position(|(_, plugin)| plugin.name() == name)
        };
        unfit.refused_by.is_some_and(|by| place(by) < place(NAME))
    }
}

/// Whether a pod can be any of this plugin's business.
fn concerns(pod: &PodInfo) -> bool {
    claims::are_used_by(pod) || !pod.requests.scalars.is_empty()
}

/// A uid that nothing else has: of shares, and of claims that the API has not.
fn random_uid() -> String {
    let random: u128 = rand::random();
    let version = random & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let hex = format!("{version:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points {
            pre_filter: true,
            filter: true,
            post_filter: true,
            score: true,
        }
    }

    fn pre_enqueue(&self, pod: &PodInfo) -> bool {
        !claims::are_used_by(pod) || claims::of_pod(pod, &self.writer.devices.lock()).is_ok()
    }

    fn pre_filter(&self, pod: &PodInfo, _world: &Snapshot, slot: &mut Slot) -> PreFilter {
        *self.last.lock() = None;
        if !concerns(pod) {
            return PreFilter::Skip;
        }
        let devices = self.writer.devices.lock();
        let task = Task::of(pod, &devices, &self.expressions, random_uid);
        drop(devices);
        match task {
            Ok(None) => PreFilter::Skip,
            Ok(Some(task)) => {
                let task = Arc::new(task);
                *self.last.lock() = Some(Arc::clone(&task));
                slot.set(task);
                PreFilter::Filter
            }
            Err(why) => PreFilter::Refuse(Verdict::Unresolvable(Reason::Told(why.into()))),
        }
    }

    fn filter(&self, _pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let Some(task) = slot.get::<Arc<Task>>() else {
            return Verdict::Fit;
        };
        let max = self.args.filter_timeout;
        let end = (!max.is_zero()).then(|| Instant::now() + max);
        let tools = Tools {
            share_id: &random_uid,
            is_late: &|| end.is_some_and(|end| Instant::now() >= end),
        };
        task.decide(node, tools, |claim| self.is_usable(claim))
    }

    fn post_filter(&self, unfit: &Unfit<'_>) -> Remedy {
        let says = |message: &str| Remedy {
            message: message.to_owned(),
            ..Remedy::default()
        };
        if Self::was_not_asked(unfit) {
            // In upstream's words: it finds nothing of PreFilter's, and PostFilter ends there.
            return Remedy {
                is_final: true,
                ..says("not found")
            };
        }
        let pod = unfit.filters.pod;
        let Some(task) = self.last(pod) else {
            return says("no new claims to deallocate");
        };
        match task.to_release(pod) {
            None => says("still not schedulable"),
            Some(release) => Remedy {
                message: match release {
                    Release::Devices(_) => "deallocation of ResourceClaim completed",
                    Release::Claim(_) => "deletion of ResourceClaim completed",
                }
                .to_owned(),
                release: Some(release),
                ..Remedy::default()
            },
        }
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        if !concerns(pod) {
            return 0;
        }
        self.last(pod).map_or(0, |task| task.score(&node.name))
    }

    fn normalize(&self, _nodes: &[&NodeInfo], scores: &mut [i64], _slot: &Slot) {
        normalize_to_max(scores, false);
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself | WorldChange::DeviceClass { .. } | WorldChange::ResourceSlice => {
                true
            }
            WorldChange::NodeAdded(_) | WorldChange::NodeUpdated { .. } => change
                .changes(|old, new| old.labels != new.labels || old.allocatable != new.allocatable),
            WorldChange::ResourceClaim { old, new } => self.claim_helps(old.as_deref(), new, pod),
            // What was given to it ahead of the API may be free again.
            WorldChange::PodGone(other) => {
                claims::are_used_by(other)
                    || extended::are_asked_for(other, &self.writer.devices.lock())
            }
            WorldChange::ResourceClaimGone(claim) => {
                allocation(claim).is_some() || extended::is_for(claim, pod)
            }
            _ => false,
        }
    }

    fn reserve(&self, pod: &PodInfo, node: &str) -> Result<(), StepError> {
        if !concerns(pod) {
            return Ok(());
        }
        let Some(task) = self.last(pod) else {
            return Ok(()); // None of the claims is needed.
        };
        let Some(found) = task.found(node) else {
            let why = "claim allocation not found for node";
            return Err(StepError::failed(NAME, why));
        };
        let mut devices = self.writer.devices.lock();
        let claims = found.claims.into_iter().map(|(claim, gets)| {
            let gets = gets.map(Arc::new);
            if let Some(gets) = &gets {
                devices.begin(claims::uid(&claim), gets);
            }
            (claim, gets)
        });
        let claims = claims.collect();
        let made = found.special.map(|(special, gets)| Made {
            special,
            gets: Arc::new(gets),
            written: None,
        });
        if let Some(made) = &made {
            devices.begin(made.uid(), &made.gets);
        }
        drop(devices);
        let reserved = Reserved { claims, made };
        self.reserved.lock().insert(pod.uid.clone(), reserved);
        Ok(())
    }

    fn unreserve(&self, pod: &PodInfo, _node: &str) {
        let Some(reserved) = self.reserved.lock().remove(&pod.uid) else {
            return;
        };
        let mut devices = self.writer.devices.lock();
        let mut written = Vec::new();
        for (claim, gets) in &reserved.claims {
            if gets.is_some() {
                devices.end(claims::uid(claim));
            }
            let now = devices.claim(&key_of(&**claim));
            written.extend(now.filter(|now| claims::is_reserved_for(now, pod)).cloned());
        }
        if let Some(made) = &reserved.made {
            devices.end(made.uid());
        }
        drop(devices);
        let made = reserved.made.and_then(|made| made.written);
        let is_any = !written.is_empty() || made.is_some();
        if let (true, Ok(runtime)) = (is_any, tokio::runtime::Handle::try_current()) {
            let writer = self.writer.clone();
            let uid = pod.uid.clone();
            runtime.spawn(async move {
                writer.unreserve(&uid, written).await;
                writer.unmake(made).await;
            });
        }
    }

    fn pre_bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        _node: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        Box::pin(async move {
            let Some(reserved) = self.reserved.lock().get(&pod.uid).cloned() else {
                return Ok(());
            };
            self.writer.reserve(pod, &reserved).await?;
            match &reserved.made {
                Some(made) => self.make(pod, made).await,
                None => Ok(()),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        pod: &'a PodInfo,
        _node: &'a str,
    ) -> Option<BoxFuture<'a, Result<(), StepError>>> {
        let reserved = self.reserved.lock().get(&pod.uid).cloned()?;
        let keys = reserved.claims.iter().map(|(claim, _)| key_of(&**claim));
        let mut keys: Vec<_> = keys.collect();
        let made = reserved.made.and_then(|made| made.written);
        let devices = self.writer.devices.lock();
        let claims = keys.iter().filter_map(|key| devices.claim(key));
        let mut claims = claims.chain(&made);
        let has_conditions = claims.any(|claim| readiness::has_conditions(claim));
        drop(devices);
        keys.extend(made.iter().map(|made| key_of(&**made)));
        (has_conditions || made.is_some()).then(|| {
            Box::pin(async move {
                if let Some(made) = &made {
                    self.see(made).await;
                }
                match has_conditions {
                    true => self.wait(keys).await,
                    false => Ok(()),
                }
            }) as BoxFuture<'a, _>
        })
    }

    fn post_bind(&self, pod: &PodInfo, _node: &str) {
        self.reserved.lock().remove(&pod.uid);
    }
}

impl DynamicResources {
    /// As upstream: it was freed, or it is the pod's and not as it was.
    fn claim_helps(&self, old: Option<&ResourceClaim>, new: &ResourceClaim, pod: &PodInfo) -> bool {
        let Ok(own) = claims::of_pod(pod, &self.writer.devices.lock()) else {
            return false;
        };
        let has = |claim: &ResourceClaim| allocation(claim).is_some();
        if old.is_some_and(has) && !has(new) {
            return true;
        }
        let is_own = own.iter().any(|one| one.metadata.uid == new.metadata.uid);
        is_own && old.is_none_or(|old| old.status != new.status)
    }
}

#[cfg(test)]
mod tests;
