//! Imports image archives: OCI layouts and docker's, as a tar file, plain or compressed.
//!
//! The archive is indexed in one pass and then read in place: nothing of it is copied but what
//! the store keeps. A compressed one is expanded into the session's directory first.

mod listing;
mod tar_file;

use super::index::Record;
use super::layers::{LayerStack, unpack_checked};
use super::manifest::{CONFIG_BYTES_MAX, ImageDocument, LAYERS_MAX};
use super::reference::Reference;
use super::{ImageError, ImageInfo, ImageStore, digest, write_atomically};
use listing::{Found, parse};
use std::collections::BTreeSet;
use std::path::Path;
use tar_file::Archive;

pub fn import(store: &ImageStore, path: &Path) -> Result<Vec<ImageInfo>, ImageError> {
    let session = store.session()?;
    let mut archive = Archive::open(path, &session)?;
    let images = listing::images(&mut archive)?;
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
    store.reserve(&session, &chain, &digits)?;
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
        pinned: false,
    };
    store.commit(session, record)
}

fn named_digests(names: &BTreeSet<String>, digest: &str) -> BTreeSet<String> {
    let parsed = names.iter().filter_map(|name| Reference::parse(name).ok());
    parsed
        .map(|name| format!("{}@{digest}", name.name()))
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
