//! Of `coracle scheduler`, and of the scheduler in a server.

use super::secure_port::{self, PortSettings};
use super::{BadSetting, parse};
use crate::cli::SchedulerCommand;
use coracle_scheduler::{Configuration, configuration};
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct SchedulerSettings {
    pub kubeconfig: PathBuf,
    pub configuration: Configuration,
    pub port: Option<PortSettings>,
}

/// Upstream's.
const PORT: u16 = 10259;

pub fn scheduler(args: &SchedulerCommand) -> Result<SchedulerSettings, BadSetting> {
    let mut configuration = read("config", args.config.as_deref())?;
    if let Some(text) = args.leader_elect.as_deref() {
        configuration.election.is_on = parse::boolean("leader-elect", text)?;
    }
    Ok(SchedulerSettings {
        kubeconfig: parse::file("kubeconfig", args.kubeconfig.as_deref().unwrap_or(""))?,
        configuration,
        port: secure_port::port(&args.port, PORT)?,
    })
}

/// The file that a flag names; upstream's defaults without one.
pub fn read(flag: &'static str, path: Option<&str>) -> Result<Configuration, BadSetting> {
    let Some(path) = path else {
        return Ok(Configuration::default());
    };
    let file = parse::file(flag, path)?;
    let text = std::fs::read_to_string(&file)
        .map_err(|error| BadSetting::new(flag, path, format!("cannot be read: {error}")))?;
    configuration::read(&text).map_err(|error| BadSetting::new(flag, path, error.to_string()))
}

#[cfg(test)]
mod tests;
