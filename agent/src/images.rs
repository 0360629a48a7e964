//! The images of a node: a content store on disk, filled from archives and from registries.
//!
//! Used by the agent and by `coracle image` at the same time: a change holds a file lock, a read
//! sees the last whole index. Layers are unpacked once, kept by chain id, and freed when neither
//! an image nor a container needs them. Compressed layers are not kept: they would cost a second
//! copy on flash and nothing reads them again.
//!
//! ```text
//! images/index.json            what there is; replaced atomically
//!        blobs/sha256/<hex>    manifests and configurations
//!        layers/<chain id>/    unpacked, ready for overlayfs
//!        holders/<container>   the layers that a container stands on
//!        work/<id>/            an import or pull under way, or what a crash left of one
//!        lock
//! ```

pub mod archive;
pub mod digest;
mod index;
mod layers;
pub mod manifest;
pub mod pull;
pub mod reference;
mod session;
pub mod unpack;

use index::{Index, Record};
use manifest::{CONFIG_BYTES_MAX, ImageConfig, ImageDocument};
use nix::fcntl::{Flock, FlockArg};
use parking_lot::Mutex;
use reference::Reference;
use serde::{Deserialize, Serialize};
use session::Session;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One entry of a pull secret.
#[derive(Clone, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct RegistryCredentials {
    /// As in a docker config file: `registry.example.com`, `https://index.docker.io/v1/`.
    pub registry: String,
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryCredentials")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImageInfo {
    /// Digest of the image's configuration: `sha256:..`.
    pub id: String,
    /// Full names with a tag: `docker.io/library/busybox:1.36`.
    pub names: Vec<String>,
    /// Full names with a digest: `docker.io/library/busybox@sha256:..`.
    pub digests: Vec<String>,
    pub size_bytes: u64,
    /// The image's USER.
    pub user: String,
    /// Brought by hand: never collected as garbage.
    pub imported: bool,
    /// Marked to stay: never collected either.
    pub pinned: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{action} {path:?}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{0}")]
    Reference(#[from] reference::ReferenceError),
    #[error("image {0:?} is not present")]
    NotPresent(String),
    /// The archive or the registry gave something that is no image of this kind.
    #[error("{0}")]
    Malformed(String),
    #[error("the digest of {what} is {actual}, not {expected}")]
    Digest {
        what: String,
        expected: String,
        actual: String,
    },
    #[error("cannot unpack the layer {digest}")]
    Unpack {
        digest: String,
        source: unpack::UnpackError,
    },
    #[error("{0}")]
    Registry(String),
}

impl ImageError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// What a container stands on.
#[derive(Clone, Debug)]
pub struct HeldImage {
    pub id: String,
    pub config: ImageConfig,
    /// Unpacked layers, topmost first.
    pub layers: Vec<PathBuf>,
}

/// A cheap handle.
#[derive(Clone, Debug)]
pub struct ImageStore {
    directory: Arc<Path>,
    /// Registries spoken to without TLS, besides those on this machine.
    insecure_registries: Arc<[String]>,
    pulls: Arc<Mutex<HashMap<String, pull::Shared>>>,
}

impl ImageStore {
    /// Makes the directory if need be and removes what a crash left half done.
    pub fn open(directory: &Path) -> Result<Self, ImageError> {
        for part in ["blobs/sha256", "layers", "holders", "work"] {
            let path = directory.join(part);
            fs::create_dir_all(&path).map_err(ImageError::io("cannot make", &path))?;
        }
        let store = Self {
            directory: directory.into(),
            insecure_registries: Arc::new([]),
            pulls: Arc::default(),
        };
        let _lock = store.lock()?;
        session::remove_stale(&store.work_directory());
        store.index()?;
        Ok(store)
    }

    pub fn with_insecure_registries(self, registries: Vec<String>) -> Self {
        Self {
            insecure_registries: registries.into(),
            ..self
        }
    }

    pub fn list(&self) -> Result<Vec<ImageInfo>, ImageError> {
        Ok(self.index()?.images.values().map(Record::info).collect())
    }

