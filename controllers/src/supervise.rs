//! Keeps a control loop running: one that panics is started again after a wait.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

use crate::{Context, Loop};

/// The first wait; doubles with each panic in a row.
const RESTART_MIN: Duration = Duration::from_secs(1);
const RESTART_MAX: Duration = Duration::from_secs(60);
/// A loop that ran this long before its panic starts over with the first wait.
const HEALTHY_AFTER: Duration = Duration::from_secs(5 * 60);

pub(crate) async fn keep_running(one: Loop, context: Context) {
    let mut wait = RESTART_MIN;
    loop {
        let started = context.clock.monotonic();
        let attempt = context.clone();
        // The call is inside, so that a panic before the first await is caught too.
        let call = async { (one.run)(attempt).await };
        if AssertUnwindSafe(call).catch_unwind().await.is_ok() || context.shutdown.is_cancelled() {
            return;
        }
        if started.elapsed() > HEALTHY_AFTER {
            wait = RESTART_MIN;
        }
        tracing::error!(
            control_loop = one.name,
            wait_s = wait.as_secs(),
            "panicked, restarting"
        );
        tokio::select! {
            () = context.shutdown.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(RESTART_MAX);
    }
}

#[cfg(test)]
mod tests;
