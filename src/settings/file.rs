//! The `--config` file: the same keys as the flags, in YAML. What a flag or the environment says
//! wins over the file.

use super::BadSetting;
use crate::cli::{AgentArgs, CommonArgs, DnsArgs, ResourceArgs, ServerArgs};
use serde_yaml_ng::Value;

/// A configuration file is some kilobytes; one past this is something else.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Which sets of keys a command takes from the file.
#[derive(Debug)]
pub struct Targets<'a> {
    pub common: &'a mut CommonArgs,
    pub server: Option<&'a mut ServerArgs>,
    pub agent: Option<&'a mut AgentArgs>,
    /// Of an agent alone.
    pub dns: Option<&'a mut DnsArgs>,
}

/// Fills what flags and environment left open from the file that `--config` names, if any.
pub fn merge(mut targets: Targets<'_>) -> Result<(), BadSetting> {
    let Some(path) = targets.common.config.clone() else {
        return Ok(());
    };
    let bad = |expected: String| BadSetting::new("config", &path, expected);
    let size = std::fs::metadata(&path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    if size.len() > FILE_BYTES_MAX {
        return Err(bad(format!("is too large: at most {FILE_BYTES_MAX} bytes")));
    }
    let text =
        std::fs::read_to_string(&path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let document: Value =
        serde_yaml_ng::from_str(&text).map_err(|error| bad(format!("is not YAML: {error}")))?;
    let entries = match document {
        Value::Null => return Ok(()),
        Value::Mapping(entries) => entries,
        _ => return Err(bad("must be a list of keys and values".to_owned())),
    };
    for (key, value) in entries {
        let Some(key) = key.as_str().map(str::to_owned) else {
            return Err(bad("has a key that is not text".to_owned()));
        };
        set(&mut targets, &key, &value).map_err(|why| bad(format!("{key}: {why}")))?;
    }
    Ok(())
}

/// Keys whose value may be a map, and what stands between name and value on the command line.
const PAIRS: [(&str, char); 6] = [
    ("system-reserved", '='),
    ("kube-reserved", '='),
    ("eviction-hard", '<'),
    ("eviction-soft", '<'),
    ("eviction-soft-grace-period", '='),
    ("eviction-minimum-reclaim", '='),
];

/// A map as the flag would have it.
fn pairs(key: &str, value: &Value) -> Option<Result<Vec<String>, String>> {
    let (_, sign) = PAIRS.into_iter().find(|(name, _)| *name == key)?;
    let pair = |(name, value): (&Value, &Value)| {
        let [name, value] = [texts(name)?, texts(value)?];
        match (name.as_slice(), value.as_slice()) {
            ([name], [value]) => Ok(format!("{name}{sign}{value}")),
            _ => Err("must have one value a name".to_owned()),
        }
    };
    Some(value.as_mapping()?.iter().map(pair).collect())
}

/// Texts of a scalar or of a list of scalars.
fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Number(number) => Ok(vec![number.to_string()]),
        Value::Bool(flag) => Ok(vec![flag.to_string()]),
        Value::Sequence(items) => {
            let parts: Result<Vec<_>, _> = items.iter().map(texts).collect();
            Ok(parts?.into_iter().flatten().collect())
        }
        _ => Err("must be text or a list of texts".to_owned()),
    }
}

fn set(targets: &mut Targets<'_>, key: &str, value: &Value) -> Result<(), String> {
    let given = pairs(key, value).unwrap_or_else(|| texts(value))?;
    let Some(slot) = slot(targets, key) else {
        return Err("is not a setting of this command".to_owned());
    };
    match slot {
        Slot::One(_) if given.len() != 1 => return Err("must be one value".to_owned()),
        Slot::One(slot) => {
            slot.get_or_insert_with(|| given.into_iter().next().unwrap_or_default());
        }
        Slot::Many(slot) if slot.is_empty() => *slot = given,
        Slot::Many(_) => {}
    }
    Ok(())
}

