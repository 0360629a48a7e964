//! Imports image archives: OCI layouts and docker's, as a tar file, plain or compressed.
//!
//! The archive is indexed in one pass and then read in place: nothing of it is copied but what
//! the store keeps. A compressed one is expanded into the session's directory first.

use super::index::Record;
use super::manifest::{
    CONFIG_BYTES_MAX, Descriptor, Document, ImageDocument, LAYERS_MAX, MANIFEST_BYTES_MAX,
    Platform, choose,
};
use super::reference::{Reference, is_digest};
use super::session::Session;
use super::unpack::{LAYER_BYTES_MAX, unpack};
use super::{ImageError, ImageInfo, ImageStore, digest, write_atomically};
use digest::HashingReader;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Docker's older archives have three entries a layer; no archive comes near.
const ARCHIVE_ENTRIES_MAX: usize = 100_000;
/// What a compressed archive may expand to.
const ARCHIVE_BYTES_MAX: u64 = 128 << 30;
/// Indexes of indexes; two are usual for archives of several images.
const INDEX_DEPTH_MAX: usize = 4;
const READ_BUFFER_BYTES: usize = 256 << 10;

/// One image of an archive, before its layers were read.
struct Found {
    config: String,
    /// Names of entries, lowest layer first.
    layers: Vec<String>,
    names: BTreeSet<String>,
    manifest: Option<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerEntry {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Vec<String>,
}

pub fn import(store: &ImageStore, path: &Path) -> Result<Vec<ImageInfo>, ImageError> {
    let session = store.session()?;
    let mut archive = Archive::open(path, &session)?;
    let images = match archive.entries.contains_key("index.json") {
        true => archive.oci()?,
        false => archive.docker()?,
    };
    if images.is_empty() {
        return Err(ImageError::Malformed(
            "the archive holds no image for this platform".into(),
        ));
    }
    drop(session);
    images
        .into_iter()
        .map(|found| import_one(store, &mut archive, found))
        .collect()
}

fn import_one(
    store: &ImageStore,
    archive: &mut Archive,
    found: Found,
) -> Result<ImageInfo, ImageError> {
    let session = store.session()?;
    let config = archive.read(&found.config, CONFIG_BYTES_MAX)?;
    let id = digest::of(&config);
    if let Some(name) = found.config.strip_prefix("blobs/sha256/")
        && name != digest::digits(&id)
    {
        return Err(ImageError::Digest {
            what: "the configuration".into(),
            expected: name.to_owned(),
            actual: id,
        });
    }
    let document: ImageDocument = parse(&found.config, &config)?;
    let diff_ids = &document.rootfs.diff_ids;
    if diff_ids.len() != found.layers.len() || diff_ids.len() > LAYERS_MAX {
        return Err(ImageError::Malformed(format!(
            "{} layers for {} in the configuration",
            found.layers.len(),
            diff_ids.len()
        )));
    }
    let chain: Vec<String> = digest::chain(diff_ids)
        .iter()
        .map(|id| digest::digits(id).to_owned())
        .collect();
    let mut blobs = BTreeSet::from([id.clone()]);
    blobs.extend(found.manifest.as_deref().map(digest::of));
    let digits: Vec<&str> = blobs.iter().map(|blob| digest::digits(blob)).collect();
    session.need(&chain, &digits)?;
    let mut stack = LayerStack::new(store, &session);
    let mut size_bytes = config.len() as u64;
    for ((entry, diff_id), chain) in found.layers.iter().zip(diff_ids).zip(&chain) {
        size_bytes += archive.size(entry)?;
        let reader = archive.reader(entry)?;
        stack.add(chain, diff_id, |layer, lowers| {
            unpack_checked(reader, diff_id, layer, lowers)
        })?;
    }
    for bytes in found.manifest.iter().chain([&config]) {
        write_atomically(&store.blob(&digest::of(bytes)), bytes)?;
    }
    let digests = match &found.manifest {
        Some(manifest) => named_digests(&found.names, &digest::of(manifest)),
        None => BTreeSet::new(),
    };
    let record = Record {
        id,
        names: found.names,
        digests,
        layers: chain,
        blobs,
        size_bytes,
        user: document.config.user,
        imported: true,
    };
    store.commit(session, record)
}

fn named_digests(names: &BTreeSet<String>, digest: &str) -> BTreeSet<String> {
    let parsed = names.iter().filter_map(|name| Reference::parse(name).ok());
    parsed
        .map(|name| format!("{}@{digest}", name.name()))
        .collect()
}

/// Unpacks layer on layer; those the store has are taken as they are.
pub(super) struct LayerStack<'a> {
    store: &'a ImageStore,
    session: &'a Session,
    /// Topmost first.
    lowers: Vec<PathBuf>,
}

impl<'a> LayerStack<'a> {
    pub fn new(store: &'a ImageStore, session: &'a Session) -> Self {
        Self {
            store,
            session,
            lowers: Vec::new(),
        }
    }

    pub fn has(&self, chain: &str) -> bool {
        self.store.layer(chain).is_dir()
    }

