//! Whether and how a node routes Services, the addresses of load balancers, and whether what nodes
//! send each other's pods is encrypted.

use super::BadSetting;
use crate::cli::{AgentArgs, ServerArgs};
use crate::settings::parse;
use coracle_agent::Routing;
use coracle_apiserver::default_objects::PodEncryption;
use coracle_controllers::AddressPool;
use std::net::{Ipv4Addr, SocketAddr};

const ROUTE: &str = "route-services";
const HEALTH: &str = "proxy-healthz-bind-address";
const MODE: &str = "proxy-metrics-bind-address";
const ENCRYPT: &str = "encrypt-pod-network";
const WIREGUARD_PORT: &str = "wireguard-port";
/// That of WireGuard everywhere.
const WIREGUARD_PORT_DEFAULT: u16 = 51820;
/// kube-proxy's.
const HEALTH_DEFAULT: (Ipv4Addr, u16) = (Ipv4Addr::UNSPECIFIED, 10256);
const MODE_DEFAULT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 10249);

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
    let health = args.proxy_healthz_bind_address.as_deref();
    let mode = args.proxy_metrics_bind_address.as_deref();
    let routing = Routing {
        health_address: address(HEALTH, health, HEALTH_DEFAULT.into())?,
        mode_address: address(MODE, mode, MODE_DEFAULT.into())?,
    };
    Ok(is_wanted.then_some(routing))
}

/// None for nowhere.
fn address(
    flag: &'static str,
    text: Option<&str>,
    default: SocketAddr,
) -> Result<Option<SocketAddr>, BadSetting> {
    match text {
        Some("none") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            let expected = format!("must be an address and a port, such as {default}, or none");
            BadSetting::new(flag, text, expected)
        }),
        None => Ok(Some(default)),
    }
}

/// Of what nodes send each other's pods.
pub fn encryption(
    args: &ServerArgs,
    cluster_cidr: &str,
) -> Result<Option<PodEncryption>, BadSetting> {
    let is_wanted = match args.encrypt_pod_network.as_deref() {
        Some(text) => parse::boolean(ENCRYPT, text)?,
        None => false,
    };
    let port = match args.wireguard_port.as_deref() {
        Some(text) if !is_wanted => {
            let expected = "needs --encrypt-pod-network";
            return Err(BadSetting::new(WIREGUARD_PORT, text, expected));
        }
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => {
                let expected = "must be a port, from 1 to 65535";
                return Err(BadSetting::new(WIREGUARD_PORT, text, expected));
            }
        },
        None => WIREGUARD_PORT_DEFAULT,
    };
    Ok(is_wanted.then(|| PodEncryption {
        port,
        cluster_cidr: cluster_cidr.to_owned(),
    }))
}

pub fn pool(texts: &[String]) -> Result<AddressPool, BadSetting> {
    AddressPool::parse(texts)
        .map_err(|error| BadSetting::new("load-balancer-pool", &texts.join(","), error.to_string()))
}

#[cfg(test)]
mod tests;
