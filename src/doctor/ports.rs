//! The port of the API, found by binding it for a moment. A node of a cluster of ours dials and
//! listens on none.
//!
//! Which process has it is read from /proc, so that a Coracle that runs is told from a stranger.

use super::finding::Finding;
use procfs::process::FDTarget;
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpListener};

const CHECK: &str = "port";

pub fn check(listen: SocketAddr) -> Finding {
    let error = match TcpListener::bind(listen) {
        Ok(_) => return Finding::ok(CHECK, format!("{listen} is free")),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        let remedy = "Choose another by --listen, or run as root";
        return Finding::fail(CHECK, format!("{listen}: {error}"), remedy);
    }
    let holders = holders(listen.port());
    if holders.contains("coracle") {
        return Finding::ok(CHECK, format!("{listen} is Coracle's already"));
    }
    let names: Vec<_> = holders.into_iter().collect();
    let by = if names.is_empty() {
        "somebody".to_owned()
    } else {
        names.join(", ")
    };
    let remedy = "Stop it, or choose another by --listen";
    Finding::fail(CHECK, format!("{listen} is taken by {by}"), remedy)
}

/// Names of the processes that listen on a port.
fn holders(port: u16) -> BTreeSet<String> {
    let mut inodes = BTreeSet::new();
    let tables = [procfs::net::tcp(), procfs::net::tcp6()];
    for entry in tables.into_iter().flatten().flatten() {
        if entry.local_address.port() == port && entry.state == procfs::net::TcpState::Listen {
            inodes.insert(entry.inode);
        }
    }
    let processes = procfs::process::all_processes();
    let mut names = BTreeSet::new();
    for process in processes.into_iter().flatten().flatten() {
        let has = process.fd().is_ok_and(|descriptors| {
            descriptors.flatten().any(|descriptor| {
                matches!(descriptor.target, FDTarget::Socket(inode) if inodes.contains(&inode))
            })
        });
        if has && let Ok(stat) = process.stat() {
            names.insert(stat.comm);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn whoever_has_the_port_is_named() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let found = check(taken.local_addr().unwrap());
        assert_eq!(found.verdict, Verdict::Fail, "{found:?}");
        let own = procfs::process::Process::myself().unwrap().stat().unwrap();
        assert!(found.found.contains(&own.comm), "{found:?}");
    }

    #[test]
    fn a_free_port_is_free_afterwards_too() {
        let found = check((Ipv4Addr::LOCALHOST, 0).into());
        assert_eq!(found.verdict, Verdict::Ok, "{found:?}");
    }
}
