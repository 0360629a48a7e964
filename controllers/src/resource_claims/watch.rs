//! Which pods and claims to look at when something changed.

use std::sync::Arc;

use coracle_client::informer::Change;
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::core::v1::Pod;

use super::{BY_CLAIM, BY_TEMPLATE, Controller, Key, plan};

impl Controller {
    pub(super) fn watch(self: &Arc<Self>) {
        let told = Arc::clone(self);
        self.pods.on_change(move |change| {
            let is_gone = matches!(change, Change::Deleted(_));
            told.pod_changed(change.object(), is_gone);
        });
        let told = Arc::clone(self);
        self.claims.on_change(move |change| {
            let claim = change.object();
            let key = key_of(claim.as_ref());
            match change {
                Change::Deleted(_) => told.forget_made(claim),
                _ => told.queue.add(Key::Claim(key.clone())),
            }
            // Those that wait for it, and those that have lost it.
            let name = format!("{}/{}", key.namespace, key.name);
            for pod in told.pods.by_index(BY_CLAIM, &name) {
                told.queue.add(Key::Pod(key_of(pod.as_ref())));
            }
        });
        let told = Arc::clone(self);
        self.templates.on_change(move |change| {
            if matches!(change, Change::Deleted(_)) {
                return;
            }
            let key = key_of(change.object().as_ref());
            let name = format!("{}/{}", key.namespace, key.name);
            for pod in told.pods.by_index(BY_TEMPLATE, &name) {
                told.queue.add(Key::Pod(key_of(pod.as_ref())));
            }
        });
    }

    fn pod_changed(&self, pod: &Pod, is_gone: bool) {
        if is_gone && let Some(uid) = &pod.metadata.uid {
            self.made.lock().remove(uid);
        }
        let key = key_of(pod);
        if is_gone || plan::is_done(pod) {
            for name in plan::names(pod) {
                self.queue
                    .add(Key::Claim(ObjectKey::new(&key.namespace, name)));
            }
        } else if !plan::claims(pod).is_empty() {
            self.queue.add(Key::Pod(key));
        }
    }

    fn forget_made(&self, claim: &k8s_openapi::api::resource::v1::ResourceClaim) {
        let Some((_, uid)) = plan::owner(claim) else {
            return;
        };
        if let Some(made) = self.made.lock().get_mut(uid) {
            made.retain(|_, one| one.metadata.uid != claim.metadata.uid);
        }
    }
}
