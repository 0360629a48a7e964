//! A command that leads a process group of its own. The group ends as a whole: it is told to and
//! waited for, or killed when nobody waits for it any more.

use crate::process;
use anyhow::Context;
use coracle_client::clock::Clock;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

const END_MAX: Duration = Duration::from_secs(60);
const END_POLL: Duration = Duration::from_millis(20);

pub struct Group {
    leader: Child,
    id: Pid,
    is_gone: bool,
}

impl Group {
    /// By `sh -c`, with nothing to read and nobody to tell.
    pub fn start(command: &str) -> anyhow::Result<Self> {
        let leader = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let id = leader.id().and_then(|id| id.try_into().ok());
        let id = id.and_then(Pid::from_raw);
        Ok(Self {
            leader,
            id: id.with_context(|| format!("{command:?} is no process"))?,
            is_gone: false,
        })
    }

    /// How the command itself ended, if it has.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.leader.try_wait()?)
    }

    /// Tells all of the group to end (SIGTERM) and waits until none of it lives: what the command
    /// started may take longer than the command.
    pub async fn end(mut self) -> anyhow::Result<()> {
        let clock = Clock::system();
        let deadline = clock.monotonic() + END_MAX;
        // An error says that none is left.
        kill_process_group(self.id, Signal::TERM).ok();
        loop {
            let leader = self.leader.try_wait()?;
            if leader.is_some() && !process::is_any_of(self.id.as_raw_nonzero().get())? {
                self.is_gone = true;
                return Ok(());
            }
            anyhow::ensure!(clock.monotonic() < deadline, "the server does not end");
            tokio::time::sleep(END_POLL).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone {
            // An error says that none is left.
            kill_process_group(self.id, Signal::KILL).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(id: Pid) -> bool {
        process::is_any_of(id.as_raw_nonzero().get()).unwrap()
    }

    #[tokio::test]
    async fn what_the_command_started_and_left_has_to_end_too() {
        // The command ends at once; what it started does when it sees a fit.
        let slow = "(trap 'sleep 0.5; exit' TERM; while :; do sleep 0.05; done) & wait";
        let group = Group::start(slow).unwrap();
        let id = group.id;
        assert!(lives(id));
        group.end().await.unwrap();
        assert!(!lives(id));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_killed() {
        let group = Group::start("trap '' TERM; sleep 1000 & sleep 1000").unwrap();
        let id = group.id;
        assert!(lives(id));
        drop(group);
        let gone = async {
            while lives(id) {
                tokio::time::sleep(END_POLL).await;
            }
        };
        tokio::time::timeout(END_MAX, gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_command_that_ended_by_itself_says_how() {
        let mut group = Group::start("exit 3").unwrap();
        let status = loop {
            if let Some(status) = group.ended().unwrap() {
                break status;
            }
            tokio::time::sleep(END_POLL).await;
        };
        assert_eq!(status.code(), Some(3));
        group.end().await.unwrap();
    }
}
