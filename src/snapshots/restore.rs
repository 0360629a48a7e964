//! `coracle snapshot restore`: everything is checked before anything is changed, and what was there
//! is kept.

use super::{Settings, revision_floor};
use crate::cli::RestoreArgs;
use crate::control_plane::store_directory;
use crate::show;
use anyhow::{Context, bail};
use coracle_apiserver::at_rest::AtRest;
use coracle_apiserver::snapshots::{self, KeyFiles, Verified, ca_fingerprint};
use coracle_client::clock::Clock;
use coracle_store::{Config, OpenError, Seal, Store};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

pub(super) fn restore(
    runtime: &Runtime,
    settings: &Settings,
    args: &RestoreArgs,
) -> anyhow::Result<()> {
    let file = Path::new(&args.file);
    let directory = store_directory(&settings.data_dir);
    let checked = || {
        let verified = snapshots::verify(file)?;
        let keys = Keys::choose(&verified, settings)?;
        let seal = keys.seal(settings)?;
        let contents = snapshots::objects(file, Arc::clone(&seal))?;
        if !args.replace {
            runtime.block_on(refuse_sound(settings, &directory))?;
        }
        Ok::<_, anyhow::Error>((verified, keys, seal, contents))
    };
    let (verified, keys, seal, contents) = checked().context("nothing was changed")?;
    let staged = keys.stage(settings)?;
    let mut replaced = Vec::new();
    let floor = revision_floor(Clock::system().now());
    let restored =
        coracle_store::restore_snapshot(&directory, &contents, Some(seal), floor, || {
            if let Some(staged) = &staged {
                replaced.extend(put_in_place(staged, &settings.pki())?);
            }
            Ok(())
        });
    if let Some(staged) = staged.filter(|_| restored.is_err()) {
        drop(std::fs::remove_dir_all(staged));
    }
    replaced.extend(restored?.replaced);
    show::line(&format!(
        "restored {} into {}: revision {}, {} objects",
        file.display(),
        settings.data_dir.display(),
        verified.facts.revision,
        verified.facts.entries
    ));
    for path in replaced {
        show::line(&format!("what was there is kept as {}", path.display()));
    }
    if let Keys::Brought(files) = &keys
        && files.has_configuration()
    {
        let path = settings.pki().join(snapshots::CONFIGURATION);
        show::line(&format!(
            "start the server with --encryption-provider-config {}",
            path.display()
        ));
    }
    Ok(())
}

/// Which keys the restored store has.
enum Keys {
    /// Those that are there.
    There,
    /// Those of the snapshot.
    Brought(KeyFiles),
}

impl Keys {
    fn choose(verified: &Verified, settings: &Settings) -> anyhow::Result<Self> {
        let header = verified.header.as_ref();
        let sealed = header.and_then(|header| header.keys.as_ref());
        let pki = settings.pki();
        if let (Some(sealed), Some(passphrase)) = (sealed, &settings.passphrase) {
            let files = sealed.open(passphrase)?;
            return Ok(match files.are_in(&pki) {
                true => Self::There,
                false => Self::Brought(files),
            });
        }
        let help = match sealed {
            Some(_) => "those in the snapshot are taken with --passphrase-file",
            None => {
                "the snapshot holds none: copy server/pki of the machine that it is of there first"
            }
        };
        let at_rest = &settings.at_rest;
        let there = ca_fingerprint(&pki)?;
        let has_key = at_rest.configuration.is_some() || at_rest.key_file.exists();
        let of = header.and_then(|header| header.ca.as_ref());
        match (there, of) {
            (None, _) => bail!(
                "there are no keys of a cluster in {}; {help}",
                pki.display()
            ),
            (Some(_), _) if !has_key => {
                bail!(
                    "the key file {} is missing; {help}",
                    at_rest.key_file.display()
                )
            }
            (Some(there), Some(of)) if there != *of => bail!(
                "the keys in {} are those of another cluster; {help}",
                pki.display()
            ),
            _ => Ok(Self::There),
        }
    }

    fn seal(&self, settings: &Settings) -> anyhow::Result<Arc<dyn Seal>> {
        Ok(match self {
            Self::There => AtRest::open(settings.at_rest.clone())?.seal(),
            Self::Brought(files) => files.seal()?,
        })
    }

    /// Has new keys on the disk, beside where they belong.
    fn stage(&self, settings: &Settings) -> anyhow::Result<Option<PathBuf>> {
        let Self::Brought(files) = self else {
            return Ok(None);
        };
        let staged = settings.pki().with_extension("restored");
        if staged.exists() {
            std::fs::remove_dir_all(&staged)
                .with_context(|| format!("cannot remove {}", staged.display()))?;
        }
        let parent = settings.data_dir.join("server");
        std::fs::create_dir_all(&parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
        files.write(&staged)?;
        Ok(Some(staged))
    }
}

/// A store with nothing wrong with it is not replaced by mistake.
async fn refuse_sound(settings: &Settings, directory: &Path) -> anyhow::Result<()> {
    if !directory.join("mark").exists() {
        return Ok(());
    }
    // A store whose keys cannot be read is of no use as it is.
    let Ok(at_rest) = AtRest::open(settings.at_rest.clone()) else {
        return Ok(());
    };
    let config = Config {
        seal: Some(at_rest.seal()),
        lock_wait: Duration::ZERO,
        ..Config::new(directory)
    };
    match Store::open(config) {
        Ok(store) => {
            let (revision, partitions) = (store.revision(), store.partitions());
            let objects: usize = partitions.iter().map(|(_, count)| count).sum();
            store.close().await;
            bail!(
                "nothing is wrong with the store in {}, which has {objects} objects at revision \
                 {revision}: add --replace to put the snapshot in its place",
                directory.display()
            )
        }
        Err(error @ OpenError::InUse { .. }) => {
            Err(anyhow::Error::from(error).context("stop the server first"))
        }
        Err(error) => {
            show::line(&format!("replacing it: {error}"));
            Ok(())
        }
    }
}

/// Gives back where the keys are that were there.
fn put_in_place(staged: &Path, pki: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut kept = None;
    if pki.exists() {
        let aside = (0..)
            .map(|number| pki.with_extension(format!("replaced-{number}")))
            .find(|path| !path.exists())
            .expect("some number is free");
        std::fs::rename(pki, &aside)?;
        kept = Some(aside);
    }
    std::fs::rename(staged, pki)?;
    if let Some(parent) = pki.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(kept)
}
