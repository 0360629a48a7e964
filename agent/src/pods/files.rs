//! The texts of a pod's /etc/hosts and /etc/resolv.conf. Pure.

use super::state;
use k8s_openapi::api::core::v1::Pod;
use std::fmt::Write;
use std::net::IpAddr;

/// Host names longer than this are cut, as the kernel would.
const HOSTNAME_BYTES_MAX: usize = 63;
/// A full name is not cut; the kernel takes this much.
const FQDN_BYTES_MAX: usize = 64;
/// Upstream's default.
const CLUSTER_DOMAIN: &str = "cluster.local";

/// The pod's host name, and the domain it is in where it has a subdomain.
fn names(pod: &Pod) -> (String, Option<String>) {
    let spec = state::spec(pod);
    if let Some(name) = &spec.hostname_override {
        return (cut(name), None);
    }
    let name = given(spec.hostname.as_deref()).or(pod.metadata.name.as_deref());
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let domain = given(spec.subdomain.as_deref())
        .map(|subdomain| format!("{subdomain}.{namespace}.svc.{CLUSTER_DOMAIN}"));
    (cut(name.unwrap_or_default()), domain)
}

fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

fn cut(name: &str) -> String {
    let cut = &name[..name.len().min(HOSTNAME_BYTES_MAX)];
    cut.trim_end_matches(['-', '.']).to_owned()
}

/// What the kernel is told: the host name, or all of it with `setHostnameAsFQDN`.
pub fn hostname(pod: &Pod) -> Result<String, String> {
    let is_full = state::spec(pod).set_hostname_as_fqdn.unwrap_or(false);
    let (name, domain) = names(pod);
    let full = match domain.filter(|_| is_full) {
        Some(domain) => format!("{name}.{domain}"),
        None => return Ok(name),
    };
    if full.len() > FQDN_BYTES_MAX {
        return Err(format!(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too \
             long ({FQDN_BYTES_MAX} characters is the max, {} characters requested)",
            full.len()
        ));
    }
    Ok(full)
}

/// `node` is the node's own file, for a pod on its network.
pub fn hosts(pod: &Pod, ip: Option<IpAddr>, node: &str) -> String {
    let spec = state::spec(pod);
    let mut text = if spec.host_network.unwrap_or(false) {
        format!("# Kubernetes-managed hosts file (host network).\n{node}")
    } else {
        let mut text = "# Kubernetes-managed hosts file.\n\
                        127.0.0.1\tlocalhost\n\
                        ::1\tlocalhost ip6-localhost ip6-loopback\n\
                        fe00::0\tip6-localnet\n\
                        fe00::0\tip6-mcastprefix\n\
                        fe00::1\tip6-allnodes\n\
                        fe00::2\tip6-allrouters\n"
            .to_owned();
        if let Some(ip) = ip {
            let line = match names(pod) {
                (name, Some(domain)) => format!("{ip}\t{name}.{domain}\t{name}"),
                (name, None) => format!("{ip}\t{name}"),
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    };
    let aliases = spec.host_aliases.as_deref().unwrap_or_default();
    if !aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        let names = alias.hostnames.clone().unwrap_or_default().join("\t");
        let _ = writeln!(text, "{}\t{names}", alias.ip);
    }
    text
}

/// `node` is the node's own file. Without a cluster DNS, `ClusterFirst` is the node's resolver,
/// as upstream falls back.
pub fn resolv_conf(pod: &Pod, node: &str) -> String {
    let spec = state::spec(pod);
    let mut servers = Vec::new();
    let mut searches = Vec::new();
    let mut options: Vec<String> = Vec::new();
    if spec.dns_policy.as_deref() != Some("None") {
        for line in node.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => servers.extend(words.next().map(str::to_owned)),
                Some("search") => searches = words.map(str::to_owned).collect(),
                Some("options") => options.extend(words.map(str::to_owned)),
                _ => {}
            }
        }
    }
    if let Some(config) = &spec.dns_config {
        servers.extend(config.nameservers.iter().flatten().cloned());
        searches.extend(config.searches.iter().flatten().cloned());
        for option in config.options.iter().flatten() {
            let name = option.name.clone().unwrap_or_default();
            options.retain(|known| known.split(':').next() != Some(&name));
            options.push(match &option.value {
                Some(value) => format!("{name}:{value}"),
                None => name,
            });
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    servers.retain(|server| seen.insert(server.clone()));
    let mut text = String::new();
    for server in servers {
        let _ = writeln!(text, "nameserver {server}");
    }
    if !searches.is_empty() {
        let _ = writeln!(text, "search {}", searches.join(" "));
    }
    if !options.is_empty() {
        let _ = writeln!(text, "options {}", options.join(" "));
    }
    text
}

#[cfg(test)]
mod tests;
