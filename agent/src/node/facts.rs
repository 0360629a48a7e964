//! What this machine is: read from /proc, /sys and /etc once, when the agent starts. What of it is
//! in use is not told here.

use crate::network;
use crate::runtime::Handler;
use crate::usage::disk::file_system;
use crate::usage::node;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";

#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub machine_id: String,
    pub system_uuid: String,
    pub boot_id: String,
    pub kernel_version: String,
    pub os_image: String,
    pub architecture: String,
    pub cpus: i64,
    pub memory_bytes: i64,
    /// Of the file system that pods write to.
    pub disk_bytes: i64,
    pub process_ids_max: i64,
    /// This and the handlers are the runtime's, which has to be asked for them.
    pub has_strict_groups: bool,
    pub handlers: Vec<Handler>,
    pub huge_pages: Vec<HugePages>,
}

/// Of one size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HugePages {
    pub page_bytes: i64,
    pub count: i64,
}

impl Facts {
    /// `data_dir` tells which file system's space is the pods'.
    pub fn of_machine(data_dir: &Path) -> Self {
        let text = |path: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().to_owned()
        };
        let machine_id = text("/etc/machine-id");
        let mut system_uuid = text("/sys/class/dmi/id/product_uuid");
        if system_uuid.is_empty() {
            system_uuid.clone_from(&machine_id);
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            machine_id,
            system_uuid,
            boot_id: text("/proc/sys/kernel/random/boot_id"),
            kernel_version: text("/proc/sys/kernel/osrelease"),
            os_image: pretty_name(&text("/etc/os-release")),
            architecture: go_architecture(std::env::consts::ARCH).to_owned(),
            cpus: i64::try_from(cpus).unwrap_or(i64::MAX),
            memory_bytes: node::field(&text("/proc/meminfo"), "MemTotal").unwrap_or(0),
            disk_bytes: file_system(data_dir).map_or(0, |disk| disk.total_bytes),
            process_ids_max: node::process_ids_max().unwrap_or(0),
            huge_pages: huge_pages(Path::new(HUGE_PAGES)),
            has_strict_groups: false,
            handlers: Vec::new(),
        }
    }
}

/// The sizes that the kernel has, whether or not there are any of them. The directories are called
/// `hugepages-2048kB`.
fn huge_pages(directory: &Path) -> Vec<HugePages> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let pages = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let kib: i64 = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let count = fs::read_to_string(entry.path().join("nr_hugepages")).ok()?;
        Some(HugePages {
            page_bytes: kib * 1024,
            count: count.trim().parse().ok()?,
        })
    };
    let mut found: Vec<_> = entries.filter_map(pages).collect();
    found.sort_by_key(|pages| pages.page_bytes);
    found
}

fn pretty_name(os_release: &str) -> String {
    let line = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(
        || "Linux".to_owned(),
        |name| name.trim_matches('"').to_owned(),
    )
}

fn go_architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// The source address towards the server or, when that is on this machine, towards the rest of the
/// world.
pub fn address_towards(server: Option<SocketAddr>) -> Option<IpAddr> {
    let world = [
        SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 9)),
        SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9)),
    ];
    let mut routed = server.into_iter().chain(world).filter_map(source_address);
    routed.find(|address| !address.is_loopback())
}

/// Asks the kernel's routes; sends nothing.
fn source_address(towards: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if towards.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(towards).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// On a machine without a default route. What this agent made is none of it.
pub fn first_global_address() -> Option<IpAddr> {
    let all = network::machine_addresses().into_iter();
    let mut foreign = all
        .filter(|(link, _)| !network::is_of_ours(link))
        .map(|(_, address)| address);
    foreign.find(|address| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    })
}

#[cfg(test)]
mod tests;
