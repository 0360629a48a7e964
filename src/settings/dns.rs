//! Where the cluster's names are asked for, and what they end in.

use super::{BadSetting, parse};
use crate::cli::DnsArgs;
use coracle_agent::{CLUSTER_DOMAIN_DEFAULT, PodDns};
use coracle_api::names;
use coracle_apiserver::default_objects::ClusterDns;
use std::net::IpAddr;

const ADDRESS: &str = "cluster-dns";
const DOMAIN: &str = "cluster-domain";

/// Of a server, whose nodes answer names themselves on addresses of Services.
pub fn server(args: &DnsArgs, services: &[parse::Cidr]) -> Result<ClusterDns, BadSetting> {
    let addresses = addresses(args)?;
    for address in &addresses {
        if !services.iter().any(|network| network.contains(*address)) {
            let networks: Vec<_> = services.iter().map(|one| one.text.as_str()).collect();
            let expected = format!("must be in --service-cidr {}", networks.join(","));
            return Err(BadSetting::new(ADDRESS, &address.to_string(), expected));
        }
    }
    if !parse::are_one_a_family(&addresses, IpAddr::is_ipv4) {
        let expected = "must be one address, or one of each IP family";
        return Err(BadSetting::new(
            ADDRESS,
            &args.cluster_dns.join(","),
            expected,
        ));
    }
    Ok(ClusterDns {
        addresses,
        domain: domain(args)?.unwrap_or_else(|| CLUSTER_DOMAIN_DEFAULT.to_owned()),
    })
}

/// Of a node: what its pods are told in place of what the cluster says.
pub fn agent(args: &DnsArgs) -> Result<PodDns, BadSetting> {
    Ok(PodDns {
        servers: addresses(args)?,
        domain: domain(args)?,
    })
}

fn addresses(args: &DnsArgs) -> Result<Vec<IpAddr>, BadSetting> {
    let texts = args.cluster_dns.iter();
    let read = texts.map(|text| parse::address(ADDRESS, Some(text.trim())));
    let read: Vec<_> = read.collect::<Result<_, _>>()?;
    Ok(read.into_iter().flatten().collect())
}

fn domain(args: &DnsArgs) -> Result<Option<String>, BadSetting> {
    let Some(text) = &args.cluster_domain else {
        return Ok(None);
    };
    let text = text.trim_end_matches('.');
    if !names::dns_subdomain(text).is_empty() {
        let expected = "must be a DNS name, such as cluster.local";
        return Err(BadSetting::new(DOMAIN, text, expected));
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests;
