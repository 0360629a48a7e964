//! Of `coracle controllers`.

use super::secure_port::{self, PortSettings};
use super::{BadSetting, parse, routing};
use crate::cli::ControllersCommand;
use coracle_controllers::AddressPool;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

const CERTIFICATE: &str = "cluster-signing-cert-file";
const KEY: &str = "cluster-signing-key-file";
/// Upstream's.
const PORT: u16 = 10257;

#[derive(Clone, Debug)]
pub struct ControllersSettings {
    pub kubeconfig: PathBuf,
    pub is_elected: bool,
    /// Each loop acts as its own service account.
    pub acts_as_accounts: bool,
    pub cluster_cidr: String,
    pub load_balancer_pool: AddressPool,
    pub node_monitor_grace_period: Duration,
    pub legacy_token_clean_up_period: Duration,
    pub root_ca: Option<PathBuf>,
    /// Certificate and key.
    pub signing: Option<(PathBuf, PathBuf)>,
    pub disabled: BTreeSet<String>,
    pub port: Option<PortSettings>,
}

pub fn controllers(args: &ControllersCommand) -> Result<ControllersSettings, BadSetting> {
    let is_elected = match args.leader_elect.as_deref() {
        Some(text) => parse::boolean("leader-elect", text)?,
        None => true,
    };
    let file = |flag: &'static str, text: &Option<String>| {
        let path = text.as_deref().map(|text| parse::file(flag, text));
        path.transpose()
    };
    let root_ca = file("root-ca-file", &args.root_ca_file)?;
    let certificate = file(CERTIFICATE, &args.cluster_signing_cert_file)?;
    let key = file(KEY, &args.cluster_signing_key_file)?;
    let signing = super::pair((CERTIFICATE, certificate), (KEY, key))?;
    let mut disabled = parse::disabled(&args.disable, &[])?;
    if root_ca.is_none() {
        disabled.insert("root-ca".to_owned());
    }
    if signing.is_none() {
        disabled.insert("csr-sign".to_owned());
    }
    Ok(ControllersSettings {
        kubeconfig: parse::file("kubeconfig", &args.kubeconfig)?,
        is_elected,
        acts_as_accounts: args.use_service_account_credentials,
        cluster_cidr: super::texts(&super::cluster_cidrs(&args.loops)?),
        load_balancer_pool: routing::pool(&args.loops.load_balancer_pool)?,
        node_monitor_grace_period: super::grace_period(&args.loops)?,
        legacy_token_clean_up_period: parse::clean_up_period(&args.loops)?,
        root_ca,
        signing,
        disabled,
        port: secure_port::port(&args.port, PORT)?,
    })
}

#[cfg(test)]
mod tests;
