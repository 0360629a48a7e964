//! The server's own keys on disk: the line `coracle-secrets-key 1`, then a line a key, `ID BASE64`,
//! the one that seals first. A private file.

use super::AtRestError;
use super::sealed::{Cipher, Key};
use crate::private_file;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &str = "coracle-secrets-key 1";
const KEY_BYTES: usize = 32;
/// Of the hash of a key; enough to tell keys apart, too few to help guess one.
const ID_BYTES: usize = 8;

#[derive(Debug)]
pub(super) struct KeyFile {
    path: PathBuf,
}

pub(super) fn generate() -> Result<Key, AtRestError> {
    let mut secret = vec![0; KEY_BYTES];
    let random = SystemRandom::new();
    random.fill(&mut secret).map_err(|_| AtRestError::Random)?;
    Ok(key(secret))
}

fn key(secret: Vec<u8>) -> Key {
    let hash = digest(&SHA256, &secret);
    Key {
        name: hex::encode(&hash.as_ref()[..ID_BYTES]),
        cipher: Cipher::Aes256Gcm,
        secret,
    }
}

impl KeyFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// `None` when there is no file. A file with nothing in it is a broken one.
    pub(super) fn read(&self) -> Result<Option<Vec<Key>>, AtRestError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.failed("read", source)),
        };
        let mode = std::fs::metadata(&self.path)
            .map_err(|source| self.failed("read", source))?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            let mode = format!("{:03o}", mode & 0o777);
            tracing::warn!(file = %self.path.display(), mode, "others may read the key file");
        }
        let keys = parse(&text).map_err(|why| AtRestError::BadFile {
            file: self.path.clone(),
            why,
        })?;
        Ok(Some(keys))
    }

    pub(super) fn write(&self, keys: &[Key]) -> Result<(), AtRestError> {
        let mut text = format!("{MAGIC}\n");
        for key in keys {
            text.push_str(&format!("{} {}\n", key.name, STANDARD.encode(&key.secret)));
        }
        let write = || -> std::io::Result<()> {
            if let Some(parent) = self.path.parent() {
                let mut directory = std::fs::DirBuilder::new();
                directory.recursive(true).mode(0o700).create(parent)?;
            }
            private_file::write(&self.path, &text)
        };
        write().map_err(|source| self.failed("write", source))
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> AtRestError {
        AtRestError::File {
            doing,
            file: self.path.clone(),
            source,
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Key>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Err(format!("its first line is not {MAGIC:?}"));
    }
    let mut keys = Vec::new();
    for (place, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong = |why: &str| format!("line {}: {why}", place + 2);
        let (name, secret) = line
            .split_once(' ')
            .ok_or_else(|| wrong("it is not an id and a key"))?;
        let secret = STANDARD
            .decode(secret.trim())
            .ok()
            .filter(|secret| secret.len() == KEY_BYTES)
            .ok_or_else(|| wrong("the key is not 32 bytes in base64"))?;
        let key = key(secret);
        if key.name != name {
            return Err(wrong("the id is not that of the key"));
        }
        keys.push(key);
    }
    match keys.is_empty() {
        true => Err("it holds no key".to_owned()),
        false => Ok(keys),
    }
}
