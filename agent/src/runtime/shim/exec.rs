//! `coracle shim exec`: one command in a running container.
//!
//! Its standard streams are the command's. Without a terminal they are the caller's pipes and
//! nothing is copied; with one, the terminal goes to the caller over its socket. The result
//! file says how it ended, so that the caller can tell a failed start from an exit code. On
//! SIGTERM, which says that the caller lost interest, the command is killed.

use super::confinement::Confinement;
use super::executor::Become;
use super::{ShimError, creator, mapped, process};
use crate::runtime::record::{self, CONTAINER, ContainerRecord};
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::rc::Rc;

#[derive(Debug, Deserialize, Serialize)]
pub struct ExecResult {
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub error: String,
}

pub fn main(directory: &Path, result: &Path, console: &str, command: &[&str]) -> i32 {
    let ended = run(directory, console, command);
    let (written, code) = match ended {
        Ok(code) => (
            ExecResult {
                exit_code: Some(code),
                error: String::new(),
            },
            0,
        ),
        Err(error) => {
            let error = crate::error::chain(&error);
            (
                ExecResult {
                    exit_code: None,
                    error,
                },
                1,
            )
        }
    };
    match record::write(result, &written) {
        Ok(()) => code,
        Err(_) => 2,
    }
}

fn run(directory: &Path, console: &str, command: &[&str]) -> Result<i32, ShimError> {
    std::env::set_current_dir(directory).map_err(ShimError::io(format!(
        "cannot enter {}",
        directory.display()
    )))?;
    let record: ContainerRecord = record::read(Path::new(CONTAINER))
        .map_err(ShimError::io("cannot read the container's record"))?;
    let confinement = Confinement::load(&record)?;
    let sandbox = &record.sandbox.config;
    if sandbox.id_range.is_some() {
        mapped::stage_again(directory)?;
    }
    // Before the command is there to be left behind; it starts with no signal blocked itself.
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.add(Signal::SIGTERM);
    mask.thread_block()
        .map_err(ShimError::io("cannot block signals"))?;
    let process_file = format!("x/{}.json", std::process::id());
    let user = write_process(&process_file, !console.is_empty(), command)?;
    own_streams(ShimError::user_on_node(sandbox, user)?)?;
    let failed = |error: libcontainer::error::LibcontainerError| ShimError::container(&error);
    let builder = ContainerBuilder::new(record.id.0.clone(), SyscallType::default())
        .with_executor(Become {
            devices: None,
            confinement: Rc::new(confinement),
            failure: None,
        })
        .with_root_path(directory.join(creator::STATE))
        .map_err(failed)?
        .with_console_socket((!console.is_empty()).then_some(console));
    let started = builder
        .as_tenant()
        .with_process(Some(&process_file))
        .with_detach(true)
        .build()
        .map_err(failed);
    let _ = fs::remove_file(&process_file);
    let pid = started?;
    let _ = close_standard_streams();
    wait(pid, &mask)
}

/// The command may open them again by /dev/stdout.
fn own_streams(user: u32) -> Result<(), ShimError> {
    let failed = || ShimError::io("cannot hand over the standard streams");
    creator::give(std::io::stdin(), user).map_err(failed())?;
    creator::give(std::io::stdout(), user).map_err(failed())?;
    creator::give(std::io::stderr(), user).map_err(failed())
}

/// The container's process with another command. Answers with its user.
fn write_process(path: &str, terminal: bool, command: &[&str]) -> Result<u32, ShimError> {
    let spec: serde_json::Value = record::read(Path::new("config.json"))
        .map_err(ShimError::io("cannot read the container's specification"))?;
    let mut process = spec["process"].clone();
    process["args"] = serde_json::json!(command);
    process["terminal"] = serde_json::json!(terminal);
    let has_term = |variable: &serde_json::Value| {
        variable
            .as_str()
            .is_some_and(|text| text.starts_with("TERM="))
    };
    if terminal
        && let Some(environment) = process["env"].as_array_mut()
        && !environment.iter().any(has_term)
    {
        environment.push("TERM=xterm".into());
    }
    fs::write(path, process.to_string()).map_err(ShimError::io(format!("cannot write {path}")))?;
    let user = process["user"]["uid"].as_u64();
    Ok(user.and_then(|user| u32::try_from(user).ok()).unwrap_or(0))
}

/// Else this process would hold the caller's pipes open after the command closed them.
fn close_standard_streams() -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let null = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for stream in 0..3 {
        nix::unistd::dup2(null.as_raw_fd(), stream)?;
    }
    Ok(())
}

fn wait(command: Pid, mask: &SigSet) -> Result<i32, ShimError> {
    loop {
        match waitpid(command, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(128 + signal as i32),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(ShimError::io("cannot wait for the command")(errno)),
        }
        if mask.wait() == Ok(Signal::SIGTERM) {
            process::kill(command, Signal::SIGKILL as i32);
        }
    }
}
