//! `configMap`, `secret`, `downwardAPI` and `projected`: volumes whose files are written from
//! objects of the API. What is in them is decided here, from what was read; pure.
//!
//! Only read by containers. Secrets and tokens stay in memory and never reach a disk.

use super::files::{File, Files};
use crate::pods::environment::{self, Sources};
use crate::pods::state;
use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, ServiceAccountTokenProjection,
    Volume,
};
use std::collections::{BTreeMap, BTreeSet};

/// As upstream defaults it, where the API server has not.
const FILE_MODE: i32 = 0o644;
/// Of what only one user, or one group, may read.
const TOKEN_MODE: u32 = 0o600;
/// As upstream asks where a volume does not say.
const TOKEN_SECONDS: i64 = 3600;

/// For whom a token is and how long it is wanted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenSpec {
    /// Empty for the API server.
    pub audience: String,
    pub seconds: i64,
}

impl TokenSpec {
    fn of(source: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: source.audience.clone().unwrap_or_default(),
            seconds: source.expiration_seconds.unwrap_or(TOKEN_SECONDS),
        }
    }
}

/// Names of what a pod's volumes are written from.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub config_maps: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
    pub tokens: BTreeSet<TokenSpec>,
}

/// What the files are taken from. A name that maps to None was asked for and is not there.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub objects: Sources,
    pub tokens: BTreeMap<TokenSpec, String>,
}

/// The name of the kind, as in the directory of its volumes; `None` for one without content.
pub fn plugin(volume: &Volume) -> Option<&'static str> {
    if volume.config_map.is_some() {
        Some("kubernetes.io~configmap")
    } else if volume.secret.is_some() {
        Some("kubernetes.io~secret")
    } else if volume.downward_api.is_some() {
        Some("kubernetes.io~downward-api")
    } else if volume.projected.is_some() {
        Some("kubernetes.io~projected")
    } else {
        None
    }
}

/// Config maps are no secrets, and may be large: they are files of the node's disk.
pub fn is_in_memory(volume: &Volume) -> bool {
    volume.config_map.is_none()
}

pub fn has_any(pod: &Pod) -> bool {
    let volumes = state::spec(pod).volumes.as_deref().unwrap_or_default();
    volumes.iter().any(|volume| plugin(volume).is_some())
}

pub fn needs(pod: &Pod) -> Needs {
    let mut needs = Needs::default();
    for volume in state::spec(pod).volumes.iter().flatten() {
        let map = volume.config_map.iter();
        needs.config_maps.extend(map.map(|map| map.name.clone()));
        let secret = volume.secret.as_ref();
        let secret = secret.and_then(|secret| secret.secret_name.clone());
        needs.secrets.extend(secret);
        let projected = volume.projected.as_ref();
        let sources = projected.and_then(|projected| projected.sources.as_ref());
        for source in sources.into_iter().flatten() {
            let map = source.config_map.iter();
            needs.config_maps.extend(map.map(|map| map.name.clone()));
            let secret = source.secret.iter();
            needs
                .secrets
                .extend(secret.map(|secret| secret.name.clone()));
            let token = source.service_account_token.iter();
            needs.tokens.extend(token.map(TokenSpec::of));
        }
    }
    needs
}

/// The files of one volume, or what is missing, in upstream's words.
pub fn files(pod: &Pod, volume: &Volume, contents: &Contents) -> Result<Files, String> {
    let maker = Maker { pod, contents };
    if let Some(source) = &volume.config_map {
        let mode = source.default_mode.unwrap_or(FILE_MODE);
        let optional = source.optional.unwrap_or(false);
        return maker.config_map(&source.name, source.items.as_deref(), mode, optional);
    }
    if let Some(source) = &volume.secret {
        let mode = source.default_mode.unwrap_or(FILE_MODE);
        let name = source.secret_name.as_deref().unwrap_or_default();
        let optional = source.optional.unwrap_or(false);
        return maker.secret(name, source.items.as_deref(), mode, optional);
    }
    if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(FILE_MODE);
        return maker.downward(source.items.as_deref(), mode);
    }
    match &volume.projected {
        Some(source) => maker.projected(source),
        None => Ok(Files::new()),
    }
}

struct Maker<'a> {
    pod: &'a Pod,
    contents: &'a Contents,
}