    pub fn take(&mut self, chain: &str) {
        self.lowers.insert(0, self.store.layer(chain));
    }

    /// Where the next layer goes, and what lies below it.
    pub fn next(&self, chain: &str) -> Result<(PathBuf, Vec<PathBuf>), ImageError> {
        Ok((self.session.new_layer(chain)?, self.lowers.clone()))
    }

    pub fn put(&mut self, layer: PathBuf) {
        self.lowers.insert(0, layer);
    }

    fn add(
        &mut self,
        chain: &str,
        diff_id: &str,
        fill: impl FnOnce(&Path, &[PathBuf]) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        if !is_digest(diff_id) {
            return Err(ImageError::Malformed(format!(
                "{diff_id:?} is no digest of a layer"
            )));
        }
        if self.has(chain) {
            self.take(chain);
            return Ok(());
        }
        let (layer, lowers) = self.next(chain)?;
        fill(&layer, &lowers)?;
        self.put(layer);
        Ok(())
    }
}

/// Unpacks a stream in whatever compression and checks what came out of it.
pub(super) fn unpack_checked(
    reader: impl Read,
    diff_id: &str,
    layer: &Path,
    lowers: &[PathBuf],
) -> Result<(), ImageError> {
    let failed = |source| ImageError::Unpack {
        digest: diff_id.to_owned(),
        source,
    };
    let reading = |source| failed(super::unpack::UnpackError::Read(source));
    let plain = decompressed(reader).map_err(reading)?;
    let mut hashed = HashingReader::new(plain, LAYER_BYTES_MAX);
    unpack(&mut hashed, layer, lowers).map_err(failed)?;
    let (actual, _) = hashed.finish().map_err(reading)?;
    match actual == diff_id {
        true => Ok(()),
        false => Err(ImageError::Digest {
            what: "an unpacked layer".into(),
            expected: diff_id.to_owned(),
            actual,
        }),
    }
}