    /// By name, by name with digest, or by id, which may lack its `sha256:`.
    pub fn find(&self, image: &str) -> Result<Option<ImageInfo>, ImageError> {
        Ok(self.index()?.find(image)?.map(Record::info))
    }

    /// Imports every image of an OCI layout or docker archive, plain or compressed.
    pub fn import(&self, file: &Path) -> Result<Vec<ImageInfo>, ImageError> {
        archive::import(self, file)
    }

    /// By a name: takes that name away, and the image with its last one. By id: the image.
    pub fn remove(&self, image: &str) -> Result<(), ImageError> {
        self.change(|index| {
            let id = index.find(image)?.map(|record| record.id.clone());
            let id = id.ok_or_else(|| ImageError::NotPresent(image.to_owned()))?;
            let Some(record) = index.images.get_mut(&id) else {
                return Ok(());
            };
            let name = Reference::parse(image)
                .map(|name| name.canonical())
                .unwrap_or_default();
            let untagged = record.names.remove(&name) || record.digests.remove(&name);
            if !untagged || record.names.is_empty() {
                index.images.remove(&id);
            }
            Ok(())
        })
    }

    /// Marks an image to stay for good, or takes the mark away.
    pub fn pin(&self, image: &str, is_pinned: bool) -> Result<(), ImageError> {
        self.change(|index| {
            let id = index.find(image)?.map(|record| record.id.clone());
            let record = id.and_then(|id| index.images.get_mut(&id));
            let record = record.ok_or_else(|| ImageError::NotPresent(image.to_owned()))?;
            record.pinned = is_pinned;
            Ok(())
        })
    }

    /// With all its names.
    pub fn remove_image(&self, image: &str) -> Result<(), ImageError> {
        self.change(|index| {
            if let Some(id) = index.find(image)?.map(|record| record.id.clone()) {
                index.images.remove(&id);
            }
            Ok(())
        })
    }

    /// Keeps the images' layers until `release`, even when an image is removed meanwhile.
    pub fn hold(&self, images: &[&str], holder: &str) -> Result<Vec<HeldImage>, ImageError> {
        let _lock = self.lock()?;
        let index = self.index()?;
        let mut records = Vec::new();
        for image in images {
            let found = index.find(image)?;
            records.push(found.ok_or_else(|| ImageError::NotPresent((*image).to_owned()))?);
        }
        let layers: BTreeSet<&str> = records
            .iter()
            .flat_map(|record| record.layers.iter().map(String::as_str))
            .collect();
        let layers: Vec<&str> = layers.into_iter().collect();
        let path = self.directory.join("holders").join(holder);
        write_atomically(&path, layers.join("\n").as_bytes())?;
        records
            .into_iter()
            .map(|record| self.held(record))
            .collect()
    }

    fn held(&self, record: &Record) -> Result<HeldImage, ImageError> {
        let layers = record
            .layers
            .iter()
            .rev()
            .map(|chain| self.layer(chain))
            .collect();
        Ok(HeldImage {
            id: record.id.clone(),
            config: self.document(&record.id)?.config,
            layers,
        })
    }

    /// Also frees the layers, if this was their last user.
    pub fn release(&self, holder: &str) -> Result<(), ImageError> {
        let _lock = self.lock()?;
        let path = self.directory.join("holders").join(holder);
        match fs::remove_file(&path) {
            Ok(()) => self.sweep(&self.index()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(ImageError::io("cannot remove", &path)(error)),
        }
    }

    /// Who holds layers: lets a restarted agent release for containers that are gone.
    pub fn holders(&self) -> Result<Vec<String>, ImageError> {
        names_in(&self.directory.join("holders"))
    }

    fn document(&self, id: &str) -> Result<ImageDocument, ImageError> {
        let path = self.blob(id);
        let bytes = read_bounded(&path, CONFIG_BYTES_MAX)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ImageError::Malformed(format!("configuration {id}: {error}")))
    }

