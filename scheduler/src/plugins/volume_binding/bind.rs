//! Writes down what a pod's claims were given, and waits until binder and provisioners are done.

use super::{Given, NAME, Reserved, VolumeBinding};
use crate::framework::StepError;
use crate::node_facts::NodeFacts;
use crate::pod_info::PodInfo;
use crate::volumes::Volumes;
use coracle_client::key_of;
use coracle_client::patch;
use coracle_client::volumes::{
    self, SELECTED_NODE, annotate, annotation, claim_ref, is_fully_bound, volume_name,
};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Claims tell when they change; this finds what else ends a wait: the pod, the node, the volume.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl VolumeBinding {
    /// Refused as a conflict when somebody else wrote meanwhile; the pod is tried again then.
    pub(super) async fn write(&self, pod: &PodInfo, node: &str) -> Result<(), StepError> {
        let Some(reserved) = self.reserved.lock().get(&pod.uid).cloned() else {
            return Ok(());
        };
        for Given { volume, claim } in &reserved.take {
            let bound = volumes::bound_to(volume, claim);
            if bound != **volume {
                let api: Api<PersistentVolume> = Api::all(self.client.clone());
                patch::replace(&api, &bound).await.map_err(failed)?;
            }
        }
        for claim in &reserved.provision {
            if annotation(&claim.metadata, SELECTED_NODE) == Some(node) {
                continue;
            }
            let mut placed = PersistentVolumeClaim::clone(claim);
            annotate(&mut placed.metadata, SELECTED_NODE, node);
            let api = Api::namespaced(self.client.clone(), &pod.key.namespace);
            patch::replace(&api, &placed).await.map_err(failed)?;
        }
        Ok(())
    }

    pub(super) async fn wait(
        &self,
        pod: &PodInfo,
        node: &str,
        reserved: Reserved,
    ) -> Result<(), StepError> {
        let notify = self.volumes.lock().watch(&reserved.claims);
        let end = Instant::now() + self.binding_max;
        let result = loop {
            match self.look(pod, node, &reserved) {
                Ok(true) => break Ok(()),
                Ok(false) if Instant::now() >= end => {
                    break Err("binding volumes: timed out".to_owned());
                }
                Ok(false) => {
                    let soon = (Instant::now() + LOOK_EVERY).min(end);
                    drop(tokio::time::timeout_at(soon, notify.notified()).await);
                }
                Err(why) => break Err(format!("binding volumes: {why}")),
            }
        };
        self.volumes.lock().unwatch(&reserved.claims, &notify);
        result.map_err(|why| StepError::failed(NAME, why))
    }

    /// Whether all is bound; an error when it will not be.
    fn look(&self, pod: &PodInfo, node: &str, reserved: &Reserved) -> Result<bool, String> {
        let cache = self.cache.lock();
        if !cache.contains(&pod.uid) {
            return Err("pod does not exist any more".to_owned());
        }
        let Some(node) = cache.node(node) else {
            return Err(format!("node {node:?} is gone"));
        };
        drop(cache);
        let known = self.volumes.lock();
        for given in &reserved.take {
            if !is_taken(&known, given, &node)? {
                return Ok(false);
            }
        }
        for claim in &reserved.provision {
            if !is_provisioned(&known, claim, &node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_taken(known: &Volumes, given: &Given, node: &NodeFacts) -> Result<bool, String> {
    let name = given.volume.metadata.name.as_deref().unwrap_or_default();
    let volume = known.volume(name);
    let volume = volume.ok_or_else(|| format!("pv {name:?} is gone"))?;
    let Some(claim) = known.claim(&key_of(given.claim.as_ref())) else {
        return Err(format!("pvc of pv {name:?} is gone"));
    };
    reach(volume, node)?;
    let uid = claim_ref(volume).and_then(|held| held.uid.as_deref());
    if uid.is_none_or(str::is_empty) {
        let is_old = volume.metadata.resource_version == given.volume.metadata.resource_version;
        return match is_old {
            true => Ok(false), // What was written is not yet seen.
            false => Err(format!("ClaimRef got reset for pv {name:?}")),
        };
    }
    Ok(is_fully_bound(claim))
}

fn is_provisioned(
    known: &Volumes,
    asked: &Arc<PersistentVolumeClaim>,
    node: &NodeFacts,
) -> Result<bool, String> {
    let name = asked.metadata.name.as_deref().unwrap_or_default();
    let claim = known.claim(&key_of(asked.as_ref()));
    let claim = claim.ok_or_else(|| format!("pvc {name:?} is gone"))?;
    if annotation(&claim.metadata, SELECTED_NODE) != Some(&*node.name) {
        let is_old = claim.metadata.resource_version == asked.metadata.resource_version;
        return match is_old {
            true => Ok(false), // What was written is not yet seen.
            // Who cannot provision there takes the node away, so that another one is looked for.
            false => Err(format!("provisioning failed for PVC {name:?}")),
        };
    }
    if let Some(volume) = known.volume(volume_name(claim)) {
        reach(volume, node)?;
    }
    Ok(is_fully_bound(claim))
}

fn reach(volume: &PersistentVolume, node: &NodeFacts) -> Result<(), String> {
    let name = &*node.name;
    if volumes::is_reachable(volume, |key| node.label(key), name) {
        return Ok(());
    }
    let volume = volume.metadata.name.as_deref().unwrap_or_default();
    Err(format!(
        "pv {volume:?} node affinity doesn't match node {name:?}"
    ))
}

fn failed(error: kube::Error) -> StepError {
    StepError::Failed {
        plugin: NAME,
        source: Box::new(error),
    }
}
