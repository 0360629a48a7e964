//! The tar file of an archive, indexed by entry name and read in place.

use super::super::layers::{READ_BUFFER_BYTES, decompressed};
use super::super::reference::is_digest;
use super::super::session::Session;
use super::super::{ImageError, digest};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Docker's older archives have three entries a layer; no archive comes near.
const ARCHIVE_ENTRIES_MAX: usize = 100_000;
/// What a compressed archive may expand to.
const ARCHIVE_BYTES_MAX: u64 = 128 << 30;

/// The tar file, indexed by entry name.
pub struct Archive {
    file: File,
    path: PathBuf,
    /// Offset and size.
    pub entries: BTreeMap<String, (u64, u64)>,
    /// Docker's older archives link a layer that two images share.
    links: BTreeMap<String, String>,
}

impl Archive {
    pub fn open(path: &Path, session: &Session) -> Result<Self, ImageError> {
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

    pub fn size(&self, name: &str) -> Result<u64, ImageError> {
        Ok(self.place(name)?.1)
    }

    pub fn reader(&mut self, name: &str) -> Result<impl Read, ImageError> {
        let (offset, size) = self.place(name)?;
        self.file
            .seek(SeekFrom::Start(offset))
            .map_err(ImageError::io("cannot read", &self.path))?;
        Ok(BufReader::with_capacity(
            READ_BUFFER_BYTES,
            (&self.file).take(size),
        ))
    }

    pub fn read(&mut self, name: &str, bytes_max: u64) -> Result<Vec<u8>, ImageError> {
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
    pub fn read_blob(&mut self, digest: &str, bytes_max: u64) -> Result<Vec<u8>, ImageError> {
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
}

pub fn blob_name(digest: &str) -> Result<String, ImageError> {
    match is_digest(digest) {
        true => Ok(format!("blobs/sha256/{}", digest::digits(digest))),
        false => Err(ImageError::Malformed(format!(
            "{digest:?} is no SHA-256 digest"
        ))),
    }
}

pub fn clean(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.trim_start_matches("./")
        .trim_start_matches('/')
        .to_owned()
}
