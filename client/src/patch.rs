//! Writes that carry what they were decided on, and if allowed only what changed.
//!
//! A merge patch between two states of a typed object is smaller than the object, leaves alone
//! what other writers own, and with uid and resourceVersion in it fails as a conflict when the
//! object is no longer the one that was looked at.

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What the write insists on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The object is the very state that was looked at: uid and resourceVersion.
    Unchanged,
    /// The object is the same one, in whatever state: uid alone.
    SameObject,
}

#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    #[error("cannot serialize the object")]
    Serialize(#[from] serde_json::Error),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl PatchError {
    pub fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }
}

/// Writes the difference of `status` between two states of one object; no request when there is
/// none, and then `None`.
pub async fn status<K>(
    api: &Api<K>,
    old: &K,
    new: &K,
    precondition: Precondition,
) -> Result<Option<K>, PatchError>
where
    K: kube::Resource + Serialize + DeserializeOwned,
{
    let Some(body) = status_body(old, new, precondition)? else {
        return Ok(None);
    };
    let name = old.meta().name.as_deref().unwrap_or_default();
    let done = api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(body))
        .await?;
    Ok(Some(done))
}

/// Writes the difference of everything but `status`; no request when there is none.
pub async fn object<K>(
    api: &Api<K>,
    old: &K,
    new: &K,
    precondition: Precondition,
) -> Result<Option<K>, PatchError>
where
    K: kube::Resource + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let Some(body) = object_body(old, new, precondition)? else {
        return Ok(None);
    };
    let name = old.meta().name.as_deref().unwrap_or_default();
    let done = api
        .patch(name, &PatchParams::default(), &Patch::Merge(body))
        .await?;
    Ok(Some(done))
}

/// Replaces `status` by a PUT of the whole object, for identities that may update but not patch.
/// Its uid and resourceVersion are the precondition.
pub async fn replace_status<K>(api: &Api<K>, object: &K) -> Result<K, kube::Error>
where
    K: kube::Resource + Serialize + DeserializeOwned,
{
    let name = object.meta().name.as_deref().unwrap_or_default();
    api.replace_status(name, &PostParams::default(), object)
        .await
}

/// Replaces everything but `status` by a PUT, for identities that may update but not patch.
pub async fn replace<K>(api: &Api<K>, object: &K) -> Result<K, kube::Error>
where
    K: kube::Resource + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let name = object.meta().name.as_deref().unwrap_or_default();
    api.replace(name, &PostParams::default(), object).await
}

/// Parameters that delete exactly this object and no successor of the same name.
pub fn delete_exactly<K: kube::Resource>(object: &K) -> DeleteParams {
    delete_of_uid(object.meta().uid.as_deref().unwrap_or_default())
}

/// Only the object of this uid; any of its name where the uid is empty.
pub fn delete_of_uid(uid: &str) -> DeleteParams {
    let preconditions = Preconditions {
        uid: (!uid.is_empty()).then(|| uid.to_owned()),
        resource_version: None,
    };
    DeleteParams::default().preconditions(preconditions)
}

/// Only this very object, and only if nobody has changed it since it was read: what it says is why
/// it goes.
pub fn delete_as_seen<K: kube::Resource>(object: &K) -> DeleteParams {
    let preconditions = Preconditions {
        uid: object.meta().uid.clone(),
        resource_version: object.meta().resource_version.clone(),
    };
    DeleteParams::default().preconditions(preconditions)
}

fn status_body<K>(
    old: &K,
    new: &K,
    precondition: Precondition,
) -> Result<Option<Value>, serde_json::Error>
where
    K: kube::Resource + Serialize,
{
    let before = serde_json::to_value(old)?;
    let after = serde_json::to_value(new)?;
    let (before, after) = (before.get("status"), after.get("status"));
    let Some(difference) = merge_difference(
        before.unwrap_or(&Value::Null),
        after.unwrap_or(&Value::Null),
    ) else {
        return Ok(None);
    };
    let mut body = json!({ "status": difference });
    insist(&mut body, old, precondition);
    Ok(Some(body))
}

fn object_body<K>(
    old: &K,
    new: &K,
    precondition: Precondition,
) -> Result<Option<Value>, serde_json::Error>
where
    K: kube::Resource + Serialize,
{
    let strip = |object: &K| -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(object)?;
        if let Some(root) = value.as_object_mut() {
            root.remove("status");
        }
        Ok(value)
    };
    let Some(mut body) = merge_difference(&strip(old)?, &strip(new)?) else {
        return Ok(None);
    };
    insist(&mut body, old, precondition);
    Ok(Some(body))
}

fn insist<K: kube::Resource>(body: &mut Value, object: &K, precondition: Precondition) {
    let meta = object.meta();
    if body.get("metadata").is_none() {
        body["metadata"] = json!({});
    }
    if let Some(uid) = &meta.uid {
        body["metadata"]["uid"] = json!(uid);
    }
    if let (Precondition::Unchanged, Some(version)) = (precondition, &meta.resource_version) {
        body["metadata"]["resourceVersion"] = json!(version);
    }
}

/// The merge patch (RFC 7386) that turns one document into another; `None` when they are equal.
pub fn merge_difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        let before = old.get(key).unwrap_or(&Value::Null);
        if let Some(difference) = merge_difference(before, value) {
            patch.insert(key.clone(), difference);
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests;
