//! PodSecurityConfiguration (`pod-security.admission.config.k8s.io/v1`): the levels of namespaces
//! without labels, and who and what is exempt. Pure.

use super::PodSecurity;
use super::level::{Level, LevelVersion, Policy, Version};
use coracle_api::names;
use serde::Deserialize;
use std::collections::BTreeSet;

pub const API_VERSION: &str = "pod-security.admission.config.k8s.io/v1";
pub const KIND: &str = "PodSecurityConfiguration";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    api_version: String,
    kind: String,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    exemptions: Exemptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Defaults {
    enforce: String,
    enforce_version: String,
    audit: String,
    audit_version: String,
    warn: String,
    warn_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Exemptions {
    usernames: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl Configuration {
    /// Checks all of it; says the field and what is right where it is not.
    pub fn settle(self) -> Result<PodSecurity, String> {
        if self.api_version != API_VERSION || self.kind != KIND {
            return Err(format!(
                "it must be of apiVersion {API_VERSION} and kind {KIND}, not {} and {}",
                self.api_version, self.kind
            ));
        }
        let given = &self.defaults;
        let defaults = Policy {
            enforce: level_version("enforce", &given.enforce, &given.enforce_version)?,
            audit: level_version("audit", &given.audit, &given.audit_version)?,
            warn: level_version("warn", &given.warn, &given.warn_version)?,
        };
        let exempt = self.exemptions;
        let is_user = |name: &str| match name {
            "" => vec!["username must not be empty".to_owned()],
            _ => Vec::new(),
        };
        Ok(PodSecurity {
            defaults,
            exempt_users: set("usernames", exempt.usernames, is_user)?,
            exempt_namespaces: set("namespaces", exempt.namespaces, names::dns_label)?,
            exempt_runtime_classes: set(
                "runtimeClasses",
                exempt.runtime_classes,
                names::dns_subdomain,
            )?,
        })
    }
}

fn level_version(mode: &str, level: &str, version: &str) -> Result<LevelVersion, String> {
    let bad = |field: String, value: &str, why: &str| {
        format!("defaults.{field}: Invalid value: {value:?}: {why}")
    };
    Ok(LevelVersion {
        level: match level {
            "" => Level::Privileged,
            text => Level::parse(text).map_err(|why| bad(mode.to_owned(), text, why))?,
        },
        version: match version {
            "" => Version::Latest,
            text => {
                Version::parse(text).map_err(|why| bad(format!("{mode}-version"), text, why))?
            }
        },
    })
}

fn set(
    field: &str,
    given: Vec<String>,
    errors_of: impl Fn(&str) -> Vec<String>,
) -> Result<BTreeSet<String>, String> {
    let mut all = BTreeSet::new();
    for (place, name) in given.into_iter().enumerate() {
        let path = format!("exemptions.{field}[{place}]");
        let errors = errors_of(&name);
        if !errors.is_empty() {
            return Err(format!(
                "{path}: Invalid value: {name:?}: {}",
                errors.join(", ")
            ));
        }
        if all.contains(&name) {
            return Err(format!("{path}: Duplicate value: {name:?}"));
        }
        all.insert(name);
    }
    Ok(all)
}
