//! The same call many times over a number of connections, each timed.

use crate::stats::Report;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use std::time::Duration;

/// Calls `call(client, number)` for each number below `count`; connection `c` of `n` makes the
/// calls `c`, `c + n`, ... one after another. Fails only if no call succeeded.
pub async fn run<F, Fut>(
    work: impl Into<String>,
    clients: &[Client],
    count: usize,
    call: F,
) -> anyhow::Result<Report>
where
    F: Fn(Client, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<(), kube::Error>> + Send,
{
    let work = work.into();
    let clock = Clock::system();
    let begun = clock.monotonic();
    // A set ends its tasks when it is dropped: nothing writes on after an interrupt.
    let mut tasks = tokio::task::JoinSet::new();
    for (connection, client) in clients.iter().enumerate() {
        let (client, call, step) = (client.clone(), call.clone(), clients.len());
        tasks.spawn(async move {
            let clock = Clock::system();
            let mut latencies: Vec<Duration> = Vec::new();
            let mut errors = Vec::new();
            for number in (connection..count).step_by(step) {
                let begun = clock.monotonic();
                match call(client.clone(), number).await {
                    Ok(()) => latencies.push(clock.monotonic() - begun),
                    Err(error) => errors.push(error),
                }
            }
            (latencies, errors)
        });
    }
    let (mut latencies, mut failed, mut first) = (Vec::new(), 0, None);
    while let Some(task) = tasks.join_next().await {
        let (fine, errors) = task.context("a connection's task ended early")?;
        latencies.extend(fine);
        failed += errors.len();
        first = first.or(errors.into_iter().next());
    }
    match first {
        Some(error) if latencies.is_empty() => {
            Err(anyhow::Error::new(error).context(format!("every {work} failed")))
        }
        _ => Ok(Report::new(
            work,
            latencies,
            failed,
            clock.monotonic() - begun,
        )),
    }
}
