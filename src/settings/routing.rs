//! Whether and how a node routes Services, and the addresses of load balancers.

use super::BadSetting;
use crate::cli::AgentArgs;
use crate::settings::parse;
use coracle_agent::Routing;
use coracle_controllers::AddressPool;
use std::net::{Ipv4Addr, SocketAddr};

const ROUTE: &str = "route-services";
const HEALTH: &str = "proxy-healthz-bind-address";
/// kube-proxy's.
const HEALTH_PORT: u16 = 10256;

pub fn routing(args: &AgentArgs, is_joining: bool) -> Result<Option<Routing>, BadSetting> {
    let is_wanted = match args.route_services.as_deref() {
        Some(text) => parse::boolean(ROUTE, text)?,
        None => !is_joining,
    };
    if is_wanted && is_joining {
        let expected = "cannot be used with --kubeconfig: a node of such a cluster may not see \
                        endpoints, and kube-proxy routes its Services";
        return Err(BadSetting::new(ROUTE, "true", expected));
    }
    let health_address = match args.proxy_healthz_bind_address.as_deref() {
        Some("none") => None,
        Some(text) => Some(text.parse().map_err(|_| {
            let expected = "must be an address and a port, such as 0.0.0.0:10256, or none";
            BadSetting::new(HEALTH, text, expected)
        })?),
        None => Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, HEALTH_PORT))),
    };
    Ok(is_wanted.then_some(Routing { health_address }))
}

pub fn pool(texts: &[String]) -> Result<AddressPool, BadSetting> {
    AddressPool::parse(texts)
        .map_err(|error| BadSetting::new("load-balancer-pool", &texts.join(","), error.to_string()))
}

#[cfg(test)]
mod tests;
