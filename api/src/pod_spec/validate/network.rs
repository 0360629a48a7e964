//! Host network, host users, names and DNS of a pod.

use super::Context;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::invalid_each;
use crate::{json, names};
use serde_json::Value;

/// What the resolver of the C library takes.
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_BYTES_MAX: usize = 2048;

/// On the host's network a container's port is the host's.
pub fn host_ports(spec: &Value, path: &Path, context: Context<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !json::flag(spec, "hostNetwork") {
        return errors;
    }
    for (index, container) in json::list(spec, "containers").iter().enumerate() {
        let path = path.child("containers").index(index).child("ports");
        for (index, port) in json::list(container, "ports").iter().enumerate() {
            let number = |field: &str| json::int(port, field).unwrap_or(0);
            let host = number("hostPort");
            if (context.is_pod || host != 0) && host != number("containerPort") {
                let path = path.index(index).child("hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path, host, detail));
            }
        }
    }
    errors
}

/// A pod with users of its own shares no namespace of the host.
pub fn host_users(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if json::some(spec, "hostUsers").is_none_or(|users| users != false) {
        return errors;
    }
    const DETAIL: &str = "when `hostUsers` is false";
    // Upstream writes the last two names with a capital; clients see them so.
    for (flag, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if json::flag(spec, flag) {
            errors.push(FieldError::forbidden(&path.child(shown), DETAIL));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in json::list(spec, list).iter().enumerate() {
            if !json::list(container, "volumeDevices").is_empty() {
                let path = path.child(list).index(index).child("volumeDevices");
                errors.push(FieldError::forbidden(&path, DETAIL));
            }
        }
    }
    errors
}

pub fn dns_policy(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let policies = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    checks::required_one_of(&mut errors, json::text(spec, "dnsPolicy"), policies, path);
    errors
}

pub fn dns_config(spec: &Value, path: &Path) -> ErrorList {
    let config = json::get(spec, "dnsConfig");
    let servers = json::list(config, "nameservers");
    if json::text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return vec![FieldError::required(path, detail)];
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return vec![FieldError::required(&path.child("nameservers"), detail)];
        }
    }
    let mut errors = ErrorList::new();
    let servers_path = path.child("nameservers");
    if servers.len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(FieldError::invalid(
            &servers_path,
            Value::from(servers),
            detail,
        ));
    }
    for (index, server) in servers.iter().enumerate() {
        let server = server.as_str().unwrap_or("");
        invalid_each(
            &mut errors,
            &servers_path.index(index),
            server,
            names::ip(server),
        );
    }
    errors.extend(searches(config, &path.child("searches")));
    for (index, option) in json::list(config, "options").iter().enumerate() {
        if json::text(option, "name").is_empty() {
            let path = path.child("options").index(index);
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
    errors
}

fn searches(config: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let all = json::list(config, "searches");
    let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    if all.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(FieldError::invalid(path, Value::from(all), detail));
    }
    if texts.join(" ").len() > SEARCH_BYTES_MAX {
        let detail = format!(
            "must not have more than {SEARCH_BYTES_MAX} characters (including spaces) in the \
             search list"
        );
        errors.push(FieldError::invalid(path, Value::from(all), detail));
    }
    for (index, search) in texts
        .into_iter()
        .enumerate()
        .filter(|(_, search)| *search != ".")
    {
        let search = search.strip_suffix('.').unwrap_or(search);
        let details = names::dns_subdomain_with_underscore(search);
        invalid_each(&mut errors, &path.index(index), search, details);
    }
    errors
}

pub fn host_aliases(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, alias) in json::list(spec, "hostAliases").iter().enumerate() {
        let path = path.index(index);
        let ip = json::text(alias, "ip");
        invalid_each(&mut errors, &path.child("ip"), ip, names::ip(ip));
        for (index, name) in json::list(alias, "hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or("");
            let path = path.child("hostnames").index(index);
            invalid_each(&mut errors, &path, name, names::dns_subdomain(name));
        }
    }
    errors
}
