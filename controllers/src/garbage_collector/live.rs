//! What the server says about objects, and what is done to them: metadata alone goes over the wire.

use std::sync::Arc;

use coracle_client::Client;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::graph::{Identity, Kind};
use super::plan::Propagation;
use crate::discovery::{Discovered, Meta, Resource};
use crate::refusal;

/// How often a write is tried again with the newest object.
const CONFLICTS_MAX: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    /// It may be known after the next discovery.
    #[error("unable to get REST mapping for {}/{}", .0.api_version, .0.kind)]
    UnknownKind(Arc<Kind>),
    /// Will not become right by trying again.
    #[error("cluster-scoped objects cannot refer to namespaced owners")]
    NamespacedOwner,
    #[error("cannot {what} {identity}")]
    Call {
        what: &'static str,
        identity: Box<Identity>,
        source: kube::Error,
    },
}

/// The server, by the kinds of the last discovery.
pub(super) struct Live {
    client: Client,
    discovered: RwLock<Arc<Discovered>>,
}

impl Live {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            discovered: RwLock::default(),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn discovered(&self) -> Arc<Discovered> {
        self.discovered.read().clone()
    }

    pub(super) fn set_discovered(&self, discovered: Discovered) {
        *self.discovered.write() = Arc::new(discovered);
    }

    pub(super) fn resource(&self, kind: &Arc<Kind>) -> Result<Resource, LiveError> {
        let discovered = self.discovered();
        let found = discovered.kind(&kind.api_version, &kind.kind);
        found
            .cloned()
            .ok_or_else(|| LiveError::UnknownKind(kind.clone()))
    }

    fn objects(&self, identity: &Identity) -> Result<Api<Meta>, LiveError> {
        let resource = self.resource(&identity.kind)?;
        if resource.namespaced && identity.namespace.is_empty() {
            return Err(LiveError::NamespacedOwner);
        }
        Ok(resource.objects(&self.client, &identity.namespace))
    }

    /// The object of that place, whatever its uid.
    pub(super) async fn get(&self, identity: &Identity) -> Result<Option<Meta>, LiveError> {
        let found = self.objects(identity)?.get_opt(&identity.name).await;
        found.map_err(call("read", identity))
    }

    /// False if there is no such object.
    pub(super) async fn delete(
        &self,
        identity: &Identity,
        latest: &Meta,
        propagation: Propagation,
    ) -> Result<bool, LiveError> {
        let objects = self.objects(identity)?;
        let read_version = latest.metadata.resource_version.clone();
        let params = delete_params(identity, read_version, propagation);
        let mut deleted = objects.delete(&identity.name, &params).await;
        if matches!(&deleted, Err(error) if is_conflict(error)) {
            let Some(live) = self.get(identity).await? else {
                return Ok(false);
            };
            let same = live.metadata.uid == latest.metadata.uid;
            if same && live.metadata.owner_references == latest.metadata.owner_references {
                // Something else changed: that must not keep the object forever.
                let params = delete_params(identity, None, propagation);
                deleted = objects.delete(&identity.name, &params).await;
            }
        }
        match deleted {
            Ok(_) => Ok(true),
            Err(error) if refusal::is_not_found(&error) => Ok(false),
            Err(error) => Err(call("delete", identity)(error)),
        }
    }

    /// Removes the references to these owners. An object that is gone has none.
    pub(super) async fn remove_owners(
        &self,
        identity: &Identity,
        owners: &[String],
    ) -> Result<(), LiveError> {
        let each = owners.iter();
        let each = each.map(|uid| json!({"$patch": "delete", "uid": uid}));
        let each: Vec<Value> = each.collect();
        self.patch_owners(identity, each, |meta| {
            let all = meta.metadata.owner_references.iter().flatten();
            let left = all.filter(|owner| !owners.contains(&owner.uid));
            json!(left.collect::<Vec<_>>())
        })
        .await
    }

