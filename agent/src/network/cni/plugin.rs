//! One run of a plugin: a program that reads its configuration, answers on its output, and ends.
//!
//! Invariants: of one that is broken off nothing in its process group is left running, but what
//! cannot be killed; it takes no longer and says no more than it may. What one that ended by itself
//! left running is its own business.

use super::outcome;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Of the output; results have a few hundred.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// Of what it complains of, which is read on and forgotten.
const COMPLAINT_BYTES_MAX: u64 = 16 << 10;
/// After a plugin has ended, others may hold its outputs open: what is there by then is enough.
const DRAIN_MAX: Duration = Duration::from_millis(100);
/// For a process that was killed; one that the kernel does not let go of is left behind.
const KILL_MAX: Duration = Duration::from_secs(2);
/// For a program that is just being written.
const BUSY_TRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// The agent's own, which are none of a plugin's business.
const SECRETS: [&str; 1] = ["CORACLE_TOKEN"];

#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("failed to find plugin {name:?} in path [{path}]")]
    Missing { name: String, path: String },
    #[error("cannot run {program}")]
    Run { program: PathBuf, source: io::Error },
    #[error("it did not end within {0:?} and was killed")]
    Late(Duration),
    #[error("it said more than {OUTPUT_BYTES_MAX} bytes and was killed")]
    Talkative,
    #[error("the agent does not wait for it any more, and it was killed")]
    Stopped,
    /// What the plugin says itself.
    #[error("{0}")]
    Failed(String),
}

/// What a plugin is started with.
#[derive(Debug)]
pub struct Invocation {
    pub program: PathBuf,
    pub environment: Vec<(&'static str, OsString)>,
    pub input: Vec<u8>,
    pub time_max: Duration,
}

/// The program of a plugin.
pub fn find(name: &str, directories: &[PathBuf]) -> Result<PathBuf, PluginError> {
    let mut all = directories.iter().map(|directory| directory.join(name));
    all.find(|path| path.is_file()).ok_or_else(|| {
        let path: Vec<_> = directories
            .iter()
            .map(|directory| directory.display().to_string())
            .collect();
        PluginError::Missing {
            name: name.to_owned(),
            path: path.join(" "),
        }
    })
}

/// Its output, when it ends well.
pub async fn run(
    invocation: &Invocation,
    stop: &CancellationToken,
) -> Result<Vec<u8>, PluginError> {
    if stop.is_cancelled() {
        return Err(PluginError::Stopped);
    }
    let child = spawn(invocation).await;
    let child = child.map_err(|source| PluginError::Run {
        program: invocation.program.clone(),
        source,
    })?;
    let mut group = Group { child };
    let mut said = Said::default();
    let ended = tokio::select! {
        ended = finish(&mut group.child, &invocation.input, &mut said) => ended,
        () = tokio::time::sleep(invocation.time_max) => Err(PluginError::Late(invocation.time_max)),
        () = stop.cancelled() => Err(PluginError::Stopped),
    };
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            group.kill();
            // What comes next may be a run that undoes this one.
            let _ = tokio::time::timeout(KILL_MAX, group.child.wait()).await;
            return Err(error);
        }
    };
    if status.success() {
        if !said.complaint.is_empty() {
            let (plugin, said) = (&invocation.program, &said.complaint);
            let said = String::from_utf8_lossy(said);
            tracing::debug!(plugin = %plugin.display(), %said, "a network plugin said something");
        }
        return Ok(said.output);
    }
    let why = outcome::failure(&said.output, &said.complaint, status);
    Err(PluginError::Failed(why))
}

async fn spawn(invocation: &Invocation) -> io::Result<Child> {
    let mut command = Command::new(&invocation.program);
    let environment = invocation.environment.iter();
    command
        .envs(environment.map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for name in SECRETS {
        command.env_remove(name);
    }
    let mut tries = 1;
    loop {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                if tries == BUSY_TRIES {
                    return Err(error);
                }
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            spawned => return spawned,
        }
    }
}

#[derive(Debug, Default)]
struct Said {
    output: Vec<u8>,
    complaint: Vec<u8>,
}

async fn finish(
    child: &mut Child,
    input: &[u8],
    said: &mut Said,
) -> Result<std::process::ExitStatus, PluginError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let Said { output, complaint } = said;
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // It need not read it.
            let _ = stdin.write_all(input).await;
        }
        Ok(())
    };
    let hearing = async {
        let mut bounded = piped(stdout).take(OUTPUT_BYTES_MAX + 1);
        let _ = bounded.read_to_end(output).await;
        match output.len() as u64 > OUTPUT_BYTES_MAX {
            true => Err(PluginError::Talkative),
            false => Ok(()),
        }
    };
    let listening = async {
        let mut stderr = piped(stderr);
        let mut bounded = (&mut stderr).take(COMPLAINT_BYTES_MAX);
        let _ = bounded.read_to_end(complaint).await;
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        Ok(())
    };
    let talking = async { tokio::try_join!(feeding, hearing, listening).map(|_| ()) };
    tokio::pin!(talking);
    let mut is_silent = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            talked = &mut talking, if !is_silent => {
                talked?;
                is_silent = true;
            }
        }
    };
    if !is_silent && let Ok(talked) = tokio::time::timeout(DRAIN_MAX, talking).await {
        talked?;
    }
    status.map_err(|error| PluginError::Failed(format!("its end is not known: {error}")))
}

fn piped(
    pipe: Option<impl AsyncRead + Unpin + Send + 'static>,
) -> Box<dyn AsyncRead + Unpin + Send> {
    match pipe {
        Some(pipe) => Box::new(pipe),
        None => Box::new(tokio::io::empty()),
    }
}

/// A plugin and what it runs in turn; gone when this is dropped, unless it has ended by itself.
struct Group {
    child: Child,
}

impl Group {
    fn kill(&self) {
        // None after it was waited for: the number may be another's.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id {
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Of directories in which programs are looked for.
pub fn joined(directories: &[impl AsRef<Path>]) -> OsString {
    let all: Vec<_> = directories
        .iter()
        .map(|one| one.as_ref().as_os_str())
        .collect();
    all.join(std::ffi::OsStr::new(":"))
}

#[cfg(test)]
mod tests;
