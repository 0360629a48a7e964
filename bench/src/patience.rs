//! How long work is waited for.

use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Until it is done or the time is up.
pub async fn within<T>(
    limit: Duration,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let done = tokio::time::timeout(limit, Box::pin(work)).await;
    done.unwrap_or_else(|_| Err(anyhow::anyhow!("not done in {} s", limit.as_secs())))
}

/// Until it is done or this program is told to end: what was made is then still taken away.
pub async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        done = Box::pin(work) => done,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        _ = terminated.recv() => Err(anyhow::anyhow!("told to end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_is_given_up() {
        let limit = Duration::from_secs(7);
        let endless = within(limit, std::future::pending::<anyhow::Result<()>>());
        assert_eq!(endless.await.unwrap_err().to_string(), "not done in 7 s");
        assert_eq!(within(limit, async { Ok(1) }).await.unwrap(), 1);
    }
}
