//! Old files of a log. `audit.log` becomes `audit-2026-06-01T12-00-00.000.log`, as upstream names
//! them.

use super::LogSettings;
use jiff::{SignedDuration, Timestamp};
use std::io;
use std::path::{Path, PathBuf};

const FORM: &str = "%Y-%m-%dT%H-%M-%S%.3f";

/// Moves the full file aside and takes away what is too old or too many.
pub fn rotate(path: &Path, settings: &LogSettings, now: Timestamp) -> io::Result<()> {
    let mut at = now;
    let mut aside = named(path, at);
    // Two in one millisecond.
    while aside.exists() {
        at += SignedDuration::from_millis(1);
        aside = named(path, at);
    }
    std::fs::rename(path, aside)?;
    prune(path, settings, now)
}

fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let end = match text(path.extension()) {
        end if end.is_empty() => end,
        end => format!(".{end}"),
    };
    (format!("{}-", text(path.file_stem())), end)
}

fn named(path: &Path, at: Timestamp) -> PathBuf {
    let (start, end) = parts(path);
    let time = at.to_zoned(jiff::tz::TimeZone::UTC).strftime(FORM);
    path.with_file_name(format!("{start}{time}{end}"))
}

/// When a file was moved aside; `None` for one that is no old file of this log.
fn moved_at(path: &Path, name: &str) -> Option<Timestamp> {
    let (start, end) = parts(path);
    let time = name.strip_prefix(&start)?.strip_suffix(&end)?;
    let time = jiff::civil::DateTime::strptime(FORM, time).ok()?;
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}

fn prune(path: &Path, settings: &LogSettings, now: Timestamp) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let mut old: Vec<(Timestamp, PathBuf)> = std::fs::read_dir(directory)?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let at = moved_at(path, entry.file_name().to_str()?)?;
            Some((at, entry.path()))
        })
        .collect();
    old.sort();
    let age_max = SignedDuration::from_hours(24 * i64::from(settings.age_days_max));
    let surplus = match settings.backups_max {
        0 => 0,
        most => old.len().saturating_sub(most as usize),
    };
    for (place, (at, file)) in old.iter().enumerate() {
        let is_old = settings.age_days_max > 0 && now.duration_since(*at) > age_max;
        if place < surplus || is_old {
            std::fs::remove_file(file)?;
        }
    }
    Ok(())
}
