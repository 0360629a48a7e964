//! The OCI runtime specification of a container, as JSON. Pure.
//!
//! Namespaces other than the process and mount ones are joined from the sandbox by path.
//! Defaults are containerd's, which images are tested against.

use super::cgroups::weight;
use super::contract::{Mount, Propagation, Resources};
use super::process;
use super::record::ContainerRecord;
use super::user::User;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const CAPABILITIES: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];
pub const MASKED: [&str; 12] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];
pub const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Type, target and options. Those below /sys are read-only unless privileged.
const MOUNTS: [(&str, &str, &str); 6] = [
    ("proc", "/proc", "nosuid,noexec,nodev"),
    ("tmpfs", "/dev", "nosuid,strictatime,mode=755,size=65536k"),
    (
        "devpts",
        "/dev/pts",
        "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5",
    ),
    ("mqueue", "/dev/mqueue", "nosuid,noexec,nodev"),
    ("sysfs", "/sys", "nosuid,noexec,nodev"),
    ("cgroup", "/sys/fs/cgroup", "nosuid,noexec,nodev,relatime"),
];

/// What the host offers, found out by the shim.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Names without `CAP_` that this process may pass on.
    pub capabilities: Vec<String>,
    pub unified_cgroups: bool,
    /// `cpu`, `memory`, ... that can be limited.
    pub controllers: Vec<String>,
    pub limits_swap: bool,
    /// Of pages, as `2MB`.
    pub huge_page_sizes: Vec<String>,
    /// `/sys/devices/system/cpu/cpu0/thermal_throttle`, ..: hidden, they tell of the host's work.
    pub thermal_throttles: Vec<String>,
    /// The profile of AppArmor to enter; None for none.
    pub app_armor_profile: Option<String>,
    /// Of /dev, for privileged containers.
    pub devices: Vec<Given>,
    /// Those that a container is given, privileged or not, in place of any of `devices`.
    pub given: Vec<Given>,
    /// The PID namespace to join; a new one when there is none.
    pub pid_namespace: Option<PathBuf>,
    /// Version 1 control groups of the container: name of the hierarchy, directory. Given where
    /// libcontainer does not find them: it looks for its own process id in the host's /proc.
    pub own_groups: Vec<(String, PathBuf)>,
}

/// A device as the node has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Given {
    /// In the container: whole, and without needless parts.
    pub path: PathBuf,
    /// `b` or `c`.
    pub kind: char,
    pub major: u64,
    pub minor: u64,
    pub mode: u32,
    /// Of the node.
    pub uid: u32,
    pub gid: u32,
    pub read_only: bool,
    /// It is mounted, not made: libcontainer makes nodes in /dev alone.
    pub is_bound: bool,
}

pub fn build(
    record: &ContainerRecord,
    root: &Path,
    user: &User,
    arguments: &[String],
    host: &Host,
) -> Value {
    let (config, security) = (&record.config, &record.config.security);
    let sandbox = &record.sandbox.config;
    let hostname = sandbox.hostname.as_str();
    // Capabilities are dropped by the executor, after the filter of system calls.
    let mut process = json!({
        "terminal": config.tty,
        "user": { "uid": user.uid, "gid": user.gid, "additionalGids": user.groups },
        "args": arguments,
        "env": process::environment(config, &record.image, hostname, &user.home),
        "cwd": process::working_directory(config, &record.image),
    });
    if let Some(profile) = &host.app_armor_profile {
        process["apparmorProfile"] = json!(profile);
    }
    if no_new_privileges(record) {
        process["noNewPrivileges"] = json!(true);
    }
    let mut linux = json!({
        "namespaces": namespaces(record, host),
        "cgroupsPath": record.cgroup(),
        "resources": resources(record, host),
    });
    let is_taken = |path: &Path| host.given.iter().any(|given| given.path == path);
    let of_host = host.devices.iter().filter(|device| !is_taken(&device.path));
    let given = host.given.iter().filter(|given| !given.is_bound);
    let all: Vec<Value> = of_host.chain(given).map(device).collect();
    if !all.is_empty() {
        linux["devices"] = Value::Array(all);
    }
    if security.privileged {
        // It sees all that there is.
    } else if !security.unmasked_proc {
        let masked = MASKED.iter().map(|path| (*path).to_owned());
        let masked = masked.chain(host.thermal_throttles.iter().cloned());
        linux["maskedPaths"] = masked.collect();
        linux["readonlyPaths"] = json!(READ_ONLY);
    }
    let comes_back = |mount: &Mount| mount.propagation == Propagation::Bidirectional;
    if config.mounts.iter().any(comes_back) {
        // Otherwise libcontainer makes all of them slaves. It knows no "rshared", and means that.
        linux["rootfsPropagation"] = json!("shared");
    }
    json!({
        "ociVersion": "1.0.2",
        "process": process,
        "root": { "path": root, "readonly": security.read_only_root_filesystem },
        "mounts": mounts(record, host),
        "linux": linux,
    })
}

