//! The files that hold the cluster's keys, as one thing to carry to another machine.
//!
//! All of the `pki` directory, and the key of Secrets and its configuration wherever they are.
//! Names are paths below `pki`, one directory deep at most: nothing in a snapshot can name a file
//! elsewhere.

use crate::at_rest::{self, AtRestError};
use crate::private_file;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_store::Seal;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CA: &str = "ca.crt";
const SECRETS_KEY: &str = "secrets.key";
/// Where the configuration of encryption is put.
pub const CONFIGURATION: &str = "encryption-provider-config.yaml";
/// What a cluster cannot do without.
const NEEDED: [&str; 3] = [CA, "ca.key", "sa.key"];
/// There are seven; a directory with more than this is not one of keys.
const FILES_MAX: usize = 64;
const FILE_BYTES_MAX: u64 = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum KeyFilesError {
    #[error("cannot read or write {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} does not hold a cluster's keys: {what} is missing", .directory.display())]
    Missing {
        directory: PathBuf,
        what: &'static str,
    },
    #[error("{} is more than a file of keys can be", .path.display())]
    TooLarge { path: PathBuf },
    #[error("{} holds no certificate", .path.display())]
    Certificate { path: PathBuf },
    #[error("the passphrase does not open the keys in the snapshot")]
    Passphrase,
    #[error("the keys in the snapshot cannot be used: {0}")]
    Bad(String),
    #[error("the system gives no random numbers")]
    Random,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> KeyFilesError {
    let path = path.to_owned();
    move |source| KeyFilesError::Io { path, source }
}

/// Where a server has its keys.
#[derive(Clone, Debug)]
pub struct KeySource {
    pub pki: PathBuf,
    /// None: the store is not encrypted.
    pub at_rest: Option<at_rest::Settings>,
}

/// What is in them, by name.
#[derive(PartialEq, Eq)]
pub struct KeyFiles(BTreeMap<String, Vec<u8>>);

/// Says no more than names.
impl std::fmt::Debug for KeyFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl KeyFiles {
    pub fn gather(source: &KeySource) -> Result<Self, KeyFilesError> {
        let mut files = BTreeMap::new();
        gather_below(&source.pki, "", &mut files)?;
        if let Some(at_rest) = &source.at_rest {
            if at_rest.key_file.exists() {
                files.insert(SECRETS_KEY.to_owned(), read(&at_rest.key_file)?);
            }
            if let Some(configuration) = &at_rest.configuration {
                files.insert(CONFIGURATION.to_owned(), read(configuration)?);
            }
        }
        let has_secrets_key = files.contains_key(SECRETS_KEY) || files.contains_key(CONFIGURATION);
        let needed = NEEDED.into_iter().find(|name| !files.contains_key(*name));
        let secrets_key = (!has_secrets_key && source.at_rest.is_some()).then_some(SECRETS_KEY);
        match needed.or(secrets_key) {
            Some(what) => Err(KeyFilesError::Missing {
                directory: source.pki.clone(),
                what,
            }),
            None => Ok(Self(files)),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let encoded = self
            .0
            .iter()
            .map(|(name, bytes)| (name, STANDARD.encode(bytes)));
        let encoded: BTreeMap<_, _> = encoded.collect();
        serde_json::to_vec(&encoded).expect("texts are plain JSON")
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, KeyFilesError> {
        let bad = |why: String| KeyFilesError::Bad(why);
        let encoded: BTreeMap<String, String> =
            serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        if encoded.len() > FILES_MAX {
            return Err(bad("they are too many".to_owned()));
        }
        let mut files = BTreeMap::new();
        for (name, text) in encoded {
            if !is_name(&name) {
                return Err(bad(format!("{name:?} is no name of a file of keys")));
            }
            let bytes = STANDARD.decode(text);
            files.insert(name, bytes.map_err(|error| bad(error.to_string()))?);
        }
        match NEEDED.into_iter().find(|name| !files.contains_key(*name)) {
            Some(name) => Err(bad(format!("{name} is missing"))),
            None => Ok(Self(files)),
        }
    }

    /// Whether all of them are in a directory as they are here.
    pub fn are_in(&self, directory: &Path) -> bool {
        let is_there = |name: &String, bytes: &Vec<u8>| {
            std::fs::read(directory.join(name)).is_ok_and(|there| there == *bytes)
        };
        self.0.iter().all(|(name, bytes)| is_there(name, bytes))
    }

    pub fn has_configuration(&self) -> bool {
        self.0.contains_key(CONFIGURATION)
    }

    /// SHA-256 of the CA's certificate, in hexadecimal digits.
    pub fn ca_fingerprint(&self) -> Result<String, KeyFilesError> {
        fingerprint(&self.0[CA], Path::new(CA))
    }

    /// Opens what these keys sealed, and seals as they would.
    pub fn seal(&self) -> Result<Arc<dyn Seal>, AtRestError> {
        let text = |name: &str| self.0.get(name).map(|bytes| String::from_utf8_lossy(bytes));
        let (own, configuration) = (text(SECRETS_KEY), text(CONFIGURATION));
        at_rest::seal_of(
            own.as_deref(),
            configuration.as_deref(),
            Path::new("the snapshot's keys"),
        )
    }

    /// Writes them into a directory of their own, which must not be there, and has them on the disk.
    pub fn write(&self, directory: &Path) -> Result<(), KeyFilesError> {
        let make = |path: &Path| {
            let made = DirBuilder::new().mode(0o700).create(path);
            made.map_err(io_error(path))
        };
        make(directory)?;
        for (name, bytes) in &self.0 {
            let path = directory.join(name);
            match path.parent() {
                Some(parent) if !parent.exists() => make(parent)?,
                _ => {}
            }
            private_file::write(&path, bytes).map_err(io_error(&path))?;
        }
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(io_error(directory))
    }
}

/// Of the certificate in a `pki` directory; nothing when there is none.
pub fn ca_fingerprint(pki: &Path) -> Result<Option<String>, KeyFilesError> {
    let path = pki.join(CA);
    match path.exists() {
        true => fingerprint(&read(&path)?, &path).map(Some),
        false => Ok(None),
    }
}

fn fingerprint(pem: &[u8], path: &Path) -> Result<String, KeyFilesError> {
    let certificate = CertificateDer::from_pem_slice(pem);
    let certificate = certificate.map_err(|_| KeyFilesError::Certificate {
        path: path.to_owned(),
    })?;
    Ok(hex::encode(digest(&SHA256, &certificate)))
}

/// One directory deep, and nothing that is hidden: what others are just writing is.
fn gather_below(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), KeyFilesError> {
    for entry in std::fs::read_dir(directory).map_err(io_error(directory))? {
        let entry = entry.map_err(io_error(directory))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = format!("{prefix}{name}");
        if !is_name(&name) {
            continue;
        }
        if path.is_dir() && prefix.is_empty() {
            gather_below(&path, &format!("{name}/"), files)?;
        } else if path.is_file() {
            files.insert(name, read(&path)?);
        }
        if files.len() > FILES_MAX {
            return Err(KeyFilesError::TooLarge {
                path: directory.to_owned(),
            });
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, KeyFilesError> {
    let size = std::fs::metadata(path).map_err(io_error(path))?.len();
    if size > FILE_BYTES_MAX {
        return Err(KeyFilesError::TooLarge {
            path: path.to_owned(),
        });
    }
    std::fs::read(path).map_err(io_error(path))
}

/// `a` or `a/b`, neither hidden nor a way up.
fn is_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.starts_with('.') && !part.contains('\0');
    parts.len() <= 2 && parts.iter().all(is_plain)
}

#[cfg(test)]
pub(super) mod tests;
