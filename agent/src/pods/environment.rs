//! The environment of a container: services, `envFrom`, `env`, and `$(NAME)` in all of them.
//!
//! Pure: config maps and secrets are given. Later entries win, as upstream has it.

mod expand;
pub mod field;
mod service;

pub use expand::expand;
pub use service::MASTER;

use crate::families::Families;
use crate::network::view;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What the variables are taken from. A name that maps to None was asked for and is not there.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub config_maps: BTreeMap<String, Option<ConfigMap>>,
    pub secrets: BTreeMap<String, Option<Secret>>,
    /// Those of the pod's namespace, and `MASTER`.
    pub services: Vec<(view::Key, Arc<view::Service>)>,
    pub pod_ips: Families<IpAddr>,
    pub host_ips: Families<IpAddr>,
    /// Milli-CPUs and bytes that stand in for a limit that was not set.
    pub allocatable_cpu_milli: i64,
    pub allocatable_memory_bytes: i64,
}

/// Names of what a container's environment is taken from.
#[derive(Debug, Default)]
pub struct Needs {
    pub config_maps: Vec<String>,
    pub secrets: Vec<String>,
}

pub fn needs(container: &Container) -> Needs {
    let mut needs = Needs::default();
    for from in container.env_from.iter().flatten() {
        needs
            .config_maps
            .extend(from.config_map_ref.iter().map(|from| from.name.clone()));
        needs
            .secrets
            .extend(from.secret_ref.iter().map(|from| from.name.clone()));
    }
    for source in container
        .env
        .iter()
        .flatten()
        .filter_map(|env| env.value_from.as_ref())
    {
        let map = source.config_map_key_ref.iter();
        needs.config_maps.extend(map.map(|key| key.name.clone()));
        let secret = source.secret_key_ref.iter();
        needs.secrets.extend(secret.map(|key| key.name.clone()));
    }
    needs
}

/// The variables in order, or what is missing, in upstream's words.
pub fn make(
    pod: &Pod,
    container: &Container,
    sources: &Sources,
) -> Result<Vec<(String, String)>, String> {
    let spec = super::state::spec(pod);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let links = spec.enable_service_links.unwrap_or(true);
    let services = service::variables(&sources.services, namespace, links);
    let mut made: BTreeMap<String, String> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut set = |made: &mut BTreeMap<String, String>, name: String, value: String| {
        if made.insert(name.clone(), value).is_none() {
            order.push(name);
        }
    };
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        for (key, value) in bulk(from, sources)? {
            set(&mut made, format!("{prefix}{key}"), value);
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) if !value.is_empty() => {
                let lookup = |name: &str| made.get(name).or_else(|| services.get(name)).cloned();
                Some(expand(value, lookup))
            }
            (_, Some(from)) => single(pod, container, from, sources, namespace)?,
            _ => Some(String::new()),
        };
        if let Some(value) = value {
            set(&mut made, variable.name.clone(), value);
        }
    }
    let mut variables: Vec<(String, String)> = services
        .into_iter()
        .filter(|(name, _)| !made.contains_key(name))
        .collect();
    variables.extend(order.into_iter().map(|name| {
        let value = made.remove(&name).unwrap_or_default();
        (name, value)
    }));
    Ok(variables)
}

fn bulk(
    from: &k8s_openapi::api::core::v1::EnvFromSource,
    sources: &Sources,
) -> Result<Vec<(String, String)>, String> {
    if let Some(source) = &from.config_map_ref {
        let map = sources
            .config_maps
            .get(&source.name)
            .and_then(Option::as_ref);
        return match map {
            Some(map) => Ok(map.data.clone().unwrap_or_default().into_iter().collect()),
            None if source.optional == Some(true) => Ok(Vec::new()),
            None => Err(format!("configmap {:?} not found", source.name)),
        };
    }
    let Some(source) = &from.secret_ref else {
        return Ok(Vec::new());
    };
    let secret = sources.secrets.get(&source.name).and_then(Option::as_ref);
    match secret {
        Some(secret) => {
            let data = secret.data.clone().unwrap_or_default().into_iter();
            Ok(data
                .map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into_owned()))
                .collect())
        }
        None if source.optional == Some(true) => Ok(Vec::new()),
        None => Err(format!("secret {:?} not found", source.name)),
    }
}

/// None leaves the variable out: an optional key that is not there.
fn single(
    pod: &Pod,
    container: &Container,
    from: &EnvVarSource,
    sources: &Sources,
    namespace: &str,
) -> Result<Option<String>, String> {
    if let Some(field) = &from.field_ref {
        return field::of_pod(pod, &field.field_path, sources).map(Some);
    }
    if let Some(resource) = &from.resource_field_ref {
        return field::of_resources(pod, container, resource, sources).map(Some);
    }
    if let Some(key) = &from.config_map_key_ref {
        let map = sources.config_maps.get(&key.name).and_then(Option::as_ref);
        let value = map.and_then(|map| map.data.as_ref()?.get(&key.key).cloned());
        return match (value, map) {
            (Some(value), _) => Ok(Some(value)),
            _ if key.optional == Some(true) => Ok(None),
            (None, None) => Err(format!("configmap {:?} not found", key.name)),
            (None, Some(_)) => Err(format!(
                "couldn't find key {} in ConfigMap {namespace}/{}",
                key.key, key.name
            )),
        };
    }
    let Some(key) = &from.secret_key_ref else {
        return Ok(Some(String::new()));
    };
    let secret = sources.secrets.get(&key.name).and_then(Option::as_ref);
    let value = secret.and_then(|secret| secret.data.as_ref()?.get(&key.key).cloned());
    match (value, secret) {
        (Some(value), _) => Ok(Some(String::from_utf8_lossy(&value.0).into_owned())),
        _ if key.optional == Some(true) => Ok(None),
        (None, None) => Err(format!("secret {:?} not found", key.name)),
        (None, Some(_)) => Err(format!(
            "couldn't find key {} in Secret {namespace}/{}",
            key.key, key.name
        )),
    }
}

#[cfg(test)]
mod tests;