enum Slot<'a> {
    One(&'a mut Option<String>),
    Many(&'a mut Vec<String>),
}

fn slot<'a>(targets: &'a mut Targets<'_>, key: &str) -> Option<Slot<'a>> {
    match key {
        "data-dir" => return Some(Slot::One(&mut targets.common.data_dir)),
        "log" => return Some(Slot::One(&mut targets.common.log)),
        _ => {}
    }
    let server = targets.server.as_deref_mut();
    if let Some(slot) = server.and_then(|server| server_slot(server, key)) {
        return Some(slot);
    }
    if let Some(dns) = targets.dns.as_deref_mut() {
        match key {
            "cluster-dns" => return Some(Slot::Many(&mut dns.cluster_dns)),
            "cluster-domain" => return Some(Slot::One(&mut dns.cluster_domain)),
            _ => {}
        }
    }
    agent_slot(targets.agent.as_deref_mut()?, key)
}

fn server_slot<'a>(server: &'a mut ServerArgs, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "listen" => Slot::One(&mut server.listen),
        "advertise-address" => Slot::One(&mut server.advertise_address),
        "tls-san" => Slot::Many(&mut server.tls_san),
        "cluster-cidr" => Slot::One(&mut server.loops.cluster_cidr),
        "encrypt-pod-network" => Slot::One(&mut server.encrypt_pod_network),
        "wireguard-port" => Slot::One(&mut server.wireguard_port),
        "service-cidr" => Slot::One(&mut server.service_cidr),
        "load-balancer-pool" => Slot::Many(&mut server.loops.load_balancer_pool),
        "write-kubeconfig" => Slot::One(&mut server.write_kubeconfig),
        "node-monitor-grace-period" => Slot::One(&mut server.loops.node_monitor_grace_period),
        "legacy-service-account-token-clean-up-period" => {
            Slot::One(&mut server.loops.legacy_service_account_token_clean_up_period)
        }
        "max-requests-inflight" => Slot::One(&mut server.max_requests_inflight),
        "max-connections" => Slot::One(&mut server.max_connections),
        "event-ttl" => Slot::One(&mut server.event_ttl),
        "max-mutating-requests-inflight" => Slot::One(&mut server.max_mutating_requests_inflight),
        "secrets-key-file" => Slot::One(&mut server.secrets_key_file),
        "snapshot-interval" => Slot::One(&mut server.ring.snapshot_interval),
        "snapshot-retention" => Slot::One(&mut server.ring.snapshot_retention),
        "encryption-provider-config" => Slot::One(&mut server.encryption_provider_config),
        "audit-policy-file" => Slot::One(&mut server.audit_policy_file),
        "audit-log-path" => Slot::One(&mut server.audit_log_path),
        "audit-log-maxage" => Slot::One(&mut server.audit_log_maxage),
        "audit-log-maxbackup" => Slot::One(&mut server.audit_log_maxbackup),
        "audit-log-maxsize" => Slot::One(&mut server.audit_log_maxsize),
        "scheduler-config" => Slot::One(&mut server.scheduler_config),
        "disable" => Slot::Many(&mut server.disable),
        "cluster-dns" => Slot::Many(&mut server.dns.cluster_dns),
        "cluster-domain" => Slot::One(&mut server.dns.cluster_domain),
        _ => return access_slot(server, key),
    })
}

/// Who may do what there.
fn access_slot<'a>(server: &'a mut ServerArgs, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "token-auth-file" => Slot::One(&mut server.token_auth_file),
        "authentication-config" => Slot::One(&mut server.authentication_config),
        "anonymous-auth" => Slot::One(&mut server.anonymous_auth),
        "api-audiences" => Slot::Many(&mut server.api_audiences),
        "service-account-issuer" => Slot::Many(&mut server.service_account_issuer),
        "service-account-key-file" => Slot::Many(&mut server.service_account_key_file),
        "service-account-signing-key-file" => {
            Slot::One(&mut server.service_account_signing_key_file)
        }
        "service-account-jwks-uri" => Slot::One(&mut server.service_account_jwks_uri),
        "admission-control-config-file" => Slot::One(&mut server.admission_control_config_file),
        "disable-admission-plugins" => Slot::Many(&mut server.disable_admission_plugins),
        _ => return None,
    })
}

