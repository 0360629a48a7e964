//! The address by which others reach this machine, where the settings name none.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Any address outside; nothing is sent to it (documentation range, RFC 5737).
const OUTSIDE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// The address listened on, unless that stands for all of them: then the one that the route to the
/// outside leaves from, and loopback on a machine that has no such route.
pub fn address(listening: IpAddr) -> IpAddr {
    if !listening.is_unspecified() {
        return listening;
    }
    let routed = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect(OUTSIDE).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    routed().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
