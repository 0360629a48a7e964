//! Tokens in a file that the operator wrote: `token,user,uid,"group1,group2"`, one a line, read at
//! start (`--token-auth-file`).
//!
//! Only hashes of the tokens stay in memory. Every one of them is compared with what is shown, so
//! that the time does not tell which of them is near.

use super::same_secret::same_hash;
use super::user::User;
use ring::digest::{Digest, SHA256, digest};
use std::path::Path;

/// A file of tokens is written by hand.
const BYTES_MAX: u64 = 1024 * 1024;
const COLUMNS_MIN: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("cannot read the token file {path}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("the token file {path} is larger than {BYTES_MAX} bytes")]
    TooLarge { path: String },
    #[error("the token file {path} is not a file of comma-separated values")]
    Form { path: String, source: csv::Error },
    #[error(
        "token file '{path}' must have at least {COLUMNS_MIN} columns (token, user name, user \
         uid), found {found} in record {record}"
    )]
    Columns {
        path: String,
        record: usize,
        found: usize,
    },
}

#[derive(Debug, Default)]
pub struct TokenFile {
    entries: Vec<(Digest, User)>,
}

impl TokenFile {
    pub fn open(file: &Path) -> Result<Self, TokenFileError> {
        let path = || file.display().to_string();
        let read = |source| TokenFileError::Read {
            path: path(),
            source,
        };
        if std::fs::metadata(file).map_err(read)?.len() > BYTES_MAX {
            return Err(TokenFileError::TooLarge { path: path() });
        }
        Self::parse(&std::fs::read(file).map_err(read)?, &path())
    }

    fn parse(bytes: &[u8], path: &str) -> Result<Self, TokenFileError> {
        let mut entries: Vec<(Digest, User)> = Vec::new();
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        for (at, record) in reader.records().enumerate() {
            let path = || path.to_owned();
            let form = |source| TokenFileError::Form {
                path: path(),
                source,
            };
            let columns = record.map_err(form)?;
            let (Some(token), Some(name), Some(uid)) =
                (columns.get(0), columns.get(1), columns.get(2))
            else {
                return Err(TokenFileError::Columns {
                    path: path(),
                    record: at + 1,
                    found: columns.len(),
                });
            };
            if token.is_empty() {
                tracing::warn!(path = path(), record = at + 1, "an empty token is left out");
                continue;
            }
            let groups = columns.get(3).map_or("", |groups| groups).split(',');
            let user = User {
                name: name.to_owned(),
                uid: uid.to_owned(),
                groups: groups
                    .filter(|group| !group.is_empty())
                    .map(str::to_owned)
                    .collect(),
                ..User::default()
            };
            let hash = digest(&SHA256, token.as_bytes());
            // The last one counts, as upstream has it.
            let before = entries.len();
            entries.retain(|(other, _)| other.as_ref() != hash.as_ref());
            if entries.len() < before {
                tracing::warn!(path = path(), record = at + 1, "a token is there twice");
            }
            entries.push((hash, user));
        }
        Ok(Self { entries })
    }

    pub fn user(&self, token: &str) -> Option<User> {
        if self.entries.is_empty() {
            return None;
        }
        let shown = digest(&SHA256, token.as_bytes());
        let mut found = None;
        for (hash, user) in &self.entries {
            if same_hash(hash.as_ref(), shown.as_ref()) {
                found = Some(user);
            }
        }
        found.cloned()
    }
}

#[cfg(test)]
mod tests;
