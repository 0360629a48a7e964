//! Of `coracle controllers`.

use super::{BadSetting, parse, routing};
use crate::cli::ControllersCommand;
use coracle_controllers::{AddressPool, LOOPS};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ControllersSettings {
    pub kubeconfig: PathBuf,
    pub is_elected: bool,
    /// Each loop acts as its own service account.
    pub acts_as_accounts: bool,
    pub cluster_cidr: String,
    pub load_balancer_pool: AddressPool,
    pub node_monitor_grace_period: Duration,
    pub root_ca: Option<PathBuf>,
    /// Certificate and key.
    pub signing: Option<(PathBuf, PathBuf)>,
    pub disabled: BTreeSet<String>,
}

pub fn controllers(args: &ControllersCommand) -> Result<ControllersSettings, BadSetting> {
    let cidrs = parse::cidrs("cluster-cidr", args.cluster_cidr.as_deref(), "10.42.0.0/16")?;
    let cidrs: Vec<_> = cidrs.iter().map(|one| one.text.as_str()).collect();
    let is_elected = match args.leader_elect.as_deref() {
        Some(text) => parse::boolean("leader-elect", text)?,
        None => true,
    };
    let file = |flag: &'static str, text: &Option<String>| {
        let path = text.as_deref().map(|text| parse::file(flag, text));
        path.transpose()
    };
    let root_ca = file("root-ca-file", &args.root_ca_file)?;
    let certificate = file("cluster-signing-cert-file", &args.cluster_signing_cert_file)?;
    let key = file("cluster-signing-key-file", &args.cluster_signing_key_file)?;
    let signing = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(path), None) => {
            let text = path.display().to_string();
            let expected = "needs --cluster-signing-key-file too";
            return Err(BadSetting::new(
                "cluster-signing-cert-file",
                &text,
                expected,
            ));
        }
        (None, Some(path)) => {
            let text = path.display().to_string();
            let expected = "needs --cluster-signing-cert-file too";
            return Err(BadSetting::new("cluster-signing-key-file", &text, expected));
        }
    };
    let mut disabled = loops(&args.disable)?;
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
        cluster_cidr: cidrs.join(","),
        load_balancer_pool: routing::pool(&args.load_balancer_pool)?,
        node_monitor_grace_period: parse::grace_period(args.node_monitor_grace_period.as_deref())?,
        root_ca,
        signing,
        disabled,
    })
}

fn loops(given: &[String]) -> Result<BTreeSet<String>, BadSetting> {
    let known: Vec<&str> = LOOPS.iter().map(|entry| entry.name).collect();
    match given.iter().find(|text| !known.contains(&text.as_str())) {
        Some(text) => {
            let expected = format!("must be one of {}", known.join(", "));
            Err(BadSetting::new("disable", text, expected))
        }
        None => Ok(given.iter().cloned().collect()),
    }
}
