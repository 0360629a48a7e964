//! Gathers what concerns one node.

use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_client::{ObjectKey, key_of, pod_claims, volumes};
use k8s_openapi::api::core::v1::Pod;

use super::Controller;
use super::plan::{Attachable, View, Wanted};
use super::watch::{BY_NODE, BY_VOLUME};
use crate::{node_pods, pods};

impl Controller {
    pub(super) fn observe(&self, name: &str) -> View {
        let mut view = View {
            name: name.to_owned(),
            node: self.nodes.get(&ObjectKey::new("", name)),
            attachments: self.attachments.by_index(BY_NODE, name),
            ..View::default()
        };
        for pod in node_pods::on_node(&self.pods, name) {
            for volume in self.volumes_of(&pod) {
                let known = (view.wanted.iter_mut()).find(|one| one.volume.name() == volume.name());
                match known {
                    Some(known) => known.pods.push(Arc::clone(&pod)),
                    None => view.wanted.push(self.wanted(name, volume, &pod)),
                }
            }
        }
        let now = self.clock.monotonic();
        let since = self.unwanted_since.lock();
        for attachment in &view.attachments {
            let own = attachment.metadata.name.clone().unwrap_or_default();
            let volume = attachment.spec.source.persistent_volume_name.as_deref();
            let volume = volume.and_then(|name| self.volumes.get(&ObjectKey::new("", name)));
            if let Some(known) = volume.as_ref().and_then(Attachable::of) {
                view.volumes.insert(own.clone(), known);
            }
            if let Some(at) = since.get(&own) {
                view.unwanted_for.insert(own, now.duration_since(*at));
            }
        }
        view
    }

    /// Those that a pod needs attached: it has not ended, and its claims are bound.
    pub(super) fn volumes_of(&self, pod: &Pod) -> Vec<Attachable> {
        if pods::is_finished(pod) {
            return Vec::new();
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let names = pod_claims::names_of(pod).into_iter();
        let found = names.filter_map(|name| {
            let claim = self.claims.get(&ObjectKey::new(namespace, name))?;
            let volume = volumes::volume_name(&claim);
            let volume = self.volumes.get(&ObjectKey::new("", volume))?;
            let is_bound = volumes::claim_ref(&volume)?.uid == claim.metadata.uid;
            let attachable = Attachable::of(&volume).filter(|_| is_bound)?;
            self.is_attached_by(&attachable.driver)
                .then_some(attachable)
        });
        found.collect()
    }

    /// Drivers that do not say otherwise have their volumes attached.
    fn is_attached_by(&self, driver: &str) -> bool {
        let driver = self.drivers.get(&ObjectKey::new("", driver));
        driver.is_none_or(|driver| driver.spec.attach_required != Some(false))
    }

    fn wanted(&self, node: &str, volume: Attachable, pod: &Arc<Pod>) -> Wanted {
        let attachments = self.attachments.by_index(BY_VOLUME, volume.name());
        let nodes = attachments.iter().map(|one| one.spec.node_name.clone());
        let elsewhere: BTreeSet<String> = nodes.filter(|other| other != node).collect();
        let mut users = self.users_of(&volume);
        users.retain(|user| elsewhere.contains(pods::node_name(user)));
        users.sort_by_key(|user| key_of(user.as_ref()));
        Wanted {
            volume,
            pods: vec![Arc::clone(pod)],
            elsewhere,
            users,
        }
    }

    /// Pods that use a volume and have not ended.
    pub(super) fn users_of(&self, volume: &Attachable) -> Vec<Arc<Pod>> {
        let Some(held) = volumes::claim_ref(&volume.volume) else {
            return Vec::new();
        };
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let index = pod_claims::index(&text(&held.namespace), &text(&held.name));
        let mut users = self.pods.by_index(pod_claims::BY_CLAIM, &index);
        users.retain(|pod| !pods::is_finished(pod));
        users
    }
}
