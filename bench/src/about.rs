//! What a figure is worth little without: the machine, the versions, the command.

use crate::patience::within;
use crate::suite::Side;
use coracle_client::connect as server;
use serde_json::{Value, json};
use std::time::Duration;

const VERSION_MAX: Duration = Duration::from_secs(5);

/// Of the machine that this runs on; a server that answers no more has no version.
pub async fn run(sides: &[Side]) -> Value {
    let mut versions = Vec::new();
    for side in sides {
        versions.push(within(VERSION_MAX, version(side)).await.ok());
    }
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    json!({
        "command": std::env::args().collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
        "serverVersions": versions,
        "machine": {
            "cores": std::thread::available_parallelism().ok(),
            "processor": value(&text("/proc/cpuinfo"), "model name"),
            "memory": value(&text("/proc/meminfo"), "MemTotal"),
            "kernel": text("/proc/sys/kernel/osrelease").trim(),
        },
    })
}

async fn version(side: &Side) -> anyhow::Result<String> {
    let client = server::client(&side.endpoint()?);
    Ok(client.apiserver_version().await?.git_version)
}

/// What is behind the first colon after this name.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| key.trim() == name);
    found.map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: A: B\nmodel name\t: C\n";
        assert_eq!(value(text, "model name"), Some("A: B"));
        assert_eq!(value(text, "MemTotal"), None);
    }
}
