//! Names to addresses: /etc/hosts first, then the name servers of /etc/resolv.conf.
//!
//! Both files are read again for each lookup: lookups are rare, and a machine at the edge often
//! gets its name servers after this process has started.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;

/// The addresses of a host, in the order in which they should be tried. Never empty.
pub(super) async fn resolve(host: &str) -> Result<Vec<IpAddr>, NetError> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    // RFC 6761: this name never leaves the machine, whether or not /etc/hosts has it.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let found = resolver()?.lookup_ip(host).await?;
    let addresses: Vec<IpAddr> = found.iter().collect();
    if addresses.is_empty() {
        return Err(NetError::from("the name has no address"));
    }
    Ok(addresses)
}

fn resolver() -> Result<TokioResolver, NetError> {
    match TokioResolver::builder_tokio() {
        Ok(builder) => builder.build(),
        // Without a resolv.conf there is still /etc/hosts.
        Err(_) => {
            let provider = TokioRuntimeProvider::default();
            let nowhere = ResolverConfig::from_parts(None, vec![], vec![]);
            TokioResolver::builder_with_config(nowhere, provider).build()
        }
    }
}
