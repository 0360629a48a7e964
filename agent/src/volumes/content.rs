//! `configMap`, `secret`, `downwardAPI` and `projected`: volumes whose files are written from
//! objects of the API. What is in them is decided here, from what was read; pure.
//!
//! Only read by containers. Secrets and tokens stay in memory: they reach no disk but swap, and
//! that only on Linux before 6.3.

use super::files::{File, Files};
use crate::pods::environment::{self, Sources};
use crate::pods::state;
use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, Pod, ServiceAccountTokenProjection, Volume, VolumeProjection,
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
    let volumes = state::spec(pod).volumes.iter().flatten();
    for source in volumes.flat_map(sources) {
        match source {
            Source::ConfigMap(chosen) if !chosen.name.is_empty() => {
                needs.config_maps.insert(chosen.name.to_owned());
            }
            Source::Secret(chosen) if !chosen.name.is_empty() => {
                needs.secrets.insert(chosen.name.to_owned());
            }
            Source::Token(token, _) => {
                needs.tokens.insert(TokenSpec::of(token));
            }
            _ => {}
        }
    }
    needs
}

/// The files of one volume, or what is missing, in upstream's words. Later sources win, and all
/// that is missing is told at once.
pub fn files(pod: &Pod, volume: &Volume, contents: &Contents) -> Result<Files, String> {
    let maker = Maker { pod, contents };
    let (mut files, mut errors) = (Files::new(), Vec::new());
    for source in sources(volume) {
        match maker.make(&source) {
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

/// One of the things that a volume is written from; modes are of files that have none of their own.
enum Source<'a> {
    ConfigMap(Chosen<'a>),
    Secret(Chosen<'a>),
    Downward(&'a [DownwardAPIVolumeFile], i32),
    Token(&'a ServiceAccountTokenProjection, i32),
    Unknown,
}

/// What of an object with data is shown.
struct Chosen<'a> {
    name: &'a str,
    /// None of them for all keys under their own names.
    items: &'a [KeyToPath],
    mode: i32,
    /// Whether the object, or an item of it, may be absent.
    optional: bool,
}

impl<'a> Chosen<'a> {
    fn new(
        name: &'a str,
        items: &'a Option<Vec<KeyToPath>>,
        mode: i32,
        optional: Option<bool>,
    ) -> Self {
        Self {
            name,
            items: items.as_deref().unwrap_or_default(),
            mode,
            optional: optional.unwrap_or(false),
        }
    }
}

fn sources(volume: &Volume) -> Vec<Source<'_>> {
    let mode = |given: Option<i32>| given.unwrap_or(FILE_MODE);
    if let Some(map) = &volume.config_map {
        let mode = mode(map.default_mode);
        let chosen = Chosen::new(&map.name, &map.items, mode, map.optional);
        return vec![Source::ConfigMap(chosen)];
    }
    if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let mode = mode(secret.default_mode);
        let chosen = Chosen::new(name, &secret.items, mode, secret.optional);
        return vec![Source::Secret(chosen)];
    }
    if let Some(downward) = &volume.downward_api {
        let items = downward.items.as_deref().unwrap_or_default();
        return vec![Source::Downward(items, mode(downward.default_mode))];
    }
    let Some(projected) = &volume.projected else {
        return Vec::new();
    };
    let mode = mode(projected.default_mode);
    let all = projected.sources.iter().flatten();
    all.map(|source| projection(source, mode)).collect()
}

fn projection(source: &VolumeProjection, mode: i32) -> Source<'_> {
    if let Some(secret) = &source.secret {
        let chosen = Chosen::new(&secret.name, &secret.items, mode, secret.optional);
        Source::Secret(chosen)
    } else if let Some(map) = &source.config_map {
        Source::ConfigMap(Chosen::new(&map.name, &map.items, mode, map.optional))
    } else if let Some(downward) = &source.downward_api {
        Source::Downward(downward.items.as_deref().unwrap_or_default(), mode)
    } else if let Some(token) = &source.service_account_token {
        Source::Token(token, mode)
    } else {
        Source::Unknown
    }
}

struct Maker<'a> {
    pod: &'a Pod,
    contents: &'a Contents,
}

impl Maker<'_> {
    fn make(&self, source: &Source<'_>) -> Result<Files, String> {
        match source {
            Source::ConfigMap(chosen) => self.config_map(chosen),
            Source::Secret(chosen) => self.secret(chosen),
            Source::Downward(items, mode) => self.downward(items, *mode),
            Source::Token(token, mode) => self.token(token, *mode),
            Source::Unknown => {
                Err("projected volume source is of a kind that this node does not know".to_owned())
            }
        }
    }

    fn config_map(&self, chosen: &Chosen<'_>) -> Result<Files, String> {
        let found = self.contents.objects.config_maps.get(chosen.name);
        let Some(map) = found.and_then(Option::as_ref) else {
            return absent(chosen, "configmap");
        };
        let binary = map.binary_data.iter().flatten();
        let binary = binary.map(|(key, bytes)| (key.as_str(), bytes.0.as_slice()));
        let texts = map.data.iter().flatten();
        let texts = texts.map(|(key, text)| (key.as_str(), text.as_bytes()));
        project(binary.chain(texts).collect(), chosen, |key| {
            format!("configmap references non-existent config key: {key}")
        })
    }

    fn secret(&self, chosen: &Chosen<'_>) -> Result<Files, String> {
        let found = self.contents.objects.secrets.get(chosen.name);
        let Some(secret) = found.and_then(Option::as_ref) else {
            return absent(chosen, "secret");
        };
        let data = secret.data.iter().flatten();
        let data = data.map(|(key, bytes)| (key.as_str(), bytes.0.as_slice()));
        project(data.collect(), chosen, |key| {
            format!("references non-existent secret key: {key}")
        })
    }

    fn downward(&self, items: &[DownwardAPIVolumeFile], mode: i32) -> Result<Files, String> {
        let (pod, sources) = (self.pod, &self.contents.objects);
        let mut files = Files::new();
        for item in items {
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

fn absent(chosen: &Chosen<'_>, kind: &str) -> Result<Files, String> {
    if chosen.optional {
        Ok(Files::new())
    } else {
        Err(format!("{kind} {:?} not found", chosen.name))
    }
}

/// Copies what is chosen, and nothing else: objects may have much more.
fn project(
    data: BTreeMap<&str, &[u8]>,
    chosen: &Chosen<'_>,
    missing: impl Fn(&str) -> String,
) -> Result<Files, String> {
    if chosen.items.is_empty() {
        let all = data.into_iter();
        return Ok(all
            .map(|(key, bytes)| (key.to_owned(), File::new(bytes, chosen.mode)))
            .collect());
    }
    let mut files = Files::new();
    for item in chosen.items {
        match data.get(item.key.as_str()) {
            Some(bytes) => {
                let file = File::new(*bytes, item.mode.unwrap_or(chosen.mode));
                files.insert(item.path.clone(), file);
            }
            None if chosen.optional => {}
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
