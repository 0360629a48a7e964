//! A pod's host name and the text of its /etc/hosts. Pure. `cluster` is the cluster's domain.

use super::state;
use crate::families::Families;
use k8s_openapi::api::core::v1::Pod;
use std::fmt::Write;
use std::net::IpAddr;

/// Host names longer than this are cut, as the kernel would.
const HOSTNAME_BYTES_MAX: usize = 63;
/// A full name is not cut; the kernel takes this much.
const FQDN_BYTES_MAX: usize = 64;

/// The pod's host name, and the domain it is in where it has a subdomain.
fn names(pod: &Pod, cluster: &str) -> (String, Option<String>) {
    let spec = state::spec(pod);
    if let Some(name) = &spec.hostname_override {
        return (cut(name), None);
    }
    let name = given(spec.hostname.as_deref()).or(pod.metadata.name.as_deref());
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let domain = given(spec.subdomain.as_deref())
        .map(|subdomain| format!("{subdomain}.{namespace}.svc.{cluster}"));
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
pub fn hostname(pod: &Pod, cluster: &str) -> Result<String, String> {
    let is_full = state::spec(pod).set_hostname_as_fqdn.unwrap_or(false);
    let (name, domain) = names(pod, cluster);
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
pub fn hosts(pod: &Pod, ips: Families<IpAddr>, node: &str, cluster: &str) -> String {
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
        let names = match names(pod, cluster) {
            (name, Some(domain)) => format!("{name}.{domain}\t{name}"),
            (name, None) => name,
        };
        for ip in ips.iter() {
            let _ = writeln!(text, "{ip}\t{names}");
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

#[cfg(test)]
mod tests;