fn agent_slot<'a>(agent: &'a mut AgentArgs, key: &str) -> Option<Slot<'a>> {
    match key {
        "server" => Some(Slot::One(&mut agent.server)),
        "token" => Some(Slot::One(&mut agent.token)),
        "token-file" => Some(Slot::One(&mut agent.token_file)),
        "kubeconfig" => Some(Slot::One(&mut agent.kubeconfig)),
        "bootstrap-kubeconfig" => Some(Slot::One(&mut agent.bootstrap_kubeconfig)),
        "kubelet-port" => Some(Slot::One(&mut agent.kubelet_port)),
        "client-ca-file" => Some(Slot::One(&mut agent.client_ca_file)),
        "non-masquerade-cidr" => Some(Slot::One(&mut agent.non_masquerade_cidr)),
        "node-name" => Some(Slot::One(&mut agent.node_name)),
        "node-ip" => Some(Slot::One(&mut agent.node_ip)),
        "node-label" => Some(Slot::Many(&mut agent.node_label)),
        "container-runtime-endpoint" => Some(Slot::One(&mut agent.container_runtime_endpoint)),
        "image-service-endpoint" => Some(Slot::One(&mut agent.image_service_endpoint)),
        "resolv-conf" => Some(Slot::One(&mut agent.resolv_conf)),
        "cni-conf-dir" => Some(Slot::One(&mut agent.cni_conf_dir)),
        "cni-bin-dir" => Some(Slot::Many(&mut agent.cni_bin_dir)),
        "cni-timeout" => Some(Slot::One(&mut agent.cni_timeout)),
        "route-services" => Some(Slot::One(&mut agent.route_services)),
        "proxy-healthz-bind-address" => Some(Slot::One(&mut agent.proxy_healthz_bind_address)),
        "proxy-metrics-bind-address" => Some(Slot::One(&mut agent.proxy_metrics_bind_address)),
        "kubelet-dir" => Some(Slot::One(&mut agent.kubelet_dir)),
        "local-path-dir" => Some(Slot::One(&mut agent.local_path_dir)),
        "static-pods" => Some(Slot::One(&mut agent.static_pods)),
        "node-taint" => Some(Slot::Many(&mut agent.node_taint)),
        "allowed-unsafe-sysctls" => Some(Slot::Many(&mut agent.allowed_unsafe_sysctls)),
        "pod-max-pids" => Some(Slot::One(&mut agent.pod_max_pids)),
        "seccomp-default" => Some(Slot::One(&mut agent.seccomp_default)),
        _ => resource(&mut agent.resources, key),
    }
}

fn resource<'a>(resources: &'a mut ResourceArgs, key: &str) -> Option<Slot<'a>> {
    let many = match key {
        "system-reserved" => &mut resources.system_reserved,
        "kube-reserved" => &mut resources.kube_reserved,
        "eviction-hard" => &mut resources.eviction_hard,
        "eviction-soft" => &mut resources.eviction_soft,
        "eviction-soft-grace-period" => &mut resources.eviction_soft_grace_period,
        "eviction-minimum-reclaim" => &mut resources.eviction_minimum_reclaim,
        _ => return resource_value(resources, key).map(Slot::One),
    };
    Some(Slot::Many(many))
}

fn resource_value<'a>(
    resources: &'a mut ResourceArgs,
    key: &str,
) -> Option<&'a mut Option<String>> {
    Some(match key {
        "eviction-max-pod-grace-period" => &mut resources.eviction_max_pod_grace_period,
        "eviction-pressure-transition-period" => &mut resources.eviction_pressure_transition_period,
        "max-pods" => &mut resources.max_pods,
        "image-gc-high-threshold" => &mut resources.image_gc_high_threshold,
        "image-gc-low-threshold" => &mut resources.image_gc_low_threshold,
        "minimum-image-ttl-duration" => &mut resources.minimum_image_ttl_duration,
        "image-maximum-gc-age" => &mut resources.image_maximum_gc_age,
        "container-log-max-size" => &mut resources.container_log_max_size,
        "container-log-max-files" => &mut resources.container_log_max_files,
        _ => return None,
    })
}
