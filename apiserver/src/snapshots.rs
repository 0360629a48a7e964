//! A snapshot of the cluster as one file: its objects and, under a passphrase, the keys without
//! which they are of no use elsewhere. See docs/snapshots.md.
//!
//! Keys never leave the process in plain. What is read is checked whole before any of it is used.

mod frame; // The bytes of the file.
mod key_files; // The files of keys: gathered, put in place.
mod passphrase; // What encrypts them.
mod serve; // The request for a snapshot of the running server.

pub use frame::{Header, SnapshotError, Verified, check, objects, verify, write};
pub use key_files::{CONFIGURATION, KeyFiles, KeyFilesError, KeySource, ca_fingerprint};
pub use passphrase::{PASSPHRASE_CHARS_MIN, SealedKeys, SealingKey};
pub(crate) use serve::is_path;
pub use serve::{PATH, Snapshots, WithKeys};
