//! Network namespaces of a test's own. Needs root, as the agent does.

use nix::sched::{CloneFlags, unshare};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;

/// A namespace with nothing in it, there as long as this is.
pub struct Namespace {
    pub path: PathBuf,
    _keep: mpsc::SyncSender<()>,
}

impl Namespace {
    pub fn new() -> Self {
        let (tell, told) = mpsc::sync_channel(1);
        let (keep, kept) = mpsc::sync_channel::<()>(1);
        std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("root makes network namespaces");
            let (process, thread) = (std::process::id(), nix::unistd::gettid());
            let path = format!("/proc/{process}/task/{thread}/ns/net");
            tell.send(path.into()).unwrap();
            let _ = kept.recv();
        });
        Self {
            path: told.recv().unwrap(),
            _keep: keep,
        }
    }
}

/// Runs `work` in a fresh network namespace.
pub fn isolated<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("root makes network namespaces");
        work()
    });
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// Both at once.
pub fn isolated_async<T, Running>(work: impl FnOnce() -> Running + Send + 'static) -> T
where
    T: Send + 'static,
    Running: Future<Output = T>,
{
    isolated(|| block_on(work()))
}

/// In the namespace of the calling thread.
#[track_caller]
pub fn ip_command(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {said}");
}
