//! The list of images, one JSON file.

use super::{ImageError, ImageInfo, reference, reference::Reference, write_atomically};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const VERSION: u32 = 1;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    pub id: String,
    pub names: BTreeSet<String>,
    pub digests: BTreeSet<String>,
    /// Chain ids without `sha256:`, lowest first.
    pub layers: Vec<String>,
    /// Digests of the manifest and the configuration.
    pub blobs: BTreeSet<String>,
    pub size_bytes: u64,
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub imported: bool,
    #[serde(default)]
    pub pinned: bool,
}

impl Record {
    pub fn info(&self) -> ImageInfo {
        ImageInfo {
            id: self.id.clone(),
            names: self.names.iter().cloned().collect(),
            digests: self.digests.iter().cloned().collect(),
            size_bytes: self.size_bytes,
            user: self.user.clone(),
            imported: self.imported,
            pinned: self.pinned,
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Index {
    version: u32,
    /// By id.
    pub images: BTreeMap<String, Record>,
}

impl Index {
    pub fn load(path: &Path) -> Result<Self, ImageError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self {
                    version: VERSION,
                    images: BTreeMap::new(),
                });
            }
            Err(error) => return Err(ImageError::io("cannot read", path)(error)),
        };
        let malformed = |text: String| ImageError::Malformed(format!("{}: {text}", path.display()));
        let index: Self =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match index.version {
            VERSION => Ok(index),
            other => Err(malformed(format!("version {other} is not known here"))),
        }
    }

    pub fn save(&self, path: &Path) -> Result<(), ImageError> {
        let bytes = serde_json::to_vec(self).expect("strings and numbers always serialize");
        write_atomically(path, &bytes)
    }

    pub fn find(&self, image: &str) -> Result<Option<&Record>, ImageError> {
        let id = format!("sha256:{}", super::digest::digits(image));
        if reference::is_digest(&id) {
            return Ok(self.images.get(&id));
        }
        let name = Reference::parse(image)?.canonical();
        Ok(self
            .images
            .values()
            .find(|r| r.names.contains(&name) || r.digests.contains(&name)))
    }

    /// A name moves to the image that got it last, as a tag does.
    pub fn add(&mut self, record: Record) -> &Record {
        for other in self
            .images
            .values_mut()
            .filter(|other| other.id != record.id)
        {
            for name in &record.names {
                other.names.remove(name);
            }
        }
        let id = record.id.clone();
        let known = self.images.entry(id).or_insert_with(|| Record {
            names: BTreeSet::new(),
            digests: BTreeSet::new(),
            blobs: BTreeSet::new(),
            imported: false,
            pinned: false,
            ..record.clone()
        });
        known.names.extend(record.names);
        known.digests.extend(record.digests);
        known.blobs.extend(record.blobs);
        known.imported |= record.imported;
        known.pinned |= record.pinned;
        known
    }
}
