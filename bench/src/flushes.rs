//! How often processes ask the kernel to put on the disk what they wrote, without their help.
//!
//! `perf stat` counts the entries into those system calls, in all threads, also in those that
//! begin meanwhile; the processes run on undisturbed. What is written through a file that was
//! opened to be synchronous is in no such call and not counted.

use anyhow::Context;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const CALLS: [&str; 6] = [
    "fsync",
    "fdatasync",
    "sync_file_range",
    "msync",
    "syncfs",
    "sync",
];
/// Of a process that did not run at all meanwhile.
const NEVER_RAN: &str = "<not counted>";

/// Takes that long.
pub async fn count(processes: &[u32], period: Duration) -> anyhow::Result<u64> {
    let events = CALLS.map(|call| format!("syscalls:sys_enter_{call}"));
    let ids: Vec<_> = processes.iter().map(u32::to_string).collect();
    let seconds = period.as_secs_f64().to_string();
    let done = Command::new("perf")
        .args(["stat", "-x,", "-e", &events.join(","), "-p", &ids.join(",")])
        .args(["--", "sleep", &seconds])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let done = done.context("cannot run perf")?;
    let said = String::from_utf8_lossy(&done.stderr);
    anyhow::ensure!(done.status.success(), "perf: {}", said.trim());
    counted(&said)
}

/// The sum of the first fields of its lines, of which each event has one.
fn counted(said: &str) -> anyhow::Result<u64> {
    let (mut sum, mut lines) = (0_u64, 0);
    for line in said.lines().filter(|line| line.contains("sys_enter_")) {
        let number = line.split(',').next().unwrap_or_default();
        sum += match number {
            NEVER_RAN => 0,
            number => number
                .parse::<u64>()
                .with_context(|| format!("perf: {line}"))?,
        };
        lines += 1;
    }
    anyhow::ensure!(lines == CALLS.len(), "perf: {}", said.trim());
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_are_summed() {
        let line =
            |number: &str, call: &str| format!("{number},,syscalls:sys_enter_{call},7,100.00,,\n");
        let numbers = ["3", "4", NEVER_RAN, "0", "0", "0"];
        let said: String = numbers.iter().zip(CALLS).map(|(n, c)| line(n, c)).collect();
        assert_eq!(counted(&said).unwrap(), 7);
        assert!(counted(&said.replace("4,", "<not supported>,")).is_err());
        assert!(counted("event syntax error\n").is_err());
        assert!(counted(&line("3", "fsync")).is_err());
    }
}
