//! Tells systemd that the service is ready or stopping, where `NOTIFY_SOCKET` names its socket.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends one state such as `READY=1`; without a service manager it does nothing.
pub fn send(state: &str) {
    #[allow(clippy::disallowed_methods)] // The service manager's own channel, not a setting.
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send_to(path.as_encoded_bytes(), state) {
        tracing::warn!(%error, state, "could not tell the service manager");
    }
}

fn send_to(path: &[u8], state: &str) -> std::io::Result<()> {
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => {
            use std::os::unix::ffi::OsStrExt;
            SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?
        }
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests;
