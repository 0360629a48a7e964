//! What the kernel says about a process, under the names every Prometheus client uses. Pure: the
//! files are read by whoever asks.

use super::Text;
use jiff::Timestamp;

/// Linux' unit of processor times in `/proc`, the same on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Of `/proc/self`, as they are; a system without it has some metrics less.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub status: String,
    pub stat: String,
    pub limits: String,
    pub netstat: String,
    pub open_files: Option<usize>,
}

pub fn text(text: &mut Text, files: &Files, started: Timestamp) {
    let mut gauge = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        // A system without `/proc` has one metric less.
        if let Some(value) = value {
            text.family(name, kind, help);
            text.sample(name, &[], value);
        }
    };
    let Files {
        status,
        stat,
        limits,
        netstat: network,
        open_files,
    } = files;
    gauge(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory size in bytes.",
        kibibytes(status, "VmRSS:"),
    );
    gauge(
        "process_virtual_memory_bytes",
        "gauge",
        "Virtual memory size in bytes.",
        kibibytes(status, "VmSize:"),
    );
    gauge(
        "process_virtual_memory_max_bytes",
        "gauge",
        "Maximum amount of virtual memory available in bytes.",
        limit(limits, "Max address space"),
    );
    gauge(
        "process_cpu_seconds_total",
        "counter",
        "Total user and system CPU time spent in seconds.",
        cpu_seconds(stat),
    );
    gauge(
        "process_open_fds",
        "gauge",
        "Number of open file descriptors.",
        open_files.map(|count| count as f64),
    );
    gauge(
        "process_max_fds",
        "gauge",
        "Maximum number of open file descriptors.",
        limit(limits, "Max open files"),
    );
    gauge(
        "process_network_receive_bytes_total",
        "counter",
        "Number of bytes received by the process over the network.",
        octets(network, "InOctets"),
    );
    gauge(
        "process_network_transmit_bytes_total",
        "counter",
        "Number of bytes sent by the process over the network.",
        octets(network, "OutOctets"),
    );
    self::started(text, started);
}

pub fn started(text: &mut Text, started: Timestamp) {
    let name = "process_start_time_seconds";
    let help = "Start time of the server since unix epoch in seconds.";
    text.family(name, "gauge", help);
    text.sample(name, &[], started.as_millisecond() as f64 / 1000.0);
}

/// A line of `/proc/self/status`, in bytes.
fn kibibytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024.0)
}

/// User and system time: fields 14 and 15, counted behind the name, which may have spaces in it.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// The soft limit of a line of `/proc/self/limits`; for none at all the largest number, as every
/// Prometheus client says it.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX as f64),
        number => number.parse().ok(),
    }
}

/// A column of the line on IP in `/proc/self/net/netstat`, whose names stand in a line before.
fn octets(netstat: &str, name: &str) -> Option<f64> {
    let mut lines = netstat
        .lines()
        .filter_map(|line| line.strip_prefix("IpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = columns.find(|(own, _)| *own == name)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests;
