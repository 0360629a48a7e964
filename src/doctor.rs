//! `coracle doctor`: whether this machine can be a server and a node, what is wrong with it, and
//! what to do about it.
//!
//! Looks, and tries out what can be tried without a trace; changes nothing that is there. Every
//! check stands by itself: one that cannot be made says so and the rest goes on.

mod certificates;
mod clock;
mod data_directory;
mod disk;
mod finding; // What a check says, and the table. Pure.
mod kernel;
mod ports;

use crate::cli::{DoctorCommand, Role};
use crate::{Failure, settings, show};
use coracle_client::clock::{self as wall_clock, Clock};
use finding::Verdict;

pub fn run(command: DoctorCommand) -> Result<(), Failure> {
    let data_dir = settings::parse::directory("data-dir", command.data_dir.as_deref())?;
    let listen = settings::parse::listen(&command.listen)?;
    let now = wall_clock::seconds(Clock::system().now());
    let (server, agent) = (command.role != Role::Agent, command.role != Role::Server);
    let mut findings = data_directory::check(&data_dir);
    findings.extend(disk::check(&data_dir));
    findings.extend(certificates::check(&data_dir, now));
    findings.extend(clock::check(&data_dir, now));
    if agent {
        findings.extend(kernel::check(&data_dir));
    }
    if server {
        findings.push(ports::check(listen));
    }
    show::line(&finding::table(&findings));
    let failed = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Fail)
        .count();
    if failed > 0 {
        let what = if failed == 1 { "thing" } else { "things" };
        return Err(anyhow::anyhow!("{failed} {what} must be put right first").into());
    }
    Ok(())
}

/// The directory, or what is there of the way to it.
fn existing(path: &std::path::Path) -> &std::path::Path {
    path.ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or(path)
}
