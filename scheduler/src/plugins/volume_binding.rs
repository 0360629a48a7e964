//! A pod gets only a node from which its volumes can be reached, or on which they can be made.
//!
//! PreFilter: all claims are there, and those that wait for no node are bound. Filter: the bound
//! volumes can be reached from the node, and for each other claim there is a volume that can be, or
//! one may be provisioned there. Reserve gives volumes and the node to the claims, ahead of the
//! API. PreBind writes that down, and waits until binder and provisioners have done the rest, off
//! the bounded places of bindings. For pods without claims nothing is done.

use crate::cache::{Cache, Snapshot};
use crate::framework::{Plugin, Points, PreFilter, Reason, Slot, StepError, Verdict, WorldChange};
use crate::node_facts::NodeFacts;
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::volumes::Volumes;
use coracle_client::volumes::claim_ref;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

mod bind; // Writes what was decided, and waits for it.
mod task; // What a pod's claims need. Pure. Start reading here.

use task::{Decision, Task};

const NAME: &str = "VolumeBinding";
/// As long as upstream waits for a binding.
pub const BINDING_MAX: Duration = Duration::from_secs(600);

pub struct VolumeBinding {
    client: Client,
    cache: Arc<Mutex<Cache>>,
    volumes: Arc<Mutex<Volumes>>,
    /// How long others are waited for.
    binding_max: Duration,
    /// Of pods on their way to a node, by uid.
    reserved: Mutex<HashMap<String, Reserved>>,
}

/// What was given to the claims of a pod.
#[derive(Clone, Debug, Default)]
struct Reserved {
    take: Vec<Given>,
    provision: Vec<Arc<PersistentVolumeClaim>>,
    /// Every claim of the pod.
    claims: Vec<ObjectKey>,
}

#[derive(Clone, Debug)]
struct Given {
    volume: Arc<PersistentVolume>,
    claim: Arc<PersistentVolumeClaim>,
}

impl fmt::Debug for VolumeBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl VolumeBinding {
    pub fn new(
        client: Client,
        cache: Arc<Mutex<Cache>>,
        volumes: Arc<Mutex<Volumes>>,
        binding_max: Duration,
    ) -> Self {
        Self {
            client,
            cache,
            volumes,
            binding_max,
            reserved: Mutex::default(),
        }
    }

    /// Another pod may have taken since the cycle what this one was to get: decided anew.
    fn give(&self, pod: &PodInfo, node: &str) -> Result<(), Reason> {
        let known = self.cache.lock().node(node);
        // Of one that went meanwhile nothing but its name is known.
        let known = known.unwrap_or_else(|| Arc::new(NodeFacts::named(&node.into())));
        let mut volumes = self.volumes.lock();
        let task = Task::of(pod, &volumes)?;
        let Decision { take, provision } = task.decide(&known)?;
        let given = take
            .into_iter()
            .map(|(volume, claim)| Given { volume, claim });
        let reserved = Reserved {
            take: given.collect(),
            provision,
            claims: task::claim_keys(pod),
        };
        for Given { volume, claim } in &reserved.take {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            volumes.give(name, &key_of(claim.as_ref()));
        }
        for claim in &reserved.provision {
            volumes.place(&key_of(claim.as_ref()), node);
        }
        drop(volumes);
        self.reserved.lock().insert(pod.uid.clone(), reserved);
        Ok(())
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER
    }

    fn pre_filter(&self, pod: &PodInfo, _world: &Snapshot, slot: &mut Slot) -> PreFilter {
        if pod.claims.is_empty() {
            return PreFilter::Skip;
        }
        match Task::of(pod, &self.volumes.lock()) {
            Ok(task) => {
                slot.set(Arc::new(task));
                PreFilter::Filter
            }
            Err(reason) => PreFilter::Refuse(Verdict::Unresolvable(reason)),
        }
    }

    fn filter(&self, _pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let task = slot.get::<Arc<Task>>();
        match task.map(|task| task.decide(&node.facts)) {
            Some(Err(reason)) => Verdict::Unresolvable(reason),
            _ => Verdict::Fit,
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        let is_own = |key: &ObjectKey| task::claim_keys(pod).contains(key);
        match change {
            WorldChange::Itself | WorldChange::Provisioning => true,
            WorldChange::NodeAdded(_) | WorldChange::NodeUpdated { .. } => {
                change.changes(|old, new| {
                    old.labels != new.labels || old.has_local_path != new.has_local_path
                })
            }
            WorldChange::Claim(claim) => is_own(&key_of(claim.as_ref())),
            WorldChange::Volume(volume) => claim_ref(volume).is_none_or(|held| {
                let [namespace, name] = [&held.namespace, &held.name];
                let text = |field: &Option<String>| field.clone().unwrap_or_default();
                is_own(&ObjectKey::new(text(namespace), text(name)))
            }),
            WorldChange::NodeRemoved(_)
            | WorldChange::PodGone(_)
            | WorldChange::PodPlaced(_)
            | WorldChange::PodUpdated { .. }
            | WorldChange::CsiNode { .. }
            | WorldChange::ResourceClaim { .. }
            | WorldChange::ResourceClaimGone(_)
            | WorldChange::DeviceClass { .. }
            | WorldChange::ResourceSlice
            | WorldChange::Detached(_) => false,
        }
    }

    fn reserve(&self, pod: &PodInfo, node: &str) -> Result<(), StepError> {
        if pod.claims.is_empty() {
            return Ok(());
        }
        self.give(pod, node).map_err(|reason| {
            let why = reason.texts(pod).join(", ");
            StepError::failed(NAME, why)
        })
    }

    fn unreserve(&self, pod: &PodInfo, _node: &str) {
        let Some(reserved) = self.reserved.lock().remove(&pod.uid) else {
            return;
        };
        let mut volumes = self.volumes.lock();
        for Given { volume, claim } in &reserved.take {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            volumes.take_back(name, &key_of(claim.as_ref()));
        }
        for claim in &reserved.provision {
            volumes.displace(&key_of(claim.as_ref()));
        }
    }

    fn pre_bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        Box::pin(self.write(pod, node))
    }

    fn settle<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> Option<BoxFuture<'a, Result<(), StepError>>> {
        let reserved = self.reserved.lock().get(&pod.uid).cloned()?;
        let is_all_there = reserved.take.is_empty() && reserved.provision.is_empty();
        (!is_all_there).then(|| Box::pin(self.wait(pod, node, reserved)) as BoxFuture<'a, _>)
    }

    fn post_bind(&self, pod: &PodInfo, _node: &str) {
        self.reserved.lock().remove(&pod.uid);
    }
}

#[cfg(test)]
mod tests;
