//! `coracle shim`: the processes that stand between the agent and its containers.
//!
//! - `run DIR` starts a container and keeps it: it owns the outputs, the log and the end, and
//!   outlives the agent. Reports on its standard output, once.
//! - `exec DIR ...` runs a command in a container and ends as the command does.
//! - `probe DIR` tells whether user namespaces can be had for what is in a directory.
//! - `sandbox DIR` makes and pins namespaces, and ends; where containers share a PID namespace, it
//!   leaves that namespace's first process behind.
//!
//! Invariants: one thread, so that forking and joining namespaces are sound; what keeps running
//! never touches libcontainer, which runs in a forked child, so that it stays small.

mod binds; // What is mounted of the node.
mod clients;
mod confinement;
mod creator;
mod devices;
mod exec;
mod executor;
mod host;
mod input;
mod log;
mod mapped;
mod process;
mod reaper;
mod rootfs;
mod run;
mod sandbox;
mod supervise;
mod terminal;
mod user_namespace;

pub use exec::ExecResult;
pub use run::Report;
pub use terminal::receive as receive_terminal;

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// As sysexits(3): wrong arguments.
const USAGE: i32 = 64;

#[derive(Debug, thiserror::Error)]
enum ShimError {
    #[error("{0}")]
    Failed(String),
    #[error("{action}")]
    Io { action: String, source: io::Error },
    #[error(transparent)]
    User(#[from] super::user::UserError),
    /// What libcontainer says, down to its cause.
    #[error("{0}")]
    Container(String),
}

impl ShimError {
    fn io<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |error| Self::Io {
            action,
            source: error.into(),
        }
    }

    /// The node's id of a container's user, in runc's words where there is none.
    fn user_on_node(config: &super::SandboxConfig, user: u32) -> Result<u32, Self> {
        config.id_on_node(user).ok_or_else(|| {
            let text = "cannot set uid to unmapped user in user namespace";
            Self::Failed(format!("{text}: {user}"))
        })
    }

    fn container(error: &libcontainer::error::LibcontainerError) -> Self {
        Self::Container(crate::error::chain(error))
    }
}

/// The arguments after `shim`. Called before any thread exists.
pub fn main(arguments: &[OsString]) -> i32 {
    process::close_inherited();
    let texts: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = texts.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", directory] => run::main(Path::new(directory)),
        [
            "exec",
            directory,
            "--result",
            result,
            "--console",
            console,
            "--",
            command @ ..,
        ] => exec::main(Path::new(directory), Path::new(result), console, command),
        ["probe", directory] => sandbox::probe(Path::new(directory)),
        ["sandbox", directory] => sandbox::main(Path::new(directory)),
        _ => USAGE,
    }
}
