//! Network namespaces of a test's own. Needs root, as the agent does.

use nix::sched::{CloneFlags, unshare};

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
