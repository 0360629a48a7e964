//! The texts of a pod's /etc/hosts and /etc/resolv.conf. Pure.

use super::state;
use k8s_openapi::api::core::v1::Pod;
use std::fmt::Write;
use std::net::IpAddr;

/// Host names longer than this are cut, as the kernel would.
const HOSTNAME_BYTES_MAX: usize = 63;

pub fn hostname(pod: &Pod) -> String {
    let spec = state::spec(pod);
    let name = spec.hostname.as_deref().filter(|name| !name.is_empty());
    let name = name.or(pod.metadata.name.as_deref()).unwrap_or_default();
    let cut = &name[..name.len().min(HOSTNAME_BYTES_MAX)];
    cut.trim_end_matches(['-', '.']).to_owned()
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
            let name = hostname(pod);
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let subdomain = spec.subdomain.as_deref().filter(|name| !name.is_empty());
            let line = match subdomain {
                Some(subdomain) => {
                    format!("{ip}\t{name}.{subdomain}.{namespace}.svc.cluster.local\t{name}")
                }
                None => format!("{ip}\t{name}"),
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