    fn index(&self) -> Result<Index, ImageError> {
        Index::load(&self.directory.join("index.json"))
    }

    /// Changes the index under the lock, then frees what it no longer names.
    fn change<T>(
        &self,
        edit: impl FnOnce(&mut Index) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        let _lock = self.lock()?;
        let mut index = self.index()?;
        let answer = edit(&mut index)?;
        index.save(&self.directory.join("index.json"))?;
        self.sweep(&index)?;
        Ok(answer)
    }

    /// Enters an image whose layers wait in the session.
    fn commit(&self, session: Session, record: Record) -> Result<ImageInfo, ImageError> {
        session.sync()?;
        let _lock = self.lock()?;
        session.publish_layers(&self.directory.join("layers"))?;
        let mut index = self.index()?;
        let info = index.add(record).info();
        index.save(&self.directory.join("index.json"))?;
        drop(session);
        self.sweep(&index)?;
        Ok(info)
    }

    fn session(&self) -> Result<Session, ImageError> {
        let _lock = self.lock()?;
        Session::begin(&self.work_directory())
    }

    /// What the session counts on is there until it ends. Under the lock: a sweep is either over,
    /// and what it took is seen to be gone, or sees this.
    fn reserve(
        &self,
        session: &Session,
        layers: &[String],
        blobs: &[&str],
    ) -> Result<(), ImageError> {
        let _lock = self.lock()?;
        session.need(layers, blobs)
    }

    /// Removes layers and blobs that nothing needs. Called with the lock held.
    fn sweep(&self, index: &Index) -> Result<(), ImageError> {
        let mut layers: BTreeSet<String> = index
            .images
            .values()
            .flat_map(|record| record.layers.iter().cloned())
            .collect();
        for holder in self.holders()? {
            let path = self.directory.join("holders").join(holder);
            layers.extend(
                fs::read_to_string(path)
                    .unwrap_or_default()
                    .lines()
                    .map(str::to_owned),
            );
        }
        let (needed, mut blobs) = session::needs(&self.work_directory());
        layers.extend(needed);
        for record in index.images.values() {
            blobs.extend(
                record
                    .blobs
                    .iter()
                    .map(|blob| digest::digits(blob).to_owned()),
            );
        }
        let directory = self.directory.join("layers");
        for name in names_in(&directory)?
            .iter()
            .filter(|name| !layers.contains(*name))
        {
            let path = directory.join(name);
            crate::tree::remove(&path).map_err(ImageError::io("cannot remove", &path))?;
        }
        let directory = self.directory.join("blobs/sha256");
        for name in names_in(&directory)?
            .iter()
            .filter(|name| !blobs.contains(*name))
        {
            let path = directory.join(name);
            fs::remove_file(&path).map_err(ImageError::io("cannot remove", &path))?;
        }
        Ok(())
    }

    fn lock(&self) -> Result<Flock<File>, ImageError> {
        let path = self.directory.join("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(ImageError::io("cannot open", &path))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| ImageError::io("cannot lock", &path)(errno.into()))
    }

    fn work_directory(&self) -> PathBuf {
        self.directory.join("work")
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.directory
            .join("blobs/sha256")
            .join(digest::digits(digest))
    }

    fn layer(&self, chain: &str) -> PathBuf {
        self.directory.join("layers").join(chain)
    }
}

fn names_in(directory: &Path) -> Result<Vec<String>, ImageError> {
    let entries = fs::read_dir(directory).map_err(ImageError::io("cannot read", directory))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ImageError::io("cannot read", directory))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ImageError> {
    let file = File::open(path).map_err(ImageError::io("cannot open", path))?;
    let mut bytes = Vec::new();
    file.take(bytes_max)
        .read_to_end(&mut bytes)
        .map_err(ImageError::io("cannot read", path))?;
    Ok(bytes)
}

/// A reader sees the old content or the new, also after a power cut.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    crate::atomic_file::write(path, bytes, 0o644).map_err(ImageError::io("cannot write", path))
}

#[cfg(test)]
mod tests;