    /// The object no longer keeps its owners from being deleted.
    pub(super) async fn unblock_owners(
        &self,
        identity: &Identity,
        latest: &Meta,
    ) -> Result<(), LiveError> {
        let free = |meta: &Meta| {
            let mut owners = meta.metadata.owner_references.clone().unwrap_or_default();
            for owner in &mut owners {
                owner.block_owner_deletion = Some(false);
            }
            owners
        };
        let all = free(latest).into_iter().map(|owner| json!(owner));
        self.patch_owners(identity, all.collect(), |meta| json!(free(meta)))
            .await
    }

    /// Patches the list by its elements; where the server has no such patch (custom resources),
    /// the whole list.
    async fn patch_owners(
        &self,
        identity: &Identity,
        elements: Vec<Value>,
        whole: impl Fn(&Meta) -> Value,
    ) -> Result<(), LiveError> {
        let objects = self.objects(identity)?;
        let params = PatchParams::default();
        let patch =
            json!({"metadata": {"uid": identity.uid.as_ref(), "ownerReferences": elements}});
        let done = objects
            .patch(&identity.name, &params, &Patch::Strategic(patch))
            .await;
        let failed = match done {
            Ok(_) => return Ok(()),
            Err(error) if refusal::is_not_found(&error) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 415 => None,
            Err(error) => Some(error),
        };
        if let Some(error) = failed {
            return Err(call("patch the owners of", identity)(error));
        }
        let Some(latest) = self.get(identity).await? else {
            return Ok(());
        };
        let patch = json!({"metadata": {
            "uid": identity.uid.as_ref(),
            "resourceVersion": latest.metadata.resource_version,
            "ownerReferences": whole(&latest),
        }});
        let done = objects
            .patch(&identity.name, &params, &Patch::Merge(patch))
            .await;
        done.map(drop)
            .map_err(call("patch the owners of", identity))
    }

    /// An object that is gone has no finalizer.
    pub(super) async fn remove_finalizer(
        &self,
        identity: &Identity,
        finalizer: &str,
    ) -> Result<(), LiveError> {
        let objects = self.objects(identity)?;
        for attempt in 1.. {
            let Some(latest) = self.get(identity).await? else {
                return Ok(());
            };
            let same = latest.metadata.uid.as_deref() == Some(identity.uid.as_ref());
            let finalizers = latest.metadata.finalizers.unwrap_or_default();
            if !same || !finalizers.iter().any(|one| one == finalizer) {
                return Ok(());
            }
            let left: Vec<_> = finalizers.iter().filter(|one| *one != finalizer).collect();
            let patch = json!({"metadata": {
                "resourceVersion": latest.metadata.resource_version,
                "finalizers": left,
            }});
            let params = PatchParams::default();
            let done = objects
                .patch(&identity.name, &params, &Patch::Merge(patch))
                .await;
            match done {
                Ok(_) => return Ok(()),
                Err(error) if refusal::is_not_found(&error) => return Ok(()),
                Err(error) if is_conflict(&error) && attempt < CONFLICTS_MAX => {}
                Err(error) => return Err(call("remove a finalizer of", identity)(error)),
            }
        }
        Ok(())
    }
}

fn delete_params(
    identity: &Identity,
    resource_version: Option<String>,
    propagation: Propagation,
) -> DeleteParams {
    let policy = match propagation {
        Propagation::Background => PropagationPolicy::Background,
        Propagation::Foreground => PropagationPolicy::Foreground,
        Propagation::Orphan => PropagationPolicy::Orphan,
    };
    DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: Some(identity.uid.to_string()),
            resource_version,
        }),
        ..DeleteParams::default()
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict())
}

fn call(what: &'static str, identity: &Identity) -> impl Fn(kube::Error) -> LiveError {
    let identity = Box::new(identity.clone());
    move |source| LiveError::Call {
        what,
        identity: identity.clone(),
        source,
    }
}
