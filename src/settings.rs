//! Checked settings: flags over environment over file over defaults.
//!
//! All values are checked here, before a port or a file is opened, and the first bad one becomes
//! one line that names the flag, the value and what is right. Never touches the cluster.

mod cni; // Network plugins.
pub mod controllers;
pub mod dns;
pub mod file;
mod joining; // Clusters that are not Coracle's.
pub mod parse;
mod resources;
mod routing;
pub mod scheduler;
pub mod secure_port;
pub mod snapshots;

use crate::cli::{AgentArgs, CommonArgs, LoopArgs, ServerArgs};
use coracle_agent::KubeletDir;
use coracle_agent::runtime::Endpoints;
use coracle_apiserver::access;
use coracle_apiserver::admission;
use coracle_apiserver::admission::configuration;
use coracle_apiserver::admission::plugin::Plugin;
use coracle_apiserver::at_rest;
use coracle_apiserver::audit;
use coracle_apiserver::authenticate;
use coracle_apiserver::config::{EVENT_TTL, Limits};
use coracle_apiserver::default_objects::{ClusterDns, PodEncryption};
use coracle_apiserver::tokens;
use coracle_controllers::AddressPool;
use procfs::process::{LimitValue, Process};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Exit code of a bad command line or file, EX_USAGE of sysexits.h.
pub const EXIT_USAGE: u8 = 64;
/// What else can be disabled in a server's process than loops.
const PARTS: [&str; 5] = ["scheduler", "controllers", "dns", "metrics", "manifests"];
pub const DATA_DIR_DEFAULT: &str = "/var/lib/coracle";

/// One bad setting, told in the user's terms.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("--{flag} {value:?}: {expected}")]
pub struct BadSetting {
    pub flag: &'static str,
    pub value: String,
    pub expected: String,
}

