//! What a container runs, merged from its configuration and its image. Pure.

use super::contract::ContainerConfig;
use crate::images::manifest::ImageConfig;
use std::path::{Path, PathBuf};

/// As docker and containerd set it when neither image nor pod does.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The pod's command stands over the entrypoint and drops the image's command; its args stand
/// over the image's command. None: there is nothing to run.
pub fn arguments(config: &ContainerConfig, image: &ImageConfig) -> Option<Vec<String>> {
    let (entrypoint, arguments) = match (config.command.is_empty(), config.args.is_empty()) {
        (true, true) => (&image.entrypoint, &image.cmd),
        (true, false) => (&image.entrypoint, &config.args),
        (false, _) => (&config.command, &config.args),
    };
    let merged: Vec<String> = entrypoint.iter().chain(arguments).cloned().collect();
    (!merged.is_empty()).then_some(merged)
}

/// `NAME=value`; the last one of a name wins and takes the place of the first.
pub fn environment(
    config: &ContainerConfig,
    image: &ImageConfig,
    hostname: &str,
    home: &str,
) -> Vec<String> {
    let mut merged: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| match merged.iter_mut().find(|(key, _)| key == name) {
        Some((_, old)) => value.clone_into(old),
        None => merged.push((name.to_owned(), value.to_owned())),
    };
    set("PATH", DEFAULT_PATH);
    set("HOSTNAME", hostname);
    if config.tty {
        set("TERM", "xterm");
    }
    for variable in &image.env {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        set(name, value);
    }
    for (name, value) in &config.env {
        set(name, value);
    }
    if !merged.iter().any(|(name, _)| name == "HOME") {
        merged.push(("HOME".to_owned(), home.to_owned()));
    }
    // A name or value with a NUL cannot be passed to a process at all.
    let passable = merged
        .into_iter()
        .filter(|(name, value)| !format!("{name}{value}").contains('\0'));
    passable
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

pub fn working_directory(config: &ContainerConfig, image: &ImageConfig) -> PathBuf {
    let directory = match config.working_dir.is_empty() {
        true => image.working_dir.as_str(),
        false => config.working_dir.as_str(),
    };
    Path::new("/").join(directory)
}

/// By name, with or without `SIG`, or by number; SIGTERM when nothing fits.
pub fn stop_signal(config: &ContainerConfig, image: &ImageConfig) -> i32 {
    let asked = [&config.stop_signal, &image.stop_signal];
    let named = asked.iter().find_map(|text| signal_number(text));
    named.unwrap_or(nix::sys::signal::Signal::SIGTERM as i32)
}

fn signal_number(text: &str) -> Option<i32> {
    let text = text.to_ascii_uppercase();
    if let Ok(number) = text.parse::<i32>() {
        return (1..=64).contains(&number).then_some(number);
    }
    let name = text.strip_prefix("SIG").unwrap_or(&text);
    // 34 is glibc's SIGRTMIN, which the images' tools mean.
    if let Some(offset) = name.strip_prefix("RTMIN") {
        let offset = offset
            .strip_prefix('+')
            .map_or(Some(0), |digits| digits.parse().ok())?;
        return (0..=30).contains(&offset).then_some(34 + offset);
    }
    let signal: nix::sys::signal::Signal = format!("SIG{name}").parse().ok()?;
    Some(signal as i32)
}

#[cfg(test)]
mod tests;
