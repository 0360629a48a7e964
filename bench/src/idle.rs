//! What a process costs while nothing changes: its processor time, as the kernel counts it.

use anyhow::Context;
use std::time::Duration;

/// After the last Deployment has settled: events and endpoints are still being written.
const REST: Duration = Duration::from_secs(15);
/// Linux counts in these towards every program, whatever its timer does.
const TICK: Duration = Duration::from_millis(10);

pub struct Plan {
    /// A process of this machine.
    pub pid: u32,
    pub period: Duration,
}

/// What was changed has had all its consequences afterwards.
pub async fn rest() {
    tokio::time::sleep(REST).await;
}

/// Waits for the period, and says what it cost.
pub async fn cost(plan: &Plan) -> anyhow::Result<Vec<(String, u64)>> {
    let before = processor_time(plan.pid)?;
    tokio::time::sleep(plan.period).await;
    let spent = processor_time(plan.pid)?.saturating_sub(before);
    let seconds = plan.period.as_secs();
    let share = spent.as_secs_f64() / plan.period.as_secs_f64();
    Ok(vec![
        (
            format!("ms of processor time of {} in {seconds} s", plan.pid),
            spent.as_millis() as u64,
        ),
        (
            "millionths of a core".to_owned(),
            (share * 1e6).round() as u64,
        ),
    ])
}

pub fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ticks = ticks(&text).with_context(|| format!("{path} is not as Linux writes it"))?;
    Ok(TICK * ticks)
}

/// User and system time, the 14th and 15th fields. The second is the command's name in brackets,
/// which may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests;