impl Maker<'_> {
    fn config_map(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        mode: i32,
        optional: bool,
    ) -> Result<Files, String> {
        let found = self.contents.objects.config_maps.get(name);
        let Some(map) = found.and_then(Option::as_ref) else {
            return absent(optional, || format!("configmap {name:?} not found"));
        };
        let texts = map.data.iter().flatten();
        let texts = texts.map(|(key, text)| (key.clone(), text.clone().into_bytes()));
        let binary = map.binary_data.iter().flatten();
        let binary = binary.map(|(key, bytes)| (key.clone(), bytes.0.clone()));
        let data: BTreeMap<String, Vec<u8>> = binary.chain(texts).collect();
        project(data, items, mode, optional, |key| {
            format!("configmap references non-existent config key: {key}")
        })
    }

    fn secret(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        mode: i32,
        optional: bool,
    ) -> Result<Files, String> {
        let found = self.contents.objects.secrets.get(name);
        let Some(secret) = found.and_then(Option::as_ref) else {
            return absent(optional, || format!("secret {name:?} not found"));
        };
        let data = secret.data.iter().flatten();
        let data = data.map(|(key, bytes)| (key.clone(), bytes.0.clone()));
        project(data.collect(), items, mode, optional, |key| {
            format!("references non-existent secret key: {key}")
        })
    }

    fn downward(
        &self,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: i32,
    ) -> Result<Files, String> {
        let (pod, sources) = (self.pod, &self.contents.objects);
        let mut files = Files::new();
        for item in items.unwrap_or_default() {
            let text = if let Some(field) = &item.field_ref {
                environment::field::of_pod(pod, &field.field_path, sources)?
            } else if let Some(resource) = &item.resource_field_ref {
                let containers = &state::spec(pod).containers;
                let Some(any) = containers.first() else {
                    continue;
                };
                environment::field::of_resources(pod, any, resource, sources)?
            } else {
                String::new()
            };
            let mode = item.mode.unwrap_or(mode);
            files.insert(item.path.clone(), File::new(text, mode));
        }
        Ok(files)
    }

    /// Later sources win. All that is missing is told at once.
    fn projected(&self, volume: &ProjectedVolumeSource) -> Result<Files, String> {
        let mode = volume.default_mode.unwrap_or(FILE_MODE);
        let (mut files, mut errors) = (Files::new(), Vec::new());
        for source in volume.sources.iter().flatten() {
            let made = if let Some(secret) = &source.secret {
                let optional = secret.optional.unwrap_or(false);
                self.secret(&secret.name, secret.items.as_deref(), mode, optional)
            } else if let Some(map) = &source.config_map {
                let optional = map.optional.unwrap_or(false);
                self.config_map(&map.name, map.items.as_deref(), mode, optional)
            } else if let Some(downward) = &source.downward_api {
                self.downward(downward.items.as_deref(), mode)
            } else if let Some(token) = &source.service_account_token {
                self.token(token, mode)
            } else {
                Err("projected volume source is of a kind that this node does not know".to_owned())
            };
            match made {
                Ok(made) => files.extend(made),
                Err(error) => errors.push(error),
            }
        }
        match errors.as_slice() {
            [] => Ok(files),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// Only the pod's one user reads its token, or its group, where it has one.
    fn token(&self, source: &ServiceAccountTokenProjection, mode: i32) -> Result<Files, String> {
        let Some(token) = self.contents.tokens.get(&TokenSpec::of(source)) else {
            return Err("failed to fetch token".to_owned());
        };
        let mut file = File::new(token.clone(), mode);
        file.owner = only_user(self.pod);
        if file.owner.is_some() || super::group(self.pod).is_some() {
            file.mode = TOKEN_MODE;
        }
        Ok(Files::from([(source.path.clone(), file)]))
    }
}

fn absent(optional: bool, why: impl FnOnce() -> String) -> Result<Files, String> {
    if optional {
        Ok(Files::new())
    } else {
        Err(why())
    }
}

/// All keys under their own names, or the items that are asked for.
fn project(
    mut data: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    mode: i32,
    optional: bool,
    missing: impl Fn(&str) -> String,
) -> Result<Files, String> {
    let items = items.unwrap_or_default();
    if items.is_empty() {
        let all = data.into_iter();
        return Ok(all
            .map(|(key, bytes)| (key, File::new(bytes, mode)))
            .collect());
    }
    let mut files = Files::new();
    for item in items {
        match data.get_mut(&item.key) {
            Some(bytes) => {
                let file = File::new(bytes.clone(), item.mode.unwrap_or(mode));
                files.insert(item.path.clone(), file);
            }
            None if optional => {}
            None => return Err(missing(&item.key)),
        }
    }
    Ok(files)
}

/// The user of all containers, when they all say one and the same.
fn only_user(pod: &Pod) -> Option<u32> {
    let spec = state::spec(pod);
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.run_as_user);
    let containers = spec.containers.iter().chain(state::init_containers(spec));
    let mut users = containers.map(|container| {
        let context = container.security_context.as_ref();
        context.and_then(|context| context.run_as_user).or(of_pod)
    });
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(())?;
    u32::try_from(first).ok()
}

#[cfg(test)]
mod tests;
