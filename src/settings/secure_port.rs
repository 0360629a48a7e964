//! Of the port of a scheduler, or of controllers, that are a process of their own.

use super::{BadSetting, parse};
use crate::cli::PortArgs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

const CERTIFICATE: &str = "tls-cert-file";
const KEY: &str = "tls-private-key-file";
const PORT: &str = "secure-port";
const PATHS: &str = "authorization-always-allow-paths";
/// Upstream's.
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/readyz", "/livez"];

#[derive(Clone, Debug)]
pub struct PortSettings {
    pub address: SocketAddr,
    /// Certificate and key.
    pub shown: Option<(PathBuf, PathBuf)>,
    pub client_ca: Option<PathBuf>,
    pub authentication: Option<PathBuf>,
    pub authorization: Option<PathBuf>,
    pub always_allowed: Vec<String>,
}

/// None where there shall be no port.
pub fn port(args: &PortArgs, default: u16) -> Result<Option<PortSettings>, BadSetting> {
    let number = match args.secure_port.as_deref() {
        None => default,
        Some(text) => text
            .parse()
            .map_err(|_| BadSetting::new(PORT, text, "must be a port, or 0 for none"))?,
    };
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let address = parse::address("bind-address", args.bind_address.as_deref())?.unwrap_or(any);
    let file = |flag: &'static str, text: &Option<String>| {
        let path = text.as_deref().map(|text| parse::file(flag, text));
        path.transpose()
    };
    let certificate = file(CERTIFICATE, &args.tls_cert_file)?;
    let key = file(KEY, &args.tls_private_key_file)?;
    let always_allowed = match &args.authorization_always_allow_paths {
        None => ALWAYS_ALLOWED.map(str::to_owned).to_vec(),
        Some(paths) => paths
            .iter()
            .map(|path| pattern(path))
            .collect::<Result<_, _>>()?,
    };
    let settings = PortSettings {
        address: SocketAddr::new(address, number),
        shown: super::pair((CERTIFICATE, certificate), (KEY, key))?,
        client_ca: file("client-ca-file", &args.client_ca_file)?,
        authentication: file("authentication-kubeconfig", &args.authentication_kubeconfig)?,
        authorization: file("authorization-kubeconfig", &args.authorization_kubeconfig)?,
        always_allowed,
    };
    Ok((number != 0).then_some(settings))
}

/// A slash in front may be left out.
fn pattern(text: &str) -> Result<String, BadSetting> {
    let rest = text.trim_start_matches('/');
    let name = rest.strip_suffix('*').unwrap_or(rest);
    if name.contains('*') {
        return Err(BadSetting::new(PATHS, text, "may have a * at its end only"));
    }
    Ok(format!("/{rest}"))
}

#[cfg(test)]
mod tests;