impl BadSetting {
    pub fn new(flag: &'static str, value: &str, expected: impl Into<String>) -> Self {
        Self {
            flag,
            value: value.to_owned(),
            expected: expected.into(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    pub advertise_address: Option<IpAddr>,
    pub tls_sans: Vec<String>,
    pub cluster_cidr: String,
    pub service_cidr: String,
    /// None: `--disable dns`.
    pub cluster_dns: Option<ClusterDns>,
    /// None: nodes send each other's pods plain text.
    pub pod_encryption: Option<PodEncryption>,
    pub limits: Limits,
    pub event_ttl: Duration,
    pub audit: Option<audit::Settings>,
    /// False: `--disable metrics`.
    pub metrics: bool,
    pub at_rest: at_rest::Settings,
    pub ring: snapshots::Ring,
    pub access: access::Settings,
    pub admission: admission::Settings,
    pub load_balancer_pool: AddressPool,
    pub write_kubeconfig: PathBuf,
    pub node_monitor_grace_period: Duration,
    pub legacy_token_clean_up_period: Duration,
    pub scheduler: coracle_scheduler::Configuration,
    pub disabled: BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub struct AgentSettings {
    pub data_dir: PathBuf,
    /// `None` for `up`, whose server is in the same process.
    pub server: Option<String>,
    pub token: Option<String>,
    /// In place of both.
    pub joining: Option<coracle_agent::Joining>,
    pub node_name: String,
    pub node_ips: Vec<IpAddr>,
    pub labels: Vec<(String, String)>,
    pub taints: Vec<Taint>,
    pub allowed_unsafe_sysctls: Vec<String>,
    pub seccomp_default: bool,
    /// 0 for no bound.
    pub pod_pids_max: i64,
    pub static_pods: Option<PathBuf>,
    pub kubelet_dir: KubeletDir,
    /// None: no volumes are made on this node.
    pub local_path_dir: Option<PathBuf>,
    pub resources: coracle_agent::Resources,
    pub container_runtime: Option<Endpoints>,
    pub resolv_conf: Option<PathBuf>,
    pub cni: coracle_agent::CniSettings,
    pub routing: Option<coracle_agent::Routing>,
    /// What pods are told in place of what the cluster says.
    pub dns: coracle_agent::PodDns,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

pub fn data_dir(args: Option<&str>) -> PathBuf {
    PathBuf::from(args.unwrap_or(DATA_DIR_DEFAULT))
}

pub fn server(common: &CommonArgs, args: &ServerArgs) -> Result<ServerSettings, BadSetting> {
    let data_dir = parse::directory("data-dir", common.data_dir.as_deref())?;
    let cluster = cluster_cidrs(&args.loops)?;
    let services = service_cidr(args, &cluster)?;
    let disabled = parse::disabled(&args.disable, &PARTS)?;
    let cluster_dns = dns::server(&args.dns, &services)?;
    let write_kubeconfig = match &args.write_kubeconfig {
        Some(path) if path.is_empty() => {
            return Err(BadSetting::new(
                "write-kubeconfig",
                path,
                "must be the path of a file",
            ));
        }
        Some(path) => PathBuf::from(path),
        None => data_dir.join("admin.kubeconfig"),
    };
    Ok(ServerSettings {
        listen: parse::listen(args.listen.as_deref().unwrap_or("0.0.0.0:6443"))?,
        advertise_address: parse::address("advertise-address", args.advertise_address.as_deref())?,
        tls_sans: parse::names("tls-san", &args.tls_san)?,
        pod_encryption: routing::encryption(args, &texts(&cluster))?,
        cluster_cidr: texts(&cluster),
        service_cidr: texts(&services),
        cluster_dns: (!disabled.contains("dns")).then_some(cluster_dns),
        limits: limits(args)?,
        event_ttl: match args.event_ttl.as_deref() {
            None => EVENT_TTL,
            Some(text) => parse::duration("event-ttl", text)?,
        },
        audit: audit(args)?,
        metrics: !disabled.contains("metrics"),
        at_rest: at_rest(
            args.secrets_key_file.as_deref(),
            args.encryption_provider_config.as_deref(),
            &data_dir,
        )?,
        access: access(args)?,
        admission: admission(args)?,
        load_balancer_pool: routing::pool(&args.loops.load_balancer_pool)?,
        write_kubeconfig,
        node_monitor_grace_period: grace_period(&args.loops)?,
        legacy_token_clean_up_period: parse::clean_up_period(&args.loops)?,
        scheduler: scheduler::read("scheduler-config", args.scheduler_config.as_deref())?,
        ring: snapshots::ring(&args.ring)?,
        disabled,
        data_dir,
    })
}

fn cluster_cidrs(args: &LoopArgs) -> Result<Vec<parse::Cidr>, BadSetting> {
    parse::cidrs("cluster-cidr", args.cluster_cidr.as_deref(), "10.42.0.0/16")
}

fn grace_period(args: &LoopArgs) -> Result<Duration, BadSetting> {
    parse::grace_period(args.node_monitor_grace_period.as_deref())
}

/// Of a certificate and its key one is no use.
fn pair(
    (certificate_flag, certificate): (&'static str, Option<PathBuf>),
    (key_flag, key): (&'static str, Option<PathBuf>),
) -> Result<Option<(PathBuf, PathBuf)>, BadSetting> {
    let alone = |flag, path: &Path, other: &str| {
        let expected = format!("needs --{other} too");
        Err(BadSetting::new(flag, &path.display().to_string(), expected))
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(path), None) => alone(certificate_flag, &path, key_flag),
        (None, Some(path)) => alone(key_flag, &path, certificate_flag),
    }
}

fn texts(networks: &[parse::Cidr]) -> String {
    let texts: Vec<_> = networks.iter().map(|one| one.text.as_str()).collect();
    texts.join(",")
}

fn service_cidr(
    args: &ServerArgs,
    cluster: &[parse::Cidr],
) -> Result<Vec<parse::Cidr>, BadSetting> {
    const FLAG: &str = "service-cidr";
    let networks = parse::cidrs(FLAG, args.service_cidr.as_deref(), "10.43.0.0/16")?;
    let mut pairs = cluster
        .iter()
        .flat_map(|of_pods| networks.iter().map(move |network| (of_pods, network)));
    if let Some((of_pods, network)) = pairs.find(|(of_pods, one)| parse::overlap(of_pods, one)) {
        let expected = format!("must not overlap --cluster-cidr {}", of_pods.text);
        return Err(BadSetting::new(FLAG, &network.text, expected));
    }
    Ok(networks)
}

/// Where the keys of what is encrypted on disk are.
pub fn at_rest(
    key_file: Option<&str>,
    configuration: Option<&str>,
    data_dir: &Path,
) -> Result<at_rest::Settings, BadSetting> {
    let key_file = match key_file {
        Some(path) => parse::file("secrets-key-file", path)?,
        None => data_dir.join("server/pki/secrets.key"),
    };
    Ok(at_rest::Settings {
        key_file,
        configuration: configuration
            .map(|path| parse::file("encryption-provider-config", path))
            .transpose()?,
    })
}

fn limits(args: &ServerArgs) -> Result<Limits, BadSetting> {
    let default = Limits::default();
    let reading = args.max_requests_inflight.as_deref();
    let mutating = args.max_mutating_requests_inflight.as_deref();
    Ok(Limits {
        reading: parse::count("max-requests-inflight", reading, default.reading)?,
        mutating: parse::count("max-mutating-requests-inflight", mutating, default.mutating)?,
        connections: connections(args.max_connections.as_deref(), default.connections)?,
    })
}

/// As many as are asked for or usual, and no more than leave half of the files that the process may
/// have open for all else.
fn connections(given: Option<&str>, default: u32) -> Result<u32, BadSetting> {
    const FLAG: &str = "max-connections";
    let asked = parse::count(FLAG, given, default)?;
    let Some(most) = files_max().map(|files| (files / 2).max(1)) else {
        return Ok(asked);
    };
    if let Some(text) = given
        && u64::from(asked) > most
    {
        let why = format!(
            "must be {most} at most: half of the files that the process may have open (ulimit -n)"
        );
        return Err(BadSetting::new(FLAG, text, &why));
    }
    Ok(asked.min(u32::try_from(most).unwrap_or(u32::MAX)))
}

fn files_max() -> Option<u64> {
    let limits = Process::myself().ok()?.limits().ok()?;
    match limits.max_open_files.soft_limit {
        LimitValue::Value(files) => Some(files),
        LimitValue::Unlimited => None,
    }
}

/// Without bounds a log fills a small disk, so these are not upstream's; 0 is without bound.
const AUDIT_MEGABYTES: u32 = 20;
const AUDIT_BACKUPS: u32 = 4;
const AUDIT_AGE_DAYS: u32 = 30;

fn audit(args: &ServerArgs) -> Result<Option<audit::Settings>, BadSetting> {
    let bound =
        |flag, given: &Option<String>, default| parse::bound(flag, given.as_deref(), default);
    let log = audit::LogSettings {
        path: match args.audit_log_path.as_deref() {
            None | Some("-") => None,
            Some(path) => Some(parse::file("audit-log-path", path)?),
        },
        age_days_max: bound("audit-log-maxage", &args.audit_log_maxage, AUDIT_AGE_DAYS)?,
        backups_max: bound(
            "audit-log-maxbackup",
            &args.audit_log_maxbackup,
            AUDIT_BACKUPS,
        )?,
        megabytes_max: bound(
            "audit-log-maxsize",
            &args.audit_log_maxsize,
            AUDIT_MEGABYTES,
        )?,
    };
    match (&args.audit_policy_file, &args.audit_log_path) {
        (None, None) => Ok(None),
        (Some(policy), None) => {
            let expected = "needs --audit-log-path: where the log goes, - for standard output";
            Err(BadSetting::new("audit-policy-file", policy, expected))
        }
        (None, Some(path)) => {
            let expected = "needs --audit-policy-file: without a policy nothing is recorded";
            Err(BadSetting::new("audit-log-path", path, expected))
        }
        (Some(policy), Some(_)) => Ok(Some(audit::Settings {
            policy_file: parse::file("audit-policy-file", policy)?,
            log,
        })),
    }
}

fn access(args: &ServerArgs) -> Result<access::Settings, BadSetting> {
    let file = |flag, given: &Option<String>| {
        let read = given.as_deref().map(|path| parse::file(flag, path));
        read.transpose()
    };
    let default = tokens::Settings::default();
    let issuers = match args.service_account_issuer.as_slice() {
        [] => default.issuers,
        given => parse::issuers("service-account-issuer", given)?,
    };
    let keys = args.service_account_key_file.iter();
    let keys = keys.map(|path| parse::file("service-account-key-file", path));
    let anonymous = args.anonymous_auth.as_deref();
    let anonymous = anonymous.map(|text| parse::boolean("anonymous-auth", text));
    let jwks_uri = args.service_account_jwks_uri.as_deref();
    let jwks_uri = jwks_uri.map(|url| parse::https_url("service-account-jwks-uri", url));
    Ok(access::Settings {
        authentication: authenticate::Settings {
            token_file: file("token-auth-file", &args.token_auth_file)?,
            configuration: file("authentication-config", &args.authentication_config)?,
            anonymous: anonymous.transpose()?,
        },
        tokens: tokens::Settings {
            issuers,
            audiences: args.api_audiences.clone(),
            key_files: keys.collect::<Result<_, _>>()?,
            signing_key_file: file(
                "service-account-signing-key-file",
                &args.service_account_signing_key_file,
            )?,
            jwks_uri: jwks_uri.transpose()?,
        },
    })
}

fn admission(args: &ServerArgs) -> Result<admission::Settings, BadSetting> {
    const FLAG: &str = "admission-control-config-file";
    let pod_security = match args.admission_control_config_file.as_deref() {
        None => admission::PodSecurity::default(),
        Some(path) => {
            let file = parse::file(FLAG, path)?;
            configuration::read(&file)
                .map_err(|error| BadSetting::new(FLAG, path, error.to_string()))?
        }
    };
    let mut disabled = BTreeSet::new();
    for name in &args.disable_admission_plugins {
        let plugin = Plugin::ALL.iter().find(|plugin| plugin.name() == name);
        let plugin = plugin.ok_or_else(|| {
            let names: Vec<&str> = Plugin::ALL.iter().map(|plugin| plugin.name()).collect();
            let expected = format!("must be one of {}", names.join(", "));
            BadSetting::new("disable-admission-plugins", name, expected)
        })?;
        disabled.insert(*plugin);
    }
    Ok(admission::Settings {
        pod_security,
        disabled,
    })
}

/// Two agents of one machine must not both have the usual link.
fn kubelet_dir(args: &AgentArgs, data_dir: &Path) -> Result<KubeletDir, BadSetting> {
    match args.kubelet_dir.as_deref() {
        Some("") => {
            let expected = "must be the path of a directory";
            Err(BadSetting::new("kubelet-dir", "", expected))
        }
        Some(text) => match std::path::absolute(text) {
            Ok(path) => Ok(KubeletDir::Asked(path)),
            Err(error) => {
                let expected = format!("cannot be resolved: {error}");
                Err(BadSetting::new("kubelet-dir", text, expected))
            }
        },
        None if data_dir == Path::new(DATA_DIR_DEFAULT) => Ok(KubeletDir::Usual),
        None => Ok(KubeletDir::Own),
    }
}

/// Outside of the agent's own directory, so that what pods wrote outlives it.
fn local_path_dir(args: &AgentArgs, data_dir: &Path) -> Result<Option<PathBuf>, BadSetting> {
    match args.local_path_dir.as_deref() {
        None => Ok(Some(data_dir.join("local-path"))),
        Some("") => Ok(None),
        Some(text) => match std::path::absolute(text) {
            Ok(path) if path.parent().is_some() => Ok(Some(path)),
            Ok(_) => {
                let expected = "must not be the root of all files";
                Err(BadSetting::new("local-path-dir", text, expected))
            }
            Err(error) => {
                let expected = format!("cannot be resolved: {error}");
                Err(BadSetting::new("local-path-dir", text, expected))
            }
        },
    }
}

/// `needs_server` is false for `up`.
pub fn agent(
    common: &CommonArgs,
    args: &AgentArgs,
    host_name: &str,
    needs_server: bool,
) -> Result<AgentSettings, BadSetting> {
    let data_dir = parse::directory("data-dir", common.data_dir.as_deref())?;
    let joining = joining::joining(args, needs_server)?;
    let server = match (&args.server, needs_server) {
        (Some(url), true) => Some(parse::server_url(url)?),
        (None, true) if joining.is_some() => None,
        (None, true) => {
            let expected = "is needed: the URL of the server, such as https://gateway:6443";
            return Err(BadSetting::new("server", "", expected));
        }
        (Some(url), false) => {
            let expected = "cannot be used with up, which runs its own server; use coracle agent";
            return Err(BadSetting::new("server", url, expected));
        }
        (None, false) => None,
    };
    let token = token(args)?;
    let name = args
        .node_name
        .clone()
        .unwrap_or_else(|| host_name.to_lowercase());
    let routing = routing::routing(args, joining.is_some())?;
    let cni = cni::cni(args)?;
    let kubelet_dir = kubelet_dir(args, &data_dir)?;
    let local_path_dir = local_path_dir(args, &data_dir)?;
    Ok(AgentSettings {
        data_dir,
        server,
        token,
        joining,
        node_name: parse::node_name(&name)?,
        node_ips: parse::addresses("node-ip", args.node_ip.as_deref())?,
        labels: args
            .node_label
            .iter()
            .map(|text| parse::label(text))
            .collect::<Result<_, _>>()?,
        taints: args
            .node_taint
            .iter()
            .map(|text| parse::taint(text))
            .collect::<Result<_, _>>()?,
        allowed_unsafe_sysctls: args
            .allowed_unsafe_sysctls
            .iter()
            .map(|text| parse::sysctl_pattern(text))
            .collect::<Result<_, _>>()?,
        pod_pids_max: match args.pod_max_pids.as_deref() {
            Some(text) => parse::pids(text)?,
            None => 0,
        },
        seccomp_default: match args.seccomp_default.as_deref() {
            Some(text) => parse::boolean("seccomp-default", text)?,
            None => false,
        },
        kubelet_dir,
        local_path_dir,
        static_pods: args.static_pods.as_ref().map(PathBuf::from),
        resources: resources::resources(&args.resources)?,
        container_runtime: parse::container_runtime(
            args.container_runtime_endpoint.as_deref(),
            args.image_service_endpoint.as_deref(),
        )?,
        cni,
        routing,
        resolv_conf: match args.resolv_conf.as_deref() {
            Some(path) => Some(parse::file("resolv-conf", path)?),
            None => None,
        },
        dns: coracle_agent::PodDns::default(),
    })
}

fn token(args: &AgentArgs) -> Result<Option<String>, BadSetting> {
    match (&args.token, &args.token_file) {
        (Some(_), Some(file)) => {
            let expected = "cannot be used together with --token";
            Err(BadSetting::new("token-file", file, expected))
        }
        (Some(token), None) => parse::token("token", token).map(Some),
        (None, Some(path)) => read_token(Path::new(path)).map(Some),
        (None, None) => Ok(None),
    }
}

/// The token's first line; the file is read here because a token that is not there is a bad value.
fn read_token(path: &Path) -> Result<String, BadSetting> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        BadSetting::new("token-file", &shown, format!("cannot be read: {error}"))
    })?;
    parse::token("token-file", text.lines().next().unwrap_or("").trim())
        .map_err(|error| BadSetting::new("token-file", &shown, error.expected))
}

#[cfg(test)]
mod tests;
