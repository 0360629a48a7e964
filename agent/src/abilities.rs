//! What the kernel of this machine can do for a node, found out by doing it: in namespaces of a
//! thread's own, which end with it, so that nothing of the tries stays but what the caller's
//! directory holds.
//!
//! Needs root, as the agent does. Asks for no version and no module: a kernel that was built
//! otherwise, or forbids it in a container, is what this is for.

use crate::network::nft::{Batch, Nft};
use crate::runtime::Hierarchies;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::{LinkBridge, LinkVeth, LinkVxlan, LinkWireguard};
use std::fs;
use std::io;
use std::path::Path;

/// Controllers of control groups without which a container has no limits.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
const VXLAN_ID: u32 = 1;

/// What a node asks of its kernel.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ability {
    /// Network and mount namespaces.
    Namespaces,
    /// The root file systems of containers.
    Overlay,
    /// Pods with `hostUsers: false`.
    UserNamespaces,
    /// nf_tables: Services, host ports, NetworkPolicy.
    PacketFilter,
    Bridge,
    Veth,
    /// Pods of other nodes, where these are not on one segment.
    Vxlan,
    /// `--encrypt-pod-network`, by the kernel.
    WireGuard,
}

/// An ability, and what the kernel said where it is not there.
pub type Tried = (Ability, Result<(), String>);

/// Tries all; `scratch` is an empty directory on the file system of the data directory.
pub fn try_all(scratch: &Path) -> Vec<Tried> {
    std::thread::scope(|scope| {
        let tries = scope.spawn(|| in_own_namespaces(scratch));
        tries.join().unwrap_or_else(|_| {
            let why = "the tries did not come to their end".to_owned();
            vec![(Ability::Namespaces, Err(why))]
        })
    })
}

/// Which controllers of control groups are missing.
pub fn missing_controllers() -> io::Result<Vec<&'static str>> {
    let groups = Hierarchies::of_host()?;
    let mut missing = CONTROLLERS.to_vec();
    missing.retain(|controller| !groups.offers(controller));
    Ok(missing)
}

fn in_own_namespaces(scratch: &Path) -> Vec<Tried> {
    let own = unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).and_then(|()| {
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
    });
    let mut tried = vec![(Ability::Namespaces, own.map_err(|error| error.to_string()))];
    if tried[0].1.is_err() {
        // The rest would be tried on the machine's own network.
        return tried;
    }
    let overlay = overlay(scratch).map_err(|error| error.to_string());
    tried.push((Ability::Overlay, overlay));
    tried.push((Ability::UserNamespaces, user_namespaces()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => tried.extend(runtime.block_on(network())),
        Err(error) => tried.push((Ability::PacketFilter, Err(error.to_string()))),
    }
    tried
}

fn overlay(scratch: &Path) -> io::Result<()> {
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir_all(scratch.join(name))?;
    }
    let at = |name: &str| scratch.join(name).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let (kind, target) = (Some("overlay"), scratch.join("merged"));
    mount(
        kind,
        &target,
        kind,
        MsFlags::empty(),
        Some(options.as_str()),
    )?;
    // Some file systems mount and then refuse what an upper layer has to keep.
    fs::write(target.join("file"), b"written")
}

fn user_namespaces() -> Result<(), String> {
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces");
    match most.map(|text| text.trim().to_owned()) {
        Ok(text) if text == "0" => Err("user.max_user_namespaces is 0".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

async fn network() -> Vec<Tried> {
    let mut tried = vec![(Ability::PacketFilter, packet_filter().await)];
    let links: [(Ability, LinkMessage); 4] = [
        (Ability::Bridge, LinkBridge::new("bridge").build()),
        (Ability::Veth, LinkVeth::new("one", "other").build()),
        (Ability::Vxlan, LinkVxlan::new("vxlan", VXLAN_ID).build()),
        (Ability::WireGuard, LinkWireguard::new("wireguard").build()),
    ];
    let handle = match rtnetlink::new_connection() {
        Ok((connection, handle, _)) => {
            tokio::spawn(connection);
            handle
        }
        Err(error) => {
            let failed = |(ability, _)| (ability, Err(error.to_string()));
            tried.extend(links.into_iter().map(failed));
            return tried;
        }
    };
    for (ability, message) in links {
        let made = handle.link().add(message).execute().await;
        tried.push((ability, made.map_err(|error| said(&error))));
    }
    tried
}

/// The kernel's own words.
fn said(error: &rtnetlink::Error) -> String {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io().to_string(),
        error => error.to_string(),
    }
}

async fn packet_filter() -> Result<(), String> {
    let nft = Nft::open().map_err(|error| crate::error::chain(&error))?;
    let mut batch = Batch::new();
    batch.add_table();
    let committed = nft.commit(&batch).await;
    committed.map_err(|error| crate::error::chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_a_node_and_nothing_of_the_tries_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let tried = try_all(scratch.path());
        for needed in [
            Ability::Namespaces,
            Ability::Overlay,
            Ability::PacketFilter,
            Ability::Bridge,
            Ability::Veth,
            Ability::Vxlan,
        ] {
            assert!(tried.contains(&(needed, Ok(()))), "{tried:?}");
        }
        // Neither the mount nor the links are the machine's.
        let merged = scratch.path().join("merged");
        assert_eq!(fs::read_dir(merged).unwrap().count(), 0);
        assert!(!Path::new("/sys/class/net/vxlan").exists());
        assert_eq!(missing_controllers().unwrap(), [""; 0]);
    }

    #[test]
    fn what_fails_is_told_in_the_kernels_words() {
        let tried = try_all(Path::new("/proc"));
        let overlay = tried
            .iter()
            .find(|(ability, _)| *ability == Ability::Overlay);
        let (_, told) = overlay.unwrap();
        assert!(told.is_err(), "{told:?}");
    }
}