/// Told by the first bytes: media types lie.
pub(super) fn decompressed<'a>(reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = [0u8; 4];
    let mut reader = reader;
    let mut length = 0;
    while length < head.len() {
        match reader.read(&mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    let whole = io::Cursor::new(head[..length].to_vec()).chain(reader);
    Ok(match head {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ImageError::Malformed(format!("{what} in the archive: {error}")))
}

/// The tar file, indexed by entry name.
struct Archive {
    file: File,
    path: PathBuf,
    /// Offset and size.
    entries: BTreeMap<String, (u64, u64)>,
    /// Docker's older archives link a layer that two images share.
    links: BTreeMap<String, String>,
}

impl Archive {
    fn open(path: &Path, session: &Session) -> Result<Self, ImageError> {
        let mut file = File::open(path).map_err(ImageError::io("cannot open", path))?;
        let reading = || ImageError::io("cannot read", path);
        let mut head = [0u8; 4];
        let count = file.read(&mut head).map_err(reading())?;
        file.rewind().map_err(reading())?;
        if count >= 2 && (head[..2] == [0x1f, 0x8b] || head == [0x28, 0xb5, 0x2f, 0xfd]) {
            let expanded = session.directory.join("archive.tar");
            let mut target = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&expanded)
                .map_err(ImageError::io("cannot make", &expanded))?;
            let source = BufReader::with_capacity(READ_BUFFER_BYTES, file);
            let mut plain = decompressed(source)
                .map_err(reading())?
                .take(ARCHIVE_BYTES_MAX);
            io::copy(&mut plain, &mut target).map_err(reading())?;
            target.rewind().map_err(reading())?;
            file = target;
        }
        let mut archive = Self {
            file,
            path: path.to_owned(),
            entries: BTreeMap::new(),
            links: BTreeMap::new(),
        };
        archive.scan().map_err(reading())?;
        Ok(archive)
    }

    fn scan(&mut self) -> io::Result<()> {
        let mut tar = tar::Archive::new(&self.file);
        for entry in tar.entries_with_seek()? {
            let entry = entry?;
            if self.entries.len() + self.links.len() >= ARCHIVE_ENTRIES_MAX {
                return Err(io::Error::other("too many entries"));
            }
            let name = clean(&entry.path_bytes());
            match entry.header().entry_type() {
                kind if kind.is_file() => {
                    self.entries
                        .insert(name, (entry.raw_file_position(), entry.size()));
                }
                kind if kind.is_symlink() || kind.is_hard_link() => {
                    let target = entry.link_name_bytes().unwrap_or_default();
                    let target = clean(&target);
                    self.links
                        .insert(name, target.trim_start_matches("../").to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn place(&self, name: &str) -> Result<(u64, u64), ImageError> {
        let name = self.links.get(name).map_or(name, String::as_str);
        let place = self.entries.get(name).copied();
        place.ok_or_else(|| ImageError::Malformed(format!("the archive lacks {name}")))
    }

    fn size(&self, name: &str) -> Result<u64, ImageError> {
        Ok(self.place(name)?.1)
    }

    fn reader(&mut self, name: &str) -> Result<impl Read, ImageError> {
        let (offset, size) = self.place(name)?;
        self.file
            .seek(SeekFrom::Start(offset))
            .map_err(ImageError::io("cannot read", &self.path))?;
        Ok(BufReader::with_capacity(
            READ_BUFFER_BYTES,
            (&self.file).take(size),
        ))
    }

    fn read(&mut self, name: &str, bytes_max: u64) -> Result<Vec<u8>, ImageError> {
        if self.size(name)? > bytes_max {
            return Err(ImageError::Malformed(format!(
                "{name} is over {bytes_max} bytes"
            )));
        }
        let path = self.path.clone();
        let mut bytes = Vec::new();
        self.reader(name)?
            .read_to_end(&mut bytes)
            .map_err(ImageError::io("cannot read", &path))?;
        Ok(bytes)
    }

    /// A blob, checked against its name.
    fn read_blob(&mut self, digest: &str, bytes_max: u64) -> Result<Vec<u8>, ImageError> {
        let bytes = self.read(&blob_name(digest)?, bytes_max)?;
        match digest::of(&bytes) {
            actual if actual == digest => Ok(bytes),
            actual => Err(ImageError::Digest {
                what: "a blob of the archive".into(),
                expected: digest.to_owned(),
                actual,
            }),
        }
    }

    fn docker(&mut self) -> Result<Vec<Found>, ImageError> {
        let list = self.read("manifest.json", MANIFEST_BYTES_MAX)?;
        let list: Vec<DockerEntry> = parse("manifest.json", &list)?;
        let found = list.into_iter().map(|entry| Found {
            config: clean(entry.config.as_bytes()),
            layers: entry
                .layers
                .iter()
                .map(|layer| clean(layer.as_bytes()))
                .collect(),
            names: whole_names(entry.repo_tags.unwrap_or_default()),
            manifest: None,
        });
        Ok(found.collect())
    }

    fn oci(&mut self) -> Result<Vec<Found>, ImageError> {
        let index = self.read("index.json", MANIFEST_BYTES_MAX)?;
        let index: Document = parse("index.json", &index)?;
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        for entry in &index.manifests {
            let Some((manifest, bytes)) = self.resolve(entry, INDEX_DEPTH_MAX)? else {
                continue;
            };
            let Some(config) = &manifest.config else {
                continue;
            };
            let layers = manifest.layers.iter().map(|layer| blob_name(&layer.digest));
            let image = Found {
                config: blob_name(&config.digest)?,
                layers: layers.collect::<Result<_, _>>()?,
                names: annotated_names(entry),
                manifest: Some(bytes),
            };
            let names = image.names.clone();
            found
                .entry(config.digest.clone())
                .or_insert(image)
                .names
                .extend(names);
        }
        if self.entries.contains_key("manifest.json") {
            for entry in self.docker()? {
                let same = found
                    .values_mut()
                    .find(|image| image.config == entry.config);
                same.into_iter()
                    .for_each(|image| image.names.extend(entry.names.clone()));
            }
        }
        Ok(found.into_values().collect())
    }

    /// Follows indexes to the manifest for this machine.
    fn resolve(
        &mut self,
        entry: &Descriptor,
        depth: usize,
    ) -> Result<Option<(Document, Vec<u8>)>, ImageError> {
        let bytes = self.read_blob(&entry.digest, MANIFEST_BYTES_MAX)?;
        let document: Document = parse(&entry.digest, &bytes)?;
        if document.manifests.is_empty() {
            return Ok(Some((document, bytes)));
        }
        let chosen = choose(&document.manifests, &Platform::host()).cloned();
        match chosen {
            Some(chosen) if depth > 0 => self.resolve(&chosen, depth - 1),
            _ => Ok(None),
        }
    }
}

fn blob_name(digest: &str) -> Result<String, ImageError> {
    match is_digest(digest) {
        true => Ok(format!("blobs/sha256/{}", digest::digits(digest))),
        false => Err(ImageError::Malformed(format!(
            "{digest:?} is no SHA-256 digest"
        ))),
    }
}

fn clean(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.trim_start_matches("./")
        .trim_start_matches('/')
        .to_owned()
}

fn whole_names(names: Vec<String>) -> BTreeSet<String> {
    let parsed = names.iter().filter_map(|name| Reference::parse(name).ok());
    parsed.map(|name| name.canonical()).collect()
}

/// containerd's annotation has the whole name; the specification's may be a mere tag, which
/// names nothing by itself.
fn annotated_names(entry: &Descriptor) -> BTreeSet<String> {
    let annotation = |key: &str| entry.annotations.get(key).cloned();
    if let Some(name) = annotation("io.containerd.image.name") {
        return whole_names(vec![name]);
    }
    let name = annotation("org.opencontainers.image.ref.name");
    whole_names(
        name.into_iter()
            .filter(|name| name.contains([':', '/']))
            .collect(),
    )
}

#[cfg(test)]
pub(super) mod tests;
