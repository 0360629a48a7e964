//! `coracle snapshot verify` and `list`.

use super::Settings;
use crate::control_plane::store_directory;
use crate::show;
use anyhow::Context;
use coracle_api::timestamp;
use coracle_apiserver::snapshots::{self, Verified};
use k8s_openapi::jiff::Timestamp;
use std::path::{Path, PathBuf};

pub(super) fn verify(settings: &Settings, file: &Path) -> anyhow::Result<()> {
    let verified = snapshots::verify(file)?;
    let header = verified.header.as_ref();
    let keys = header.and_then(|header| header.keys.as_ref());
    let mut state = match keys {
        Some(_) => "encrypted",
        None => "none",
    };
    if let (Some(keys), Some(passphrase)) = (keys, &settings.passphrase) {
        let seal = keys.open(passphrase)?.seal()?;
        snapshots::objects(file, seal)?;
        state = "opened";
    }
    let facts = verified.facts;
    let rows = [
        ("SHA-256", verified.sha256.clone()),
        ("REVISION", facts.revision.to_string()),
        (
            "OBJECTS",
            format!("{}, {} of them encrypted", facts.entries, facts.sealed),
        ),
        ("BYTES", verified.bytes.to_string()),
        ("KEYS", state.to_owned()),
        (
            "CREATED",
            told(&verified, |header| Some(header.created.clone())),
        ),
        (
            "VERSION",
            told(&verified, |header| Some(header.version.clone())),
        ),
        ("CA", told(&verified, |header| header.ca.clone())),
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    show::line(&show::columns(
        &["SNAPSHOT", &file.display().to_string()],
        &rows,
    ));
    Ok(())
}

fn told(verified: &Verified, of: impl FnOnce(&snapshots::Header) -> Option<String>) -> String {
    let told = verified.header.as_ref().and_then(of);
    told.unwrap_or_else(|| "<none>".to_owned())
}

/// Newest first. Each is read, so that a damaged one is seen before it is needed.
pub(super) fn list(settings: &Settings) -> anyhow::Result<()> {
    let ring = store_directory(&settings.data_dir).join("snapshots");
    let mut files = files(&ring).with_context(|| format!("cannot read {}", ring.display()))?;
    files.sort();
    let rows: Vec<_> = files.iter().rev().map(|file| row(file)).collect();
    match rows.is_empty() {
        true => show::line(&format!("no snapshots in {}", ring.display())),
        false => {
            let header = ["NAME", "REVISION", "OBJECTS", "BYTES", "CREATED", "STATE"];
            show::line(&show::columns(&header, &rows));
            show::line(&format!("in {}", ring.display()));
        }
    }
    Ok(())
}

fn files(ring: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(ring) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths: std::io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "snapshot")
    });
    Ok(paths)
}

fn row(file: &Path) -> Vec<String> {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let created = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    let created = created.ok().and_then(|at| Timestamp::try_from(at).ok());
    let created = created.map_or_else(|| "<unknown>".to_owned(), timestamp::format_time);
    match snapshots::verify(file) {
        Ok(verified) => vec![
            name,
            verified.facts.revision.to_string(),
            verified.facts.entries.to_string(),
            verified.bytes.to_string(),
            created,
            "sound".to_owned(),
        ],
        Err(error) => {
            let none = || "<none>".to_owned();
            vec![name, none(), none(), none(), created, error.to_string()]
        }
    }
}
