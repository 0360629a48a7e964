//! Settings of the kernel that the pods' network needs. A read-only /proc may have them right.

use std::path::Path;
use tokio::process::Command;

/// Lets packets of the family pass between the pods and the rest.
pub fn forward(is_ipv4: bool) {
    let path = if is_ipv4 {
        "/proc/sys/net/ipv4/ip_forward"
    } else {
        keep_listening_to_routers();
        "/proc/sys/net/ipv6/conf/all/forwarding"
    };
    set(path, "1", "pods reach only this node");
}

/// A machine that forwards IPv6 hears no routers unless it is told to: it would lose the addresses
/// and the default route that it has from them.
fn keep_listening_to_routers() {
    let links = std::fs::read_dir("/proc/sys/net/ipv6/conf");
    for link in links.into_iter().flatten().flatten() {
        let path = link.path().join("accept_ra");
        let listens = std::fs::read_to_string(&path).is_ok_and(|text| text.trim() == "1");
        if listens && let Err(error) = std::fs::write(&path, "2") {
            let path = path.display();
            tracing::warn!(%path, %error, "routers of IPv6 are not heard any more");
        }
    }
}

const BRIDGE_SETTINGS: &str = "/proc/sys/net/bridge";

/// For plugins that put pods on a bridge: what passes it passes the packet filter too, where Services
/// are resolved; and packets pass between it and the rest.
pub async fn serve_plugins() {
    forward(true);
    if !Path::new(BRIDGE_SETTINGS).exists() {
        let loaded = Command::new("modprobe").arg("br_netfilter").output().await;
        tracing::debug!(?loaded, "asked for br_netfilter");
    }
    for name in ["iptables", "ip6tables"] {
        let path = format!("{BRIDGE_SETTINGS}/bridge-nf-call-{name}");
        set(
            &path,
            "1",
            "pods on one bridge do not reach each other by Services",
        );
    }
}

/// The node may reach a pod by ports of its loopback address. That pods do not reach it there is
/// for the packet filter.
pub fn route_loopback(link: &str) {
    let path = format!("/proc/sys/net/ipv4/conf/{link}/route_localnet");
    set(&path, "1", "ports of pods are not at the loopback address");
}

/// The same for the links of all pods that there are.
pub fn route_loopback_of_pods() {
    let links = std::fs::read_dir("/proc/sys/net/ipv4/conf");
    for link in links.into_iter().flatten().flatten() {
        if let Some(name) = link
            .file_name()
            .to_str()
            .filter(|name| super::is_of_pod(name))
        {
            route_loopback(name);
        }
    }
}

fn set(path: &str, value: &str, without: &str) {
    let is_set = std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is_set {
        return;
    }
    if let Err(error) = std::fs::write(path, value) {
        tracing::warn!(path, %error, "{without}");
    }
}
