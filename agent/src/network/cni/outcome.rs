//! What plugins say: results in all versions of the specification, and errors. Pure.

use super::configuration::Version;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::process::ExitStatus;

/// Of what a plugin said, as much stands in an error.
const QUOTED_CHARACTERS_MAX: usize = 512;

/// A result of ADD, in the version of its network.
pub type Outcome = Map<String, Value>;

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum OutcomeError {
    #[error("its result is no JSON object: {said:?}")]
    NoObject { said: String },
    #[error("unsupported CNI result version {0:?}")]
    Version(String),
    #[error("its result has an address that is none: {0}")]
    Address(String),
}

/// The result as a plugin printed it, made one of `version`.
pub fn read(said: &[u8], version: Version) -> Result<Outcome, OutcomeError> {
    let Ok(Value::Object(mut outcome)) = serde_json::from_slice(said) else {
        return Err(OutcomeError::NoObject { said: quoted(said) });
    };
    // A plugin that does not say it speaks the version that it was spoken to in.
    let spoken = match outcome.get("cniVersion") {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        _ => version.text().to_owned(),
    };
    let spoken = Version::parse(&spoken).ok_or(OutcomeError::Version(spoken))?;
    if spoken != version {
        convert(&mut outcome, version);
    }
    outcome.insert("cniVersion".to_owned(), version.text().into());
    addresses(&outcome, "")?;
    Ok(outcome)
}

/// Addresses say their family until 1.0.0.
fn convert(outcome: &mut Outcome, version: Version) {
    let Some(Value::Array(all)) = outcome.get_mut("ips") else {
        return;
    };
    for one in all {
        let address = address(one);
        let Value::Object(fields) = one else { continue };
        if version >= Version::V1_0_0 {
            fields.remove("version");
        } else if let Some(address) = address {
            let family = if address.is_ipv4() { "4" } else { "6" };
            fields.insert("version".to_owned(), family.into());
        }
    }
}

/// Of one link of the sandbox, and what is said to be of none. The first is IPv4 where there is one,
/// as containerd has it.
pub fn addresses(outcome: &Outcome, link: &str) -> Result<Vec<IpAddr>, OutcomeError> {
    let list = |key: &str| match outcome.get(key) {
        Some(Value::Array(list)) => list.as_slice(),
        _ => &[],
    };
    let links = list("interfaces");
    let mut found = Vec::new();
    for one in list("ips") {
        let at = one.get("interface").and_then(Value::as_u64);
        let named = at.map(|at| {
            let place = usize::try_from(at).ok();
            let link = place.and_then(|place| links.get(place));
            link.and_then(|link| link.get("name")?.as_str())
        });
        let Some(address) = address(one) else {
            return Err(OutcomeError::Address(one.to_string()));
        };
        if named.is_none_or(|name| name == Some(link)) {
            found.push(address);
        }
    }
    found.sort_by_key(IpAddr::is_ipv6);
    Ok(found)
}

fn address(one: &Value) -> Option<IpAddr> {
    let text = one.get("address")?.as_str()?;
    text.split_once('/')?.0.parse().ok()
}

/// What a plugin prints when it fails.
#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    msg: String,
    #[serde(default)]
    details: String,
}

/// Why a plugin failed, in libcni's words.
pub fn failure(said: &[u8], complained: &[u8], status: ExitStatus) -> String {
    if said.is_empty() {
        return match complained {
            [] => format!("netplugin failed with no error message: {status}"),
            _ => format!("netplugin failed: {:?}: {status}", quoted(complained)),
        };
    }
    match serde_json::from_slice::<Failure>(said) {
        Ok(Failure { msg, details }) if details.is_empty() => msg,
        Ok(Failure { msg, details }) => format!("{msg}; {details}"),
        Err(error) => format!(
            "netplugin failed but error parsing its diagnostic message {:?}: {error}",
            quoted(said)
        ),
    }
}

fn quoted(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let mut short: String = text.chars().take(QUOTED_CHARACTERS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
