//! `coracle shim run`: leaves the agent, starts the container, reports, and keeps it.
//!
//! One line of JSON on standard output, `{"pid":..}` or `{"error":".."}`, then it is closed.

use super::creator::{self, Streams};
use super::input::Input;
use super::supervise::{self, Outputs};
use super::{ShimError, process, terminal};
use crate::runtime::ContainerUser;
use crate::runtime::cgroups::Hierarchies;
use crate::runtime::record::{self, ContainerRecord, SOCKET, STARTED, StartedRecord};
use coracle_client::clock::Clock;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// The container's process, and whom it runs as.
type Created = (Pid, Option<ContainerUser>);

#[derive(Debug, Deserialize, Serialize)]
pub struct Report {
    pub pid: Option<i32>,
    #[serde(default)]
    pub user: Option<ContainerUser>,
    #[serde(default)]
    pub error: String,
}

pub fn main(directory: &Path) -> i32 {
    // The agent waits for the first process only; the second one belongs to nobody but init.
    let spawned = process::spawn(|| {
        let _ = nix::unistd::setsid();
        keep(directory)
    });
    i32::from(spawned.is_err())
}

fn keep(directory: &Path) -> i32 {
    let started = start(directory);
    let report = match &started {
        Ok(kept) => Report {
            pid: Some(kept.pid.as_raw()),
            user: None,
            error: String::new(),
        },
        Err(error) => Report {
            pid: None,
            user: None,
            error: crate::error::chain(error),
        },
    };
    let line = serde_json::to_string(&report).unwrap_or_default();
    let _ = io::stdout().write_all(line.as_bytes());
    let _ = io::stdout().flush();
    let _ = leave_standard_streams();
    match started {
        Ok(kept) => {
            kept.hierarchies.leave_accounts(&kept.record.shim_cgroup);
            supervise::supervise(kept)
        }
        Err(_) => 1,
    }
}

/// The reader of the report sees its end, and nothing later writes to the agent's terminal.
fn leave_standard_streams() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..3 {
        nix::unistd::dup2(null.as_raw_fd(), stream)?;
    }
    Ok(())
}

fn start(directory: &Path) -> Result<supervise::Kept, ShimError> {
    std::env::set_current_dir(directory).map_err(ShimError::io(format!(
        "cannot enter {}",
        directory.display()
    )))?;
    let record: ContainerRecord = record::read(Path::new(record::CONTAINER))
        .map_err(ShimError::io("cannot read the container's record"))?;
    let lock = only_one()?;
    let hierarchies =
        Hierarchies::of_host().map_err(ShimError::io("cannot read the mounted cgroups"))?;
    hierarchies.leave_service(&record.shim_cgroup);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(ShimError::io("cannot adopt the container's orphans"))?;
    let log = super::log::Log::open(&record.config.log_path).map_err(ShimError::io(format!(
        "cannot open {}",
        record.config.log_path.display()
    )))?;
    let _ = std::fs::remove_file(SOCKET);
    let listener = UnixListener::bind(SOCKET).map_err(ShimError::io("cannot make the socket"))?;
    let ((pid, user), outputs) = match record.config.tty {
        true => create_with_terminal(directory, &record)?,
        false => create_with_pipes(directory, &record)?,
    };
    let started = StartedRecord {
        pid: pid.as_raw(),
        started_at: Clock::system().now(),
        user,
    };
    record::write(Path::new(STARTED), &started)
        .map_err(ShimError::io("cannot write the container's state"))?;
    Ok(supervise::Kept {
        pid,
        record,
        hierarchies,
        listener,
        log,
        outputs,
        _lock: lock,
    })
}

/// An agent that came back too early to see this shim's socket may start another one.
fn only_one() -> Result<Flock<File>, ShimError> {
    let file = File::open(record::CONTAINER).map_err(ShimError::io("cannot open the record"))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| ShimError::Failed("the container runs already".into()))
}

fn create_with_pipes(
    directory: &Path,
    record: &ContainerRecord,
) -> Result<(Created, Outputs), ShimError> {
    let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(ShimError::io("cannot make a pipe"));
    let (stdout, stdout_inside) = pipe()?;
    let (stderr, stderr_inside) = pipe()?;
    let (stdin_inside, input) = match record.config.stdin {
        true => {
            let (inside, ours) = pipe()?;
            (inside, Input::new(ours, record.config.stdin_once))
        }
        false => {
            let null = File::open("/dev/null").map_err(ShimError::io("cannot open /dev/null"))?;
            (null.into(), Input::default())
        }
    };
    let inside = [stdin_inside, stdout_inside, stderr_inside];
    let created = create(directory, record, Some(inside))?;
    Ok((created, Outputs::pipes(input, stdout, stderr)))
}

fn create_with_terminal(
    directory: &Path,
    record: &ContainerRecord,
) -> Result<(Created, Outputs), ShimError> {
    let _ = std::fs::remove_file(creator::CONSOLE);
    let console = UnixListener::bind(creator::CONSOLE)
        .map_err(ShimError::io("cannot make the console's socket"))?;
    let created = create(directory, record, None)?;
    let _ = std::fs::remove_file(creator::CONSOLE);
    let (socket, _) = console
        .accept()
        .map_err(ShimError::io("no terminal was sent"))?;
    let terminal = terminal::receive(&socket).map_err(ShimError::io("no terminal was sent"))?;
    let input = match record.config.stdin {
        true => {
            let again = terminal.try_clone();
            Input::new(
                again.map_err(ShimError::io("cannot keep the terminal"))?,
                false,
            )
        }
        false => Input::default(),
    };
    Ok((created, Outputs::terminal(terminal, input)))
}

/// Runs the creator and waits for it. The container is ours after that, as the subreaper.
fn create(
    directory: &Path,
    record: &ContainerRecord,
    streams: Streams,
) -> Result<Created, ShimError> {
    let (reader, writer) =
        nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(ShimError::io("cannot make a pipe"))?;
    let writer = File::from(writer);
    let creator = process::spawn(|| {
        let made = creator::create(directory, record, streams);
        let report = match made {
            Ok((pid, user)) => Report {
                pid: Some(pid),
                user: Some(user),
                error: String::new(),
            },
            Err(error) => Report {
                pid: None,
                user: None,
                error: crate::error::chain(&error),
            },
        };
        let text = serde_json::to_string(&report).unwrap_or_default();
        i32::from((&writer).write_all(text.as_bytes()).is_err())
    })
    .map_err(ShimError::io("cannot fork"))?;
    drop(writer);
    let mut text = String::new();
    let read = File::from(reader).read_to_string(&mut text);
    let code = process::wait(creator).map_err(ShimError::io("cannot wait for the creator"))?;
    read.map_err(ShimError::io("cannot hear the creator"))?;
    let report: Report = serde_json::from_str(&text)
        .map_err(|_| ShimError::Failed(format!("the creator ended with code {code}")))?;
    match report.pid {
        Some(pid) => Ok((Pid::from_raw(pid), report.user)),
        None => Err(ShimError::Failed(report.error)),
    }
}
