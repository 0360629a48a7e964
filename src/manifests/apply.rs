//! One object, over the API: found, applied, removed; and the records.

use super::plan::Namespaced;
use super::record::{Entry, Identity, LABEL, NAMESPACE, Record};
use coracle_client::Client;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions,
    PropagationPolicy,
};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
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
    pub async fn kind(&mut self, api_version: &str, kind: &str) -> Result<Kind, String> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.kinds.get(&key) {
            return Ok(known.clone());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let asked = GroupVersionKind::gvk(group, version, kind);
        let found = pinned_kind(&self.client, &asked).await;
        let (resource, capabilities) = found.map_err(|error| {
            let why = told(error);
            format!("no kind {kind} in {api_version}: {why}")
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

    /// Whoever has its name by now stays; what is gone is gone.
    pub async fn remove(&mut self, entry: &Entry) -> Result<(), String> {
        let identity = &entry.identity;
        let kind = match self.kind(&identity.api_version, &identity.kind).await {
            Ok(kind) => kind,
            // With its kind all objects of it went.
            Err(_) if self.is_reachable().await => return Ok(()),
            Err(why) => return Err(why),
        };
        let uid = match (self.find(&kind, identity).await?, entry.uid.as_str()) {
            (None, _) => return Ok(()),
            (Some(found), "") if found.is_applied => found.uid,
            (Some(found), uid) if found.uid == uid => found.uid,
            (Some(_), _) => return Ok(()),
        };
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid),
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

    async fn is_reachable(&self) -> bool {
        self.client.apiserver_version().await.is_ok()
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

fn told(error: kube::Error) -> String {
    crate::control_plane::told(error).to_string()
}
