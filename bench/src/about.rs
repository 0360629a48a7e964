//! What a figure is worth little without: the day, the machine, the versions, the command.

use crate::side::Side;
use coracle_client::clock::Clock;
use serde_json::{Value, json};

/// Of a run, as it was when it began.
#[derive(Debug)]
pub struct About {
    date: String,
    command: String,
    cores: usize,
    processor: String,
    memory: String,
    kernel: String,
    /// How many wanted a processor before there was anything to do.
    load: String,
}

impl About {
    pub fn now() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let found = |path: &str, name: &str| value(&text(path), name).unwrap_or("?").to_owned();
        let load = text("/proc/loadavg");
        Self {
            date: Clock::system().time().0.to_string(),
            command: command(std::env::args()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: found("/proc/cpuinfo", "model name"),
            memory: found("/proc/meminfo", "MemTotal"),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: load.split(' ').next().unwrap_or("?").to_owned(),
        }
    }

    /// Lines above a table.
    pub fn text(&self, sides: &[Side]) -> String {
        let versions = sides.iter().map(|side| {
            let version = side.version();
            format!("{}: {}\n", side.name, version.unwrap_or("version unknown"))
        });
        let versions: String = versions.collect();
        format!("{}\n{}\n{versions}", self.command, self.machine())
    }

    fn machine(&self) -> String {
        format!(
            "{}, {} cores of {}, {}, Linux {}, load {}",
            self.date, self.cores, self.processor, self.memory, self.kernel, self.load
        )
    }

    /// The same for a page: a paragraph below a table.
    pub fn markdown(&self, sides: &[Side]) -> String {
        let versions = sides.iter().filter_map(|side| {
            let version = side.version()?;
            Some(format!(" {}: {version}.", side.name))
        });
        let versions: String = versions.collect();
        format!("`{}`\n\n{}.{versions}", self.command, self.machine())
    }

    pub fn json(&self, sides: &[Side]) -> Value {
        json!({
            "date": self.date,
            "command": self.command,
            "version": env!("CARGO_PKG_VERSION"),
            "serverVersions": sides.iter().map(Side::version).collect::<Vec<_>>(),
            "machine": {
                "cores": self.cores,
                "processor": self.processor,
                "memory": self.memory,
                "kernel": self.kernel,
                "load": self.load,
            },
        })
    }
}

/// As it can be given to a shell again. Where the program lies says nothing.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let program = arguments.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&byte);
    let rest = arguments.map(|argument| match argument.bytes().all(is_plain) {
        true if !argument.is_empty() => argument,
        _ => format!("'{}'", argument.replace('\'', r"'\''")),
    });
    let all: Vec<_> = std::iter::once(name).chain(rest).collect();
    all.join(" ")
}

/// What is behind the first colon after this name.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| key.trim() == name);
    found.map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::{command, value};

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: A: B\nmodel name\t: C\n";
        assert_eq!(value(text, "model name"), Some("A: B"));
        assert_eq!(value(text, "MemTotal"), None);
    }

    #[test]
    fn a_command_can_be_given_to_a_shell_again() {
        let given = ["/a/b/coracle-bench", "coldstart", "--start", "it's x", ""];
        let text = command(given.into_iter().map(str::to_owned));
        assert_eq!(text, r"coracle-bench coldstart --start 'it'\''s x' ''");
    }
}