pub fn no_new_privileges(record: &ContainerRecord) -> bool {
    let security = &record.config.security;
    !security.allow_privilege_escalation && !security.privileged
}

fn device(device: &Given) -> Value {
    json!({
        "path": device.path, "type": device.kind.to_string(), "major": device.major,
        "minor": device.minor, "fileMode": device.mode, "uid": device.uid, "gid": device.gid,
    })
}

fn rule(given: &Given) -> Value {
    json!({
        "allow": true, "type": given.kind.to_string(), "major": given.major, "minor": given.minor,
        "access": if given.read_only { "r" } else { "rwm" },
    })
}

/// The default set, or all for the privileged, with what was added and without what was
/// dropped; never one that this host cannot give.
pub fn capabilities(record: &ContainerRecord, available: &[String]) -> Vec<String> {
    let security = &record.config.security;
    let named = |list: &[String], name: &str| {
        list.iter().any(|asked| {
            let asked = asked.to_ascii_uppercase();
            asked == "ALL" || asked.strip_prefix("CAP_").unwrap_or(&asked) == name
        })
    };
    let is_added_by_name = |name: &str| {
        security
            .add_capabilities
            .iter()
            .any(|asked| asked.to_ascii_uppercase().ends_with(name))
    };
    let wanted = available.iter().filter(|name| {
        if security.privileged {
            return true;
        }
        let dropped = named(&security.drop_capabilities, name);
        let drops_all = security
            .drop_capabilities
            .iter()
            .any(|asked| asked.eq_ignore_ascii_case("ALL"));
        if dropped {
            return drops_all && is_added_by_name(name);
        }
        CAPABILITIES.contains(&name.as_str()) || named(&security.add_capabilities, name)
    });
    wanted.map(|name| format!("CAP_{name}")).collect()
}

fn namespaces(record: &ContainerRecord, host: &Host) -> Value {
    let sandbox = &record.sandbox.config;
    let pinned = |kind: &str| record.sandbox_directory.join("ns").join(kind);
    let mut namespaces = vec![json!({ "type": "mount" })];
    if sandbox.id_range.is_some() {
        namespaces.push(json!({ "type": "user", "path": pinned("user") }));
    }
    if !sandbox.host_pid {
        namespaces.push(match &host.pid_namespace {
            Some(path) => json!({ "type": "pid", "path": path }),
            None => json!({ "type": "pid" }),
        });
    }
    if !sandbox.host_network {
        namespaces.push(json!({ "type": "network", "path": pinned("net") }));
        namespaces.push(json!({ "type": "uts", "path": pinned("uts") }));
    }
    if !sandbox.host_ipc {
        namespaces.push(json!({ "type": "ipc", "path": pinned("ipc") }));
    }
    if host.unified_cgroups && !record.config.security.privileged {
        namespaces.push(json!({ "type": "cgroup" }));
    }
    Value::Array(namespaces)
}

fn resources(record: &ContainerRecord, host: &Host) -> Value {
    let asked = &record.config.resources;
    let has = |controller: &str| host.controllers.iter().any(|one| one == controller);
    let all = json!({ "allow": record.config.security.privileged, "access": "rwm" });
    let rules: Vec<Value> = std::iter::once(all)
        .chain(host.given.iter().map(rule))
        .collect();
    let mut resources = json!({ "devices": rules });
    if asked.memory_limit_bytes > 0 && has("memory") {
        resources["memory"] = json!({ "limit": asked.memory_limit_bytes });
        if host.limits_swap && !host.unified_cgroups {
            resources["memory"]["swap"] = json!(asked.memory_limit_bytes);
        }
    }
    if has("cpu") {
        resources["cpu"] = cpu(asked);
    }
    if asked.pids_limit > 0 && has("pids") {
        resources["pids"] = json!({ "limit": asked.pids_limit });
    }
    if has("hugetlb") && !host.huge_page_sizes.is_empty() {
        let limits = host.huge_page_sizes.iter().map(|size| {
            let asked = asked
                .huge_page_limits
                .iter()
                .find(|(asked, _)| asked == size);
            json!({ "pageSize": size, "limit": asked.map_or(0, |(_, bytes)| *bytes) })
        });
        resources["hugepageLimits"] = limits.collect();
    }
    if host.unified_cgroups && has("cpu") && asked.cpu_shares > 0 {
        // The kubelet's conversion, as pods' groups have it: libcontainer's gives other weights.
        resources["unified"]["cpu.weight"] = json!(weight(asked.cpu_shares).to_string());
        if let Some(cpu) = resources["cpu"].as_object_mut() {
            cpu.remove("shares");
        }
    }
    if host.unified_cgroups && has("memory") {
        // One process past the limit ends the whole container, as the kubelet has it.
        resources["unified"]["memory.oom.group"] = json!("1");
        if asked.memory_limit_bytes > 0 && host.limits_swap {
            resources["unified"]["memory.swap.max"] = json!("0");
        }
    }
    resources
}

