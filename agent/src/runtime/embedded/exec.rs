//! Commands in running containers.

use super::super::shim::{self, ExecResult};
use super::super::{RuntimeError, contract::*, record};
use super::terminal::Terminal;
use super::watch::short_path;
use super::{Inner, io_error};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// A person drags a window's edge; what the terminal misses comes with the next.
const RESIZES_MAX: usize = 4;

/// The process that stands for the command. Dropped before its end, it kills the command.
struct Running {
    child: Child,
    result: PathBuf,
}

impl Running {
    async fn exit(mut self) -> Result<i32, RuntimeError> {
        let status = self
            .child
            .wait()
            .await
            .map_err(io_error("cannot wait for exec".into()))?;
        let result: Result<ExecResult, _> = record::read(&self.result);
        match result {
            Ok(ExecResult {
                exit_code: Some(code),
                ..
            }) => Ok(code),
            Ok(ExecResult { error, .. }) => Err(RuntimeError::Failed(format!(
                "failed to exec in container: {error}"
            ))),
            Err(_) => Err(RuntimeError::Failed(format!("exec broke off: {status}"))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has an id as long as it was not waited for.
        if let Some(pid) = self.child.id() {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
        }
        let _ = fs::remove_file(&self.result);
    }
}

impl Inner {
    pub async fn exec(
        &self,
        id: &ContainerId,
        config: ExecConfig,
    ) -> Result<ExecStreams, RuntimeError> {
        let container = self.container(id)?;
        if !container.is_running() {
            return Err(RuntimeError::Failed(format!(
                "container {id} is not running"
            )));
        }
        if config.command.is_empty() {
            return Err(RuntimeError::Invalid(
                "you must specify at least one command".into(),
            ));
        }
        let name = hex::encode(rand::random::<[u8; 8]>());
        let directory = container.directory.join("x");
        let result = directory.join(format!("{name}.result"));
        let console = directory.join(format!("{name}.sock"));
        let mut command = self.shim("exec", &container.directory);
        command.arg("--result").arg(&result).arg("--console");
        if config.tty {
            return exec_on_terminal(command, &config, result, &directory, &console).await;
        }
        command.arg("").arg("--").args(&config.command);
        let stream = |wanted: bool| {
            if wanted {
                Stdio::piped()
            } else {
                Stdio::null()
            }
        };
        command
            .stdin(stream(config.stdin))
            .stdout(stream(config.stdout))
            .stderr(stream(config.stderr));
        let mut child = command
            .spawn()
            .map_err(io_error("cannot run the shim".into()))?;
        let (resize, _) = mpsc::channel(RESIZES_MAX);
        Ok(ExecStreams {
            stdin: child.stdin.take().map(|stdin| Box::new(stdin) as _),
            stdout: child.stdout.take().map(|stdout| Box::new(stdout) as _),
            stderr: child.stderr.take().map(|stderr| Box::new(stderr) as _),
            resize,
            exit: Box::pin(Running { child, result }.exit()),
        })
    }
}

/// Readiness is a hint: what is not there yet is waited for again.
async fn receive(socket: &UnixStream) -> std::io::Result<OwnedFd> {
    loop {
        socket.readable().await?;
        let received = socket.try_io(Interest::READABLE, || shim::receive_terminal(socket));
        match received {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            received => return received,
        }
    }
}

async fn exec_on_terminal(
    mut command: Command,
    config: &ExecConfig,
    result: PathBuf,
    directory: &Path,
    console: &Path,
) -> Result<ExecStreams, RuntimeError> {
    let failed = || io_error("cannot make the terminal's socket".into());
    let opened = File::open(directory).map_err(failed())?;
    let name = console.file_name().unwrap_or_default().to_string_lossy();
    let listener = UnixListener::bind(short_path(&opened, &name)).map_err(failed())?;
    command.arg(console).arg("--").args(&config.command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command
        .spawn()
        .map_err(io_error("cannot run the shim".into()));
    let mut running = Running {
        child: child?,
        result,
    };
    let accepted = tokio::select! {
        accepted = listener.accept() => Some(accepted),
        _ = running.child.wait() => None,
    };
    let _ = fs::remove_file(console);
    let Some(accepted) = accepted else {
        let error = RuntimeError::Failed("exec ended before it had a terminal".into());
        return Err(running.exit().await.err().unwrap_or(error));
    };
    let (socket, _) = accepted.map_err(failed())?;
    let terminal = receive(&socket).await.map_err(failed())?;
    let terminal = Terminal::new(terminal).map_err(failed())?;
    let (resize, sizes) = mpsc::channel(RESIZES_MAX);
    tokio::spawn(terminal.clone().resize(sizes));
    Ok(ExecStreams {
        stdin: config.stdin.then(|| Box::new(terminal.clone()) as _),
        stdout: config.stdout.then(|| Box::new(terminal) as _),
        stderr: None,
        resize,
        exit: Box::pin(running.exit()),
    })
}
