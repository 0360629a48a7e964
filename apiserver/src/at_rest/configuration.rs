//! Upstream's EncryptionConfiguration (`apiserver.config.k8s.io/v1`): which resources, which
//! providers in order, with upstream's checks. Pure.
//!
//! A provider says whose keys are used; how they seal is ours, see `sealed`.

use super::keyring::{Resources, Rule};
use super::sealed::{Cipher, Key};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";
const AES_KEY_BYTES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_BYTES: &[usize] = &[32];
/// A sealed value names its key in at most this many bytes.
const NAME_BYTES_MAX: usize = 255;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Configuration {
    api_version: String,
    kind: String,
    #[serde(default)]
    resources: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    providers: Vec<Provider>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    aesgcm: Option<Keys>,
    aescbc: Option<Keys>,
    secretbox: Option<Keys>,
    #[serde(default, deserialize_with = "present")]
    identity: bool,
    #[serde(default, deserialize_with = "present")]
    kms: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default)]
    keys: Vec<NamedKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedKey {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
}

/// Says everything but the key.
impl std::fmt::Debug for NamedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedKey")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// The rules of YAML or JSON; else everything that is wrong with it, in one line.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let found: Configuration = serde_yaml_ng::from_str(text).map_err(|error| error.to_string())?;
    if found.api_version != API_VERSION || found.kind != KIND {
        return Err(format!(
            "it is {} of {}, not {KIND} of {API_VERSION}",
            found.kind, found.api_version
        ));
    }
    let mut errors = Vec::new();
    if found.resources.is_empty() {
        errors.push("resources: Required value: at least one resources is required".to_owned());
    }
    let rules = found
        .resources
        .iter()
        .enumerate()
        .map(|(place, entry)| rule(entry, &format!("resources[{place}]"), &mut errors))
        .collect();
    match errors.as_slice() {
        [] => Ok(rules),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

fn rule(entry: &Entry, path: &str, errors: &mut Vec<String>) -> Rule {
    let (resources, providers) = (format!("{path}.resources"), format!("{path}.providers"));
    if entry.resources.is_empty() {
        errors.push(format!(
            "{resources}: Required value: at least one {resources} is required"
        ));
    }
    overlap(&entry.resources, &resources, errors);
    let named = entry
        .resources
        .iter()
        .enumerate()
        .filter_map(|(place, name)| {
            self::resources(name, &format!("{resources}[{place}]"), errors)
        });
    let named = named.collect();
    if entry.providers.is_empty() {
        errors.push(format!(
            "{providers}: Required value: at least one {providers} is required"
        ));
    }
    let mut keys = Vec::new();
    for (place, provider) in entry.providers.iter().enumerate() {
        keys.extend(self::keys(
            provider,
            &format!("{providers}[{place}]"),
            errors,
        ));
    }
    Rule {
        resources: named,
        keys,
    }
}

/// `RESOURCE.GROUP`; what comes before the first dot is the resource.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}

fn overlap(names: &[String], path: &str, errors: &mut Vec<String>) {
    let pairs = || {
        names.iter().enumerate().flat_map(|(place, a)| {
            let rest = names[place + 1..].iter();
            rest.map(move |b| (a.as_str(), b.as_str()))
        })
    };
    let shown = serde_json::to_string(names).unwrap_or_default();
    if pairs().any(|(a, b)| split(a) == split(b)) {
        errors.push(format!(
            "{path}: Invalid value: {shown}: the same resource cannot be specified multiple times"
        ));
    }
    let masks = |a: &str, b: &str| {
        let ((a, a_group), (b, b_group)) = (split(a), split(b));
        (a, a_group) == ("*", "*")
            || (b, b_group) == ("*", "*")
            || a_group == b_group && (a == "*" || b == "*")
    };
    if pairs().any(|(a, b)| split(a) != split(b) && masks(a, b)) {
        errors.push(format!(
            "{path}: Invalid value: {shown}: using overlapping resources such as 'secrets' and \
             '*.' in the same resource list is not allowed as they will be masked"
        ));
    }
}

fn resources(name: &str, path: &str, errors: &mut Vec<String>) -> Option<Resources> {
    let (plural, group) = split(name);
    let why = if name.chars().any(char::is_uppercase) {
        "resource name should not contain capital letters"
    } else if name == "*" {
        "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    } else if matches!(
        name,
        "apiserveripinfo" | "serviceipallocations" | "servicenodeportallocations"
    ) {
        "resources which do not have REST API/s cannot be encrypted"
    } else if group == "events.k8s.io" {
        "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' \
         instead in the config file"
    } else if group == "extensions" {
        "'extensions' group has been removed and cannot be used for encryption"
    } else if group == "*" && plural != "*" {
        "encrypting the same resource across groups is not supported"
    } else {
        return Some(match (plural, group) {
            ("*", "*") => Resources::All,
            ("*", group) => Resources::Group(group.to_owned()),
            (plural, group) => Resources::One {
                group: group.to_owned(),
                plural: plural.to_owned(),
            },
        });
    };
    errors.push(format!("{path}: Invalid value: {name:?}: {why}"));
    None
}

fn keys(provider: &Provider, path: &str, errors: &mut Vec<String>) -> Vec<Option<Key>> {
    let Provider {
        aesgcm,
        aescbc,
        secretbox,
        ..
    } = provider;
    let counted = [
        aesgcm.is_some(),
        aescbc.is_some(),
        secretbox.is_some(),
        provider.identity,
        provider.kms,
    ];
    match counted.iter().filter(|is_there| **is_there).count() {
        0 => errors.push(format!(
            "{path}: Invalid value: provider does not contain any of the expected providers: KMS, \
             AESGCM, AESCBC, Secretbox, Identity"
        )),
        1 => {}
        _ => errors.push(format!(
            "{path}: Invalid value: more than one provider specified in a single element, should \
             split into different list elements"
        )),
    }
    if provider.kms {
        errors.push(format!(
            "{path}.kms: Forbidden: this server calls no key management service; use aesgcm or \
             secretbox, or leave the configuration out and keep the key file on a disk that is \
             unlocked at boot"
        ));
    }
    let mut found = Vec::new();
    let named = [
        ("aesgcm", aesgcm, Cipher::Aes256Gcm, AES_KEY_BYTES),
        ("aescbc", aescbc, Cipher::Aes256Gcm, AES_KEY_BYTES),
        (
            "secretbox",
            secretbox,
            Cipher::ChaCha20Poly1305,
            SECRETBOX_KEY_BYTES,
        ),
    ];
    for (name, keys, cipher, lengths) in named {
        let Some(keys) = keys else { continue };
        let path = format!("{path}.{name}.keys");
        if keys.keys.is_empty() {
            errors.push(format!(
                "{path}: Required value: at least one keys is required"
            ));
        }
        for (place, one) in keys.keys.iter().enumerate() {
            let secret = secret(one, &format!("{path}[{place}]"), lengths, errors);
            found.extend(secret.map(|secret| {
                Some(Key {
                    name: format!("{name}:{}", one.name),
                    cipher,
                    secret,
                })
            }));
        }
    }
    if provider.identity {
        found.push(None);
    }
    found
}

fn secret(
    key: &NamedKey,
    path: &str,
    lengths: &[usize],
    errors: &mut Vec<String>,
) -> Option<Vec<u8>> {
    if key.name.is_empty() {
        errors.push(format!(
            "{path}.name: Required value: name is a mandatory field for a key"
        ));
    }
    if key.name.len() > NAME_BYTES_MAX - "secretbox:".len() {
        errors.push(format!("{path}.name: Too long"));
    }
    let path = format!("{path}.secret");
    if key.secret.is_empty() {
        errors.push(format!(
            "{path}: Required value: secret is a mandatory field for a key"
        ));
        return None;
    }
    let Ok(secret) = STANDARD.decode(&key.secret) else {
        errors.push(format!(
            "{path}: Invalid value: \"REDACTED\": secrets must be base64 encoded"
        ));
        return None;
    };
    if !lengths.contains(&secret.len()) {
        let expected: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        errors.push(format!(
            "{path}: Invalid value: \"REDACTED\": secret is not of the expected length, got {}, \
             expected one of [{}]",
            secret.len(),
            expected.join(" ")
        ));
        return None;
    }
    Some(secret)
}

#[cfg(test)]
mod tests;
