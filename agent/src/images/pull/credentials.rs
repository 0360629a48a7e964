//! Which entries of the pull secrets are for an image. Pure.
//!
//! As the kubelet's keyring does it: the entry's host must match, label by label with `*`, its
//! port and path must be a prefix, and the longest match is tried first.

use super::super::RegistryCredentials;
use super::super::reference::Reference;
use oci_client::secrets::RegistryAuth;

/// Never empty: without an entry the pull is anonymous.
pub fn fitting(credentials: &[RegistryCredentials], image: &Reference) -> Vec<RegistryAuth> {
    let found = credentials_for(image, credentials).into_iter();
    let mut all: Vec<_> = found
        .map(|(username, password)| RegistryAuth::Basic(username, password))
        .collect();
    if all.is_empty() {
        all.push(RegistryAuth::Anonymous);
    }
    all
}

/// Users and their passwords, what fits best first.
pub fn credentials_for(
    image: &Reference,
    credentials: &[RegistryCredentials],
) -> Vec<(String, String)> {
    let mut found: Vec<(usize, (String, String))> = Vec::new();
    for entry in credentials {
        let registry = bare(&entry.registry);
        let (host, path) = registry.split_once('/').unwrap_or((registry, ""));
        let is_api_path = matches!(path.trim_end_matches('/'), "v1" | "v2");
        let path = if is_api_path {
            ""
        } else {
            path.trim_end_matches('/')
        };
        if host_matches(host, &image.domain) && path_matches(path, &image.path) {
            let auth = (entry.username.clone(), entry.password.clone());
            found.push((host.len() + path.len(), auth));
        }
    }
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.into_iter().map(|(_, auth)| auth).collect()
}

fn bare(registry: &str) -> &str {
    let registry = registry.strip_prefix("https://").unwrap_or(registry);
    registry.strip_prefix("http://").unwrap_or(registry)
}

fn host_matches(pattern: &str, domain: &str) -> bool {
    const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
    if domain == "docker.io" && HUB.contains(&pattern) {
        return true;
    }
    let port = |host: &str| host.rsplit_once(':').map(|(_, port)| port.to_owned());
    if port(pattern) != port(domain) {
        return false;
    }
    let labels = |host: &str| host.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (pattern, domain) = (labels(pattern), labels(domain));
    pattern.len() == domain.len() && pattern.iter().zip(&domain).all(|(p, d)| glob(p, d))
}

/// `*` stands for any part of one label.
fn glob(pattern: &str, label: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == label;
    };
    let Some(rest) = label.strip_prefix(head) else {
        return false;
    };
    (0..=rest.len())
        .filter(|at| rest.is_char_boundary(*at))
        .any(|at| glob(tail, &rest[at..]))
}

fn path_matches(prefix: &str, path: &str) -> bool {
    prefix.is_empty()
        || path
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
