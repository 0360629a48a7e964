//! Which objects a controller owns: it adopts matching orphans, releases what no longer matches,
//! and never touches what another controller owns.
//!
//! `claim` is pure. The patches name the object's uid, so that a successor of the same name is
//! never adopted or released by mistake.

use std::sync::Arc;

use coracle_client::ObjectKey;
use coracle_client::informer::{Informer, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::labels::Selector;

/// What an object is to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Owned and matching.
    Own,
    /// An orphan that matches.
    Adopt,
    /// Owned, but it does not match any more.
    Release,
    /// None of its business.
    Ignore,
}

/// The reference that says who controls an object, if anybody does.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

pub(crate) fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|controller| controller.uid == uid)
}

/// The index of objects by the uid of their controller, and of orphans by namespace.
const BY_CONTROLLER: &str = "by-controller";

/// Makes `owned_or_orphaned` answer quickly from now on.
pub(crate) fn index_by_controller<K: Kind>(informer: &Informer<K>) {
    informer.add_index(BY_CONTROLLER, |object: &K| {
        match controller_of(object.meta()) {
            Some(controller) => vec![controller.uid.clone()],
            None => vec![orphans_of(
                object.meta().namespace.as_deref().unwrap_or_default(),
            )],
        }
    });
}

/// The objects that a controller owns.
pub(crate) fn owned<K: Kind>(informer: &Informer<K>, uid: &str) -> Vec<Arc<K>> {
    informer.by_index(BY_CONTROLLER, uid)
}

/// The objects that a controller owns or might adopt, by name: equal choices are made the same
/// way each time.
pub(crate) fn owned_or_orphaned<K: Kind>(
    informer: &Informer<K>,
    uid: &str,
    namespace: &str,
) -> Vec<Arc<K>> {
    let mut objects = owned(informer, uid);
    objects.extend(informer.by_index(BY_CONTROLLER, &orphans_of(namespace)));
    objects.sort_by(|a, b| a.meta().name.cmp(&b.meta().name));
    objects
}

/// Cannot be mistaken for a uid: those have no slash.
fn orphans_of(namespace: &str) -> String {
    format!("orphans/{namespace}")
}

/// The controller that an object names, if it is of this kind and still the same one.
pub(crate) fn owner_of<O: Kind>(owners: &Informer<O>, meta: &ObjectMeta) -> Option<Arc<O>> {
    let controller = controller_of(meta).filter(|owner| owner.kind == O::kind(&()))?;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let owner = owners.get(&ObjectKey::new(namespace, &controller.name))?;
    (owner.meta().uid.as_ref() == Some(&controller.uid)).then_some(owner)
}

/// The reference under which a controller object owns others.
pub(crate) fn controller_reference<K: Kind>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Decides about one object of the controller's namespace.
pub(crate) fn claim(owner: &ObjectMeta, selector: &Selector, object: &ObjectMeta) -> Claim {
    let matches = selector.matches(object.labels.as_ref());
    let owner_deleting = owner.deletion_timestamp.is_some();
    match controller_of(object) {
        Some(controller) if Some(&controller.uid) != owner.uid.as_ref() => Claim::Ignore,
        Some(_) if matches => Claim::Own,
        // A controller that is being deleted leaves things as they are for the garbage collector.
        Some(_) if owner_deleting => Claim::Ignore,
        Some(_) => Claim::Release,
        None if matches && !owner_deleting && object.deletion_timestamp.is_none() => Claim::Adopt,
        None => Claim::Ignore,
    }
}

/// What objects are to one controller, and what makes it so.
#[derive(Debug)]
pub(crate) struct Claims<K> {
    /// Those to be adopted among them.
    pub owned: Vec<Arc<K>>,
    pub adopt: Vec<Arc<K>>,
    pub release: Vec<Arc<K>>,
}

impl<K: Kind> Claims<K> {
    pub(crate) fn of(owner: &ObjectMeta, selector: &Selector, objects: Vec<Arc<K>>) -> Self {
        let mut claims = Self {
            owned: Vec::new(),
            adopt: Vec::new(),
            release: Vec::new(),
        };
        for object in objects {
            match claim(owner, selector, object.meta()) {
                Claim::Own => claims.owned.push(object),
                Claim::Adopt => {
                    claims.adopt.push(object.clone());
                    claims.owned.push(object);
                }
                Claim::Release => claims.release.push(object),
                Claim::Ignore => {}
            }
        }
        claims
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("cannot read {name} again before it adopts")]
    Recheck { name: String, source: kube::Error },
    /// The cache lags: this controller object is gone or going, and must not adopt.
    #[error("{name} is being deleted or was replaced")]
    OwnerGone { name: String },
    #[error("cannot adopt {name}")]
    Adopt { name: String, source: kube::Error },
    #[error("cannot release {name}")]
    Release { name: String, source: kube::Error },
}

/// Whether an owner is there still and is not being deleted, as the server knows, not the cache.
pub(crate) async fn lives<O: Kind>(owners: &Api<O>, owner: &O) -> Result<bool, kube::Error> {
    let name = owner.meta().name.as_deref().unwrap_or_default();
    let fresh = owners.get_opt(name).await?;
    Ok(fresh.is_some_and(|fresh| {
        fresh.meta().uid == owner.meta().uid && fresh.meta().deletion_timestamp.is_none()
    }))
}

/// Adopts and releases. Adoption first asks the server, not the cache, whether the owner lives.
pub(crate) async fn execute<O: Kind, K: Kind>(
    owners: &Api<O>,
    owner: &O,
    objects: &Api<K>,
    adopt: &[Arc<K>],
    release: &[Arc<K>],
) -> Result<(), ClaimError> {
    execute_with(owners, owner, objects, adopt, release, None).await
}

/// The same; what is adopted gets a finalizer, and what is released loses it.
pub(crate) async fn execute_with<O: Kind, K: Kind>(
    owners: &Api<O>,
    owner: &O,
    objects: &Api<K>,
    adopt: &[Arc<K>],
    release: &[Arc<K>],
    finalizer: Option<&str>,
) -> Result<(), ClaimError> {
    let name_of = |meta: &ObjectMeta| meta.name.clone().unwrap_or_default();
    if !adopt.is_empty() {
        let name = name_of(owner.meta());
        let alive = lives(owners, owner).await;
        let alive = alive.map_err(|source| ClaimError::Recheck {
            name: name.clone(),
            source,
        })?;
        if !alive {
            return Err(ClaimError::OwnerGone { name });
        }
    }
    for object in adopt {
        let meta = object.meta();
        let mut patch = json!({"metadata": {
            "uid": meta.uid,
            "ownerReferences": [controller_reference(owner)],
        }});
        if let Some(finalizer) = finalizer {
            patch["metadata"]["finalizers"] = json!([finalizer]);
        }
        let name = name_of(meta);
        let done = objects
            .patch(&name, &PatchParams::default(), &Patch::Strategic(patch))
            .await;
        done.map_err(|source| ClaimError::Adopt { name, source })?;
    }
    for object in release {
        let meta = object.meta();
        let mut patch = json!({"metadata": {
            "uid": meta.uid,
            "ownerReferences": [{"$patch": "delete", "uid": owner.meta().uid}],
        }});
        if let Some(finalizer) = finalizer {
            patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([finalizer]);
        }
        let name = name_of(meta);
        match objects
            .patch(&name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
        {
            Ok(_) => {}
            // Gone, or no longer the same object: released either way.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_invalid() => {}
            Err(source) => return Err(ClaimError::Release { name, source }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
