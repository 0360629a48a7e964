//! One object, over the API: found, applied, removed; and the records.

use super::plan::Namespaced;
use super::record::{Entry, Identity, LABEL, NAMESPACE, Record};
use coracle_client::Client;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions,
    PropagationPolicy,
};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::error::DiscoveryError;
use serde_json::Value;
use std::collections::BTreeMap;

/// The owner of what files say.
pub const MANAGER: &str = "coracle-manifests";

#[derive(Clone, Debug)]
pub struct Kind {
    resource: ApiResource,
    pub is_namespaced: bool,
}

/// What is there of an object.
#[derive(Debug)]
pub struct Found {
    pub uid: String,
    /// Whether something of it was applied for a file.
    pub is_applied: bool,
}

impl Found {
    /// Whether it is what the entry is about. One that was written before the object was made
    /// knows no uid.
    pub fn is_of(&self, entry: &Entry) -> bool {
        self.is_applied && (entry.uid == self.uid || entry.uid.is_empty())
    }
}

/// Why nothing can be done with a kind.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// The server says that it has none.
    #[error("{0}")]
    NotServed(String),
    /// It says nothing, or nothing that can be read.
    #[error("{0}")]
    Unknown(String),
}

impl From<KindError> for String {
    fn from(error: KindError) -> Self {
        error.to_string()
    }
}

pub struct Applier {
    client: Client,
    /// Of this pass: kinds come and go.
    kinds: BTreeMap<(String, String), Kind>,
}

impl Applier {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            kinds: BTreeMap::new(),
        }
    }

    pub fn forget_kinds(&mut self) {
        self.kinds.clear();
    }

    /// The kinds that were asked for in this pass.
    pub fn namespaced(&self) -> Namespaced {
        let each = self.kinds.iter();
        each.map(|(key, kind)| (key.clone(), kind.is_namespaced))
            .collect()
    }

    /// Fails for a kind that is not served (yet).
    pub async fn kind(&mut self, api_version: &str, kind: &str) -> Result<Kind, KindError> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.kinds.get(&key) {
            return Ok(known.clone());
        }
        let (group, version) = group_and_version(api_version);
        let asked = GroupVersionKind::gvk(group, version, kind);
        let found = pinned_kind(&self.client, &asked).await;
        let (resource, capabilities) = found.map_err(|error| {
            let is_missing = is_missing(&error);
            let why = format!("no kind {kind} in {api_version}: {}", told(error));
            if is_missing {
                KindError::NotServed(why)
            } else {
                KindError::Unknown(why)
            }
        })?;
        let kind = Kind {
            resource,
            is_namespaced: capabilities.scope == Scope::Namespaced,
        };
        self.kinds.insert(key, kind.clone());
        Ok(kind)
    }

    fn api(&self, kind: &Kind, identity: &Identity) -> Api<DynamicObject> {
        let client = self.client.clone();
        if kind.is_namespaced {
            Api::namespaced_with(client, &identity.namespace, &kind.resource)
        } else {
            Api::all_with(client, &kind.resource)
        }
    }

    pub async fn find(&self, kind: &Kind, identity: &Identity) -> Result<Option<Found>, String> {
        let found = self.api(kind, identity).get_opt(&identity.name).await;
        let found = found.map_err(|error| format!("{identity}: {}", told(error)))?;
        Ok(found.map(|object| {
            let managers = object.metadata.managed_fields.unwrap_or_default();
            Found {
                uid: object.metadata.uid.unwrap_or_default(),
                is_applied: managers
                    .iter()
                    .any(|one| one.manager.as_deref() == Some(MANAGER)),
            }
        }))
    }

    /// The uid of what is there then.
    pub async fn apply(
        &self,
        kind: &Kind,
        identity: &Identity,
        object: &Value,
    ) -> Result<String, String> {
        let parameters = PatchParams {
            field_validation: Some(kube::api::ValidationDirective::Strict),
            ..PatchParams::apply(MANAGER).force()
        };
        let api = self.api(kind, identity);
        let applied = api
            .patch(&identity.name, &parameters, &Patch::Apply(object))
            .await;
        let applied = applied.map_err(|error| format!("{identity}: {}", told(error)))?;
        Ok(applied.metadata.uid.unwrap_or_default())
    }

    /// Whoever has its name by now stays, and so does what nothing is applied to any more: a
    /// record alone, which others can write, is not believed. What is gone is gone.
    pub async fn remove(&mut self, entry: &Entry) -> Result<(), String> {
        let identity = &entry.identity;
        let kind = match self.kind(&identity.api_version, &identity.kind).await {
            Ok(kind) => kind,
            Err(KindError::NotServed(why)) => {
                return match self.is_defined(identity).await? {
                    true => Err(why),
                    // With its kind all objects of it went.
                    false => Ok(()),
                };
            }
            Err(KindError::Unknown(why)) => return Err(why),
        };
        let Some(found) = self.find(&kind, identity).await? else {
            return Ok(());
        };
        if !found.is_of(entry) {
            return Ok(());
        }
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(found.uid),
                resource_version: None,
            }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let api = self.api(&kind, identity);
        match api.delete(&identity.name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(told(error)),
        }
    }

    /// Whether something says that there is such a kind, be it served now or not.
    async fn is_defined(&self, identity: &Identity) -> Result<bool, String> {
        let (group, version) = group_and_version(&identity.api_version);
        let name = format!("{version}.{group}");
        let services: Api<APIService> = Api::all(self.client.clone());
        let service = services.get_opt(&name).await.map_err(told)?;
        if service.is_some_and(|one| one.spec.is_some_and(|spec| spec.service.is_some())) {
            return Ok(true);
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let all = definitions.list(&ListParams::default()).await;
        Ok(all.map_err(told)?.into_iter().any(|one| {
            let mut versions = one.spec.versions.iter();
            one.spec.group == group
                && one.spec.names.kind == identity.kind
                && versions.any(|one| one.served && one.name == version)
        }))
    }

    fn records_api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// By name of file.
    pub async fn records(&self) -> Result<BTreeMap<String, Record>, String> {
        let parameters = ListParams::default().labels(LABEL);
        let maps = self.records_api().list(&parameters).await.map_err(told)?;
        let mut records = BTreeMap::new();
        for map in maps {
            match Record::from_config_map(&map) {
                Some(record) => drop(records.insert(record.file.clone(), record)),
                None => tracing::warn!(
                    name = map.metadata.name,
                    "what was applied for a file cannot be read: nothing of it is taken away"
                ),
            }
        }
        Ok(records)
    }

    pub async fn keep(&self, record: &Record) -> Result<(), String> {
        let parameters = PatchParams::apply(MANAGER).force();
        let map = record.to_config_map();
        let kept = self
            .records_api()
            .patch(&record.name(), &parameters, &Patch::Apply(&map))
            .await;
        kept.map(drop)
            .map_err(|error| format!("what was applied is not recorded: {}", told(error)))
    }

    pub async fn forget(&self, record: &Record) -> Result<(), String> {
        let api = self.records_api();
        match api.delete(&record.name(), &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(told(error)),
        }
    }
}

fn group_and_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn is_missing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 404,
        kube::Error::Discovery(error) => matches!(error, DiscoveryError::MissingKind(_)),
        _ => false,
    }
}

fn told(error: kube::Error) -> String {
    crate::control_plane::told(error).to_string()
}

#[cfg(test)]
mod tests;
