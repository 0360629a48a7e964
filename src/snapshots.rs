//! `coracle snapshot`: the cluster in one file, and back. See docs/snapshots.md.

mod restore;
mod save;
mod tell; // verify and list.

use crate::cli::{SnapshotAction, SnapshotCommand};
use crate::settings::{self, BadSetting, parse};
use crate::{Failure, logging};
use anyhow::Context;
use coracle_apiserver::at_rest;
use coracle_apiserver::snapshots::PASSPHRASE_CHARS_MIN;
use coracle_store::Revision;
use k8s_openapi::jiff::Timestamp;
use std::path::{Path, PathBuf};

/// 2020-01-01, before which no cluster of this kind was.
const FIRST_SECOND: i64 = 1_577_836_800;
/// Far more than a store gives out in a minute.
const REVISIONS_OF_A_MINUTE: u64 = 1 << 24;

/// What the flags say, checked.
#[derive(Debug)]
struct Settings {
    data_dir: PathBuf,
    at_rest: at_rest::Settings,
    passphrase: Option<String>,
}

impl Settings {
    fn pki(&self) -> PathBuf {
        self.data_dir.join("server/pki")
    }
}

pub fn run(command: SnapshotCommand) -> Result<(), Failure> {
    let data_dir = parse::directory("data-dir", command.data_dir.as_deref())?;
    let settings = Settings {
        at_rest: settings::at_rest(
            command.secrets_key_file.as_deref(),
            command.encryption_provider_config.as_deref(),
            &data_dir,
        )?,
        passphrase: passphrase(command.passphrase_file.as_deref())?,
        data_dir,
    };
    logging::start(None, "warn")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start")?;
    match command.action {
        SnapshotAction::Save(args) => save::save(&runtime, &settings, &args)?,
        SnapshotAction::List => tell::list(&settings)?,
        SnapshotAction::Verify(args) => tell::verify(&settings, Path::new(&args.file))?,
        SnapshotAction::Restore(args) => restore::restore(&runtime, &settings, &args)?,
    }
    Ok(())
}

fn passphrase(file: Option<&str>) -> Result<Option<String>, BadSetting> {
    const FLAG: &str = "passphrase-file";
    let Some(path) = file else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| BadSetting::new(FLAG, path, format!("cannot be read: {error}")))?;
    let words = text.lines().next().unwrap_or("").trim();
    if words.chars().count() < PASSPHRASE_CHARS_MIN {
        let expected = format!(
            "must have a passphrase of {PASSPHRASE_CHARS_MIN} characters or more as its first line"
        );
        return Err(BadSetting::new(FLAG, path, expected));
    }
    Ok(Some(words.to_owned()))
}

/// Revisions after a restoring go on above this: it grows with time, so that one snapshot that is
/// restored twice never gives out a revision twice.
pub fn revision_floor(now: Timestamp) -> Revision {
    let minutes = (now.as_second() - FIRST_SECOND).max(0) / 60;
    Revision(minutes.unsigned_abs().saturating_mul(REVISIONS_OF_A_MINUTE))
}

#[cfg(test)]
mod tests;
