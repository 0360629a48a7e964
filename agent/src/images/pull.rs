//! Pulls images from registries.
//!
//! A layer is hashed, decompressed and unpacked as it arrives, and counts only when both its
//! digests fit. Calls for one image at the same time share one pull. Plain HTTP is spoken to
//! registries on this machine and to those listed as insecure, to no others.

mod credentials;
pub use credentials::credentials_for;
mod registry;

use super::digest::{self, HashingReader};
use super::index::Record;
use super::layers::{LayerStack, decompressed};
use super::manifest::{Descriptor, ImageDocument, LAYERS_MAX};
use super::reference::{Reference, is_digest};
use super::unpack::{LAYER_BYTES_MAX, UnpackError, unpack};
use super::{ImageError, ImageInfo, ImageStore, RegistryCredentials, write_atomically};
use futures::FutureExt;
use futures::future::BoxFuture;
use oci_client::secrets::RegistryAuth;
use registry::{Registry, Resolved, blocking, parse, refusal, same};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A compressed layer; the unpacked one has its own bound.
const COMPRESSED_BYTES_MAX: u64 = 32 << 30;
/// Tries of one layer, so that one broken connection does not start the whole image again.
const LAYER_TRIES_MAX: u32 = 3;
pub type Shared = futures::future::Shared<BoxFuture<'static, Result<ImageInfo, Arc<ImageError>>>>;

impl ImageStore {
    /// Pulls whether or not the image is present. Of the credentials those for its registry are
    /// tried, the most specific first; without any, anonymously.
    pub async fn pull(
        &self,
        image: &str,
        credentials: &[RegistryCredentials],
    ) -> Result<ImageInfo, ImageError> {
        let reference = Reference::parse(image)?;
        let fitting = credentials::fitting(credentials, &reference);
        // Who has other credentials may see other things: only equal calls share.
        let secret = digest::of(format!("{fitting:?}").as_bytes());
        let key = format!("{reference} {secret}");
        let name = reference.canonical();
        let start = || {
            let pull = pull(self.clone(), reference, fitting);
            pull.map(|pulled| pulled.map_err(Arc::new)).boxed().shared()
        };
        let shared = self
            .pulls
            .lock()
            .entry(key.clone())
            .or_insert_with(start)
            .clone();
        let pulled = shared.clone().await;
        let mut pulls = self.pulls.lock();
        if pulls.get(&key).is_some_and(|kept| kept.ptr_eq(&shared)) {
            pulls.remove(&key);
        }
        pulled.map_err(|error| {
            let text = crate::error::chain(&*error);
            ImageError::Registry(format!(
                "failed to pull and unpack image \"{name}\": {text}"
            ))
        })
    }
}

async fn pull(
    store: ImageStore,
    reference: Reference,
    auths: Vec<RegistryAuth>,
) -> Result<ImageInfo, ImageError> {
    let mut last = None;
    for auth in auths {
        let remote = Registry::new(&store, &reference, auth);
        match remote.resolve().await {
            Ok(resolved) => return fetch(&store, &reference, &remote, resolved).await,
            Err(error) => last = Some(error),
        }
    }
    let name = reference.canonical();
    Err(ImageError::Registry(format!(
        "failed to resolve reference \"{name}\": {}",
        last.map_or_else(
            || "no credentials".to_owned(),
            |error| refusal(&name, &error)
        )
    )))
}

