//! Who answers names for a pod, as upstream's kubelet has it, and the text of its /etc/resolv.conf.
//! Pure.

use super::state;
use crate::dns::ClusterDns;
use crate::network::Resolvers;
use k8s_openapi::api::core::v1::{Pod, PodDNSConfig};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Bounds of what resolvers read, in upstream's numbers.
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_LINE_BYTES_MAX: usize = 2048;
const SEARCH_BYTES_MAX: usize = 253;

pub const MISSING_CLUSTER_DNS: &str = "MissingClusterDNS";

/// An event that is to tell of it, in upstream's words.
#[derive(Debug, PartialEq)]
pub struct Problem {
    pub reason: &'static str,
    pub message: String,
    /// What the node's own event says, where it has one.
    pub of_node: Option<&'static str>,
}

const MISSING: &str = "kubelet does not have ClusterDNS IP configured and cannot create Pod using \
                       \"ClusterFirst\" policy. Falling back to \"Default\" policy.";

/// `node` is the node's own file. Without a cluster DNS, `ClusterFirst` is the node's resolver.
pub fn of_pod(pod: &Pod, node: &str, cluster: Option<&ClusterDns>) -> (Resolvers, Vec<Problem>) {
    let spec = state::spec(pod);
    let mut problems = Vec::new();
    let is_clusters = match spec.dns_policy.as_deref() {
        Some("None" | "Default") => false,
        Some("ClusterFirstWithHostNet") => true,
        _ => !spec.host_network.unwrap_or(false),
    };
    let mut resolvers = match (spec.dns_policy.as_deref(), cluster) {
        (Some("None"), _) => Resolvers::default(),
        (_, Some(cluster)) if is_clusters => Resolvers::of_cluster(pod, node, cluster),
        _ => {
            if is_clusters {
                problems.push(missing(pod));
            }
            Resolvers::of_node(node)
        }
    };
    if let Some(config) = &spec.dns_config {
        resolvers.add(config);
    }
    problems.extend(resolvers.bound_servers());
    problems.extend(resolvers.bound_searches());
    (resolvers, problems)
}

fn missing(pod: &Pod) -> Problem {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let meta = &pod.metadata;
    let (name, namespace) = (text(&meta.name), text(&meta.namespace));
    let uid = text(&meta.uid);
    Problem {
        reason: MISSING_CLUSTER_DNS,
        message: format!("pod: \"{name}_{namespace}({uid})\". {MISSING}"),
        of_node: Some(MISSING),
    }
}

impl Resolvers {
    fn of_node(text: &str) -> Self {
        let mut resolvers = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => resolvers.servers.extend(words.next().map(str::to_owned)),
                Some("search") => {
                    let searches = words.filter(|word| *word != ".");
                    let searches = searches.map(|word| word.strip_suffix('.').unwrap_or(word));
                    resolvers.searches = searches.map(str::to_owned).collect();
                }
                Some("options") => {
                    for option in words {
                        resolvers.set_option(option.to_owned());
                    }
                }
                _ => {}
            }
        }
        resolvers
    }

    fn of_cluster(pod: &Pod, node: &str, cluster: &ClusterDns) -> Self {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let domain = &cluster.domain;
        let mut searches = vec![
            format!("{namespace}.svc.{domain}"),
            format!("svc.{domain}"),
            domain.clone(),
        ];
        searches.extend(Self::of_node(node).searches);
        once(&mut searches);
        Self {
            servers: cluster.servers.iter().map(ToString::to_string).collect(),
            searches,
            options: vec!["ndots:5".to_owned()],
        }
    }

    fn add(&mut self, config: &PodDNSConfig) {
        self.servers
            .extend(config.nameservers.iter().flatten().cloned());
        self.searches
            .extend(config.searches.iter().flatten().cloned());
        once(&mut self.servers);
        once(&mut self.searches);
        for option in config.options.iter().flatten() {
            let name = option.name.clone().unwrap_or_default();
            let value = option.value.as_deref().filter(|value| !value.is_empty());
            self.set_option(match value {
                Some(value) => format!("{name}:{value}"),
                None => name,
            });
        }
    }

    /// The last one of a name counts.
    fn set_option(&mut self, option: String) {
        let name = |option: &str| option.split(':').next().unwrap_or_default().to_owned();
        self.options.retain(|known| name(known) != name(&option));
        self.options.push(option);
    }

    fn bound_servers(&mut self) -> Option<Problem> {
        if self.servers.len() <= SERVERS_MAX {
            return None;
        }
        self.servers.truncate(SERVERS_MAX);
        let line = self.servers.join(" ");
        Some(forming(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied \
             nameserver line is: {line}"
        )))
    }

    fn bound_searches(&mut self) -> Option<Problem> {
        let given = self.searches.len();
        self.searches.truncate(SEARCHES_MAX);
        self.searches
            .retain(|search| search.len() <= SEARCH_BYTES_MAX);
        while self.searches.join(" ").len() > SEARCH_LINE_BYTES_MAX {
            self.searches.pop();
        }
        (self.searches.len() < given).then(|| {
            let line = self.searches.join(" ");
            forming(format!(
                "Search Line limits were exceeded, some search paths have been omitted, the \
                 applied search line is: {line}"
            ))
        })
    }

    /// Of a file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for server in &self.servers {
            let _ = writeln!(text, "nameserver {server}");
        }
        for (word, list) in [("search", &self.searches), ("options", &self.options)] {
            if !list.is_empty() {
                let _ = writeln!(text, "{word} {}", list.join(" "));
            }
        }
        text
    }
}

fn forming(message: String) -> Problem {
    Problem {
        reason: "DNSConfigForming",
        message,
        of_node: None,
    }
}

fn once(list: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    list.retain(|item| seen.insert(item.clone()));
}

#[cfg(test)]
mod tests;
