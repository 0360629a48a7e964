//! The file of `--admission-control-config-file`: an AdmissionConfiguration
//! (`apiserver.config.k8s.io/v1`) with what plugins take, beside which plugins are asked at all.

use super::plugin::Plugin;
use super::pod_security::PodSecurity;
use super::pod_security::configuration::Configuration as PodSecurityFile;
use serde::Deserialize;
use serde_yaml_ng::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "AdmissionConfiguration";

/// What admission is told at start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub pod_security: PodSecurity,
    /// Plugins that are not asked.
    pub disabled: BTreeSet<Plugin>,
}

/// For the operator, one line.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("{path}: cannot be read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}: {why}")]
    Bad { path: PathBuf, why: String },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    plugins: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    /// Of a file beside this one, where the configuration is not in place.
    #[serde(default)]
    path: String,
    configuration: Option<Value>,
}

/// Reads the file and those it points to.
pub fn read(path: &Path) -> Result<PodSecurity, ConfigurationError> {
    let bad = |why: String| ConfigurationError::Bad {
        path: path.to_owned(),
        why,
    };
    let file: File = parse(&text(path)?).map_err(bad)?;
    if file.api_version != API_VERSION || file.kind != KIND {
        return Err(bad(format!(
            "it must be of apiVersion {API_VERSION} and kind {KIND}, not {} and {}",
            file.api_version, file.kind
        )));
    }
    let mut pod_security = None;
    for entry in file.plugins {
        if entry.name != Plugin::PodSecurity.name() {
            return Err(bad(format!(
                "plugin {:?}: only PodSecurity takes a configuration",
                entry.name
            )));
        }
        let settled = match entry.configuration {
            Some(value) => PodSecurityFile::deserialize(value)
                .map_err(|error| error.to_string())
                .and_then(PodSecurityFile::settle)
                .map_err(|why| bad(format!("plugin PodSecurity: {why}")))?,
            None if entry.path.is_empty() => PodSecurity::default(),
            None => beside(path, &entry.path)?,
        };
        // The first one counts, as upstream has it.
        pod_security.get_or_insert(settled);
    }
    Ok(pod_security.unwrap_or_default())
}

fn beside(file: &Path, path: &str) -> Result<PodSecurity, ConfigurationError> {
    let path = file.parent().unwrap_or(Path::new("")).join(path);
    parse::<PodSecurityFile>(&text(&path)?)
        .and_then(PodSecurityFile::settle)
        .map_err(|why| ConfigurationError::Bad { path, why })
}

fn text(path: &Path) -> Result<String, ConfigurationError> {
    fs::read_to_string(path).map_err(|source| ConfigurationError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn parse<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    serde_yaml_ng::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
