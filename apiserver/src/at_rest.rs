//! Secrets at rest: which values are sealed before they reach the disk, with which keys, and how
//! keys are changed. See docs/secrets-at-rest.md.
//!
//! Never writes a key into the store, a log or an error. A key file is replaced whole, and only
//! after nothing on disk needs what it loses.

mod configuration; // Upstream's EncryptionConfiguration.
mod key_file; // The server's own keys.
mod keyring; // Which key seals what, and opens.
mod rotate; // The request for it.
mod sealed; // The bytes of a sealed value.

pub(crate) use rotate::{ROTATE_PATH, rotate};

use coracle_store::{CommitError, Rewritten, Seal, Store};
use key_file::KeyFile;
use keyring::Keyring;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The server's own keys, made when there are none.
    pub key_file: PathBuf,
    /// An EncryptionConfiguration, used in their place.
    pub configuration: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum AtRestError {
    #[error("cannot {doing} the key file {}", .file.display())]
    File {
        doing: &'static str,
        file: PathBuf,
        source: std::io::Error,
    },
    #[error("the key file {} cannot be used: {why}", .file.display())]
    BadFile { file: PathBuf, why: String },
    #[error("the encryption provider config {} cannot be used: {why}", .file.display())]
    BadConfiguration { file: PathBuf, why: String },
    #[error("the system gives no random numbers")]
    Random,
}

#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    #[error(
        "the keys are those of the encryption provider config {}: put a new key in front there, \
         restart the server, and then remove the old one",
        .0.display()
    )]
    Configured(PathBuf),
    #[error("a rotation is under way")]
    UnderWay,
    #[error(transparent)]
    Keys(#[from] AtRestError),
    #[error("the store was not written anew: {0}; the old key stays until it is")]
    Store(#[from] CommitError),
    #[error(
        "these snapshots could not be opened, so the old key stays until they are removed: {}",
        .0.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Snapshots(Vec<PathBuf>),
}

/// The keys in use.
#[derive(Debug)]
pub struct AtRest {
    settings: Settings,
    keyring: Arc<Keyring>,
    /// Held by whoever changes keys.
    changing: Mutex<()>,
}

impl AtRest {
    /// Reads the keys; makes one where there is none, and writes it with `settle`.
    pub fn open(settings: Settings) -> Result<Self, AtRestError> {
        let own = KeyFile::new(&settings.key_file).read()?;
        let keyring = match &settings.configuration {
            None => {
                let keys = match own {
                    Some(keys) => keys,
                    None => vec![key_file::generate()?],
                };
                Keyring::of_own(keys, settings.key_file.clone())
            }
            Some(file) => {
                let bad = |why| AtRestError::BadConfiguration {
                    file: file.clone(),
                    why,
                };
                let text = std::fs::read_to_string(file)
                    .map_err(|error| bad(format!("it cannot be read: {error}")))?;
                let rules = configuration::parse(&text).map_err(bad)?;
                Keyring::of_configuration(rules, own.unwrap_or_default(), file.clone())
            }
        };
        Ok(Self {
            settings,
            keyring: Arc::new(keyring),
            changing: Mutex::default(),
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the store is opened with.
    pub fn seal(&self) -> Arc<dyn Seal> {
        Arc::clone(&self.keyring) as Arc<dyn Seal>
    }

    /// After the store was opened and before anything is written to it: a key that was made is
    /// kept. Not before, since a store that another key sealed must not get a file beside it that
    /// looks right.
    pub fn settle(&self) -> Result<(), AtRestError> {
        let file = KeyFile::new(&self.settings.key_file);
        if self.settings.configuration.is_none() && !file.exists() {
            file.write(&self.keyring.own_keys())?;
        }
        Ok(())
    }

    /// Brings what is stored in line with the keys, where it is not: values of before, and a
    /// rotation that did not end. Returns what was done.
    pub async fn catch_up(&self, store: &Store) -> Result<Option<Rewritten>, RotateError> {
        let _changing = self.changing.lock().await;
        let has_old = self.settings.configuration.is_none() && self.keyring.own_keys().len() > 1;
        if store.stale() == 0 && !has_old {
            return Ok(None);
        }
        self.rewrite(store).await.map(Some)
    }

    /// A new key for everything; the old one is dropped when nothing needs it.
    pub async fn rotate(&self, store: &Store) -> Result<Rewritten, RotateError> {
        if let Some(file) = &self.settings.configuration {
            return Err(RotateError::Configured(file.clone()));
        }
        let Ok(_changing) = self.changing.try_lock() else {
            return Err(RotateError::UnderWay);
        };
        let mut keys = self.keyring.own_keys();
        keys.insert(0, key_file::generate()?);
        // On disk before anything is sealed with it.
        KeyFile::new(&self.settings.key_file).write(&keys)?;
        self.keyring.set_own_keys(keys);
        self.rewrite(store).await
    }

    /// Everything in today's form; then the keys that nothing needs go.
    async fn rewrite(&self, store: &Store) -> Result<Rewritten, RotateError> {
        let done = store.rewrite().await?;
        if self.settings.configuration.is_some() {
            return Ok(done);
        }
        if !done.unreadable.is_empty() {
            return Err(RotateError::Snapshots(done.unreadable));
        }
        let mut keys = self.keyring.own_keys();
        keys.truncate(1);
        KeyFile::new(&self.settings.key_file).write(&keys)?;
        self.keyring.set_own_keys(keys);
        Ok(done)
    }

    /// The file that the keys are from.
    pub fn file(&self) -> &Path {
        let configuration = self.settings.configuration.as_deref();
        configuration.unwrap_or(&self.settings.key_file)
    }
}

/// What opens, and seals, with keys that are in no file of this machine: the texts of a key file and
/// of an EncryptionConfiguration. `named` stands for the file in errors.
pub fn seal_of(
    own: Option<&str>,
    configuration: Option<&str>,
    named: &Path,
) -> Result<Arc<dyn Seal>, AtRestError> {
    let file = || named.to_owned();
    let own = own.map(key_file::parse).transpose();
    let own = own.map_err(|why| AtRestError::BadFile { file: file(), why })?;
    let own = own.unwrap_or_default();
    let keyring = match configuration {
        None => Keyring::of_own(own, file()),
        Some(text) => {
            let rules = configuration::parse(text);
            let bad = |why| AtRestError::BadConfiguration { file: file(), why };
            Keyring::of_configuration(rules.map_err(bad)?, own, file())
        }
    };
    Ok(Arc::new(keyring))
}

#[cfg(test)]
mod tests;
