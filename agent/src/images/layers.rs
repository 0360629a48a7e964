//! Layers on their way into the store: decompressed, checked, unpacked one on the other.

use super::digest::HashingReader;
use super::reference::is_digest;
use super::session::Session;
use super::unpack::{LAYER_BYTES_MAX, unpack};
use super::{ImageError, ImageStore};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub const READ_BUFFER_BYTES: usize = 256 << 10;

/// Unpacks layer on layer; those the store has are taken as they are.
pub struct LayerStack<'a> {
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

    pub fn add(
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
pub fn unpack_checked(
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
pub fn decompressed<'a>(reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
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