async fn fetch(
    store: &ImageStore,
    reference: &Reference,
    registry: &Registry,
    resolved: Resolved,
) -> Result<ImageInfo, ImageError> {
    let malformed = |text: &str| ImageError::Malformed(text.to_owned());
    let config = resolved.manifest.config.as_ref();
    let config = config.ok_or_else(|| malformed("the manifest has no configuration"))?;
    let layers = &resolved.manifest.layers;
    let bytes = registry.config(config).await?;
    let document: ImageDocument = parse("configuration", &bytes)?;
    let diff_ids = &document.rootfs.diff_ids;
    if diff_ids.len() != layers.len() || layers.len() > LAYERS_MAX {
        return Err(malformed(
            "the layers of the manifest are not those of the configuration",
        ));
    }
    if !diff_ids.iter().all(|id| is_digest(id)) {
        return Err(malformed(
            "the configuration names layers by something else than SHA-256",
        ));
    }
    let chain: Vec<String> = digest::chain(diff_ids)
        .iter()
        .map(|id| digest::digits(id).to_owned())
        .collect();
    let manifest_digest = digest::of(&resolved.bytes);
    let session = store.session()?;
    store.reserve(
        &session,
        &chain,
        &[
            digest::digits(&config.digest),
            digest::digits(&manifest_digest),
        ],
    )?;
    let mut stack = LayerStack::new(store, &session);
    for ((descriptor, diff_id), chain) in layers.iter().zip(diff_ids).zip(&chain) {
        if stack.has(chain) {
            stack.take(chain);
            continue;
        }
        let mut tries = 1;
        let layer = loop {
            let (layer, lowers) = stack.next(chain)?;
            match fetch_layer(registry, descriptor, diff_id, &layer, lowers).await {
                Ok(()) => break layer,
                Err(error) if tries == LAYER_TRIES_MAX || !may_pass(&error) => return Err(error),
                Err(_) => tries += 1,
            }
        };
        stack.put(layer);
    }
    write_atomically(&store.blob(&config.digest), &bytes)?;
    write_atomically(&store.blob(&manifest_digest), &resolved.bytes)?;
    let tagged = reference.digest.is_none().then(|| reference.canonical());
    let record = Record {
        id: config.digest.clone(),
        names: tagged.into_iter().collect(),
        digests: BTreeSet::from([format!("{}@{}", reference.name(), resolved.top_digest)]),
        layers: chain,
        blobs: BTreeSet::from([config.digest.clone(), manifest_digest]),
        size_bytes: size_bytes(config, layers),
        user: document.config.user,
        imported: false,
        pinned: false,
    };
    let store = store.clone();
    blocking(move || store.commit(session, record)).await
}

/// As the manifest says, which may say anything.
fn size_bytes(config: &Descriptor, layers: &[Descriptor]) -> u64 {
    let sizes = layers.iter().map(|layer| layer.size);
    sizes.fold(config.size, u64::saturating_add)
}

async fn fetch_layer(
    registry: &Registry,
    descriptor: &Descriptor,
    diff_id: &str,
    layer: &Path,
    lowers: Vec<PathBuf>,
) -> Result<(), ImageError> {
    let reader = registry.blob(descriptor).await?;
    let bytes_max = match descriptor.size {
        0 => COMPRESSED_BYTES_MAX,
        size => size.min(COMPRESSED_BYTES_MAX),
    };
    let (digest, diff_id) = (descriptor.digest.clone(), diff_id.to_owned());
    let layer = layer.to_owned();
    blocking(move || unpack_both(reader, bytes_max, digest, diff_id, &layer, &lowers)).await
}

fn unpack_both(
    reader: impl Read,
    bytes_max: u64,
    digest: String,
    diff_id: String,
    layer: &Path,
    lowers: &[PathBuf],
) -> Result<(), ImageError> {
    let failed = |source| ImageError::Unpack {
        digest: digest.clone(),
        source,
    };
    let reading = |source: io::Error| failed(UnpackError::Read(source));
    let mut compressed = HashingReader::new(reader, bytes_max);
    let unpacked = {
        let plain = decompressed(&mut compressed).map_err(reading)?;
        let mut hashed = HashingReader::new(plain, LAYER_BYTES_MAX);
        unpack(&mut hashed, layer, lowers).map_err(failed)?;
        hashed.finish().map_err(reading)?.0
    };
    let (actual, _) = compressed.finish().map_err(reading)?;
    same("a layer", digest.clone(), actual)?;
    same("an unpacked layer", diff_id, unpacked)
}

/// Whether another try may do better: what broke on the way, not what is wrong in itself.
fn may_pass(error: &ImageError) -> bool {
    matches!(
        error,
        ImageError::Unpack {
            source: UnpackError::Read(_),
            ..
        }
    ) || matches!(error, ImageError::Registry(_))
}

#[cfg(test)]
mod tests;