fn cpu(asked: &Resources) -> Value {
    let mut cpu = json!({});
    if asked.cpu_shares > 0 {
        cpu["shares"] = json!(asked.cpu_shares.clamp(2, 262_144));
    }
    if asked.cpu_quota_us > 0 {
        let period = if asked.cpu_period_us == 0 {
            100_000
        } else {
            asked.cpu_period_us
        };
        cpu["period"] = json!(period.clamp(1000, 1_000_000));
        cpu["quota"] = json!(asked.cpu_quota_us.max(1000));
    }
    cpu
}

fn mounts(record: &ContainerRecord, host: &Host) -> Value {
    let config = &record.config;
    let sys = if config.security.privileged {
        "rw"
    } else {
        "ro"
    };
    let mut mounts: Vec<Value> = MOUNTS
        .iter()
        .map(|(kind, target, options)| {
            let last = if target.starts_with("/sys") {
                Some(sys)
            } else {
                None
            };
            let options: Vec<&str> = options.split(',').chain(last).collect();
            match *kind {
                "cgroup" if !host.own_groups.is_empty() => mount(
                    "tmpfs",
                    target,
                    "tmpfs",
                    &["nosuid", "noexec", "nodev", "mode=755"],
                ),
                kind => mount(kind, target, kind, &options),
            }
        })
        .collect();
    mounts.extend(host.own_groups.iter().map(|(name, group)| {
        let target = format!("/sys/fs/cgroup/{name}");
        let options = ["rbind", "rprivate", "nosuid", "noexec", "nodev", sys];
        mount(&group.to_string_lossy(), &target, "bind", &options)
    }));
    let is_given = |path: &str| {
        config
            .mounts
            .iter()
            .any(|m| m.container_path == Path::new(path))
    };
    if !is_given("/dev/shm") {
        let shm = match record.sandbox.config.host_ipc {
            true => "/dev/shm".into(),
            false => record.sandbox_directory.join("shm"),
        };
        let options = ["rbind", "nosuid", "noexec", "nodev"];
        mounts.push(mount(&shm.to_string_lossy(), "/dev/shm", "bind", &options));
    }
    if !record.sandbox.config.host_network && !is_given("/etc/hostname") {
        let name = record.sandbox_directory.join("hostname");
        let options = ["rbind", "rprivate", "rw"];
        mounts.push(mount(
            &name.to_string_lossy(),
            "/etc/hostname",
            "bind",
            &options,
        ));
    }
    let mut given: Vec<&Mount> = config.mounts.iter().collect();
    // A mount below another one comes after it.
    given.sort_by_key(|mount| mount.container_path.components().count());
    mounts.extend(given.into_iter().map(bind));
    Value::Array(mounts)
}

fn mount(source: &str, target: &str, kind: &str, options: &[&str]) -> Value {
    json!({ "destination": target, "type": kind, "source": source, "options": options })
}

fn bind(asked: &Mount) -> Value {
    let propagation = match asked.propagation {
        Propagation::Private => "rprivate",
        Propagation::HostToContainer => "rslave",
        Propagation::Bidirectional => "rshared",
    };
    let access: &[&str] = match (asked.read_only, asked.recursive_read_only) {
        _ if !asked.image.is_empty() => &["ro", "noexec", "nosuid", "nodev"],
        (true, true) => &["rro"],
        (true, false) => &["ro"],
        (false, _) => &["rw"],
    };
    let options = [&["rbind", propagation], access].concat();
    let target = Path::new("/").join(&asked.container_path);
    let (source, target) = (asked.host_path.to_string_lossy(), target.to_string_lossy());
    mount(&source, &target, "bind", &options)
}

#[cfg(test)]
mod tests;
