//! Pulls images from registries.
//!
//! A layer is hashed, decompressed and unpacked as it arrives, and counts only when both its
//! digests fit. Calls for one image at the same time share one pull. Plain HTTP is spoken to
//! registries on this machine and to those listed as insecure, to no others.

mod credentials;

use super::archive::{LayerStack, decompressed};
use super::digest::{self, HashingReader};
use super::index::Record;
use super::manifest::{
    CONFIG_BYTES_MAX, Descriptor, Document, ImageDocument, LAYERS_MAX, MANIFEST_BYTES_MAX,
    Platform, choose,
};
use super::reference::{Reference, is_digest};
use super::unpack::{LAYER_BYTES_MAX, UnpackError, unpack};
use super::{ImageError, ImageInfo, ImageStore, RegistryCredentials, write_atomically};
use futures::FutureExt;
use futures::future::BoxFuture;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference as Remote};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::io::{StreamReader, SyncIoBridge};

/// A compressed layer; the unpacked one has its own bound.
const COMPRESSED_BYTES_MAX: u64 = 32 << 30;
/// Tries of one layer, so that one broken connection does not start the whole image again.
const LAYER_TRIES_MAX: u32 = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two pieces of an answer, not for all of it.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("coracle/", env!("CARGO_PKG_VERSION"));
const MANIFEST_TYPES: &[&str] = &[
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

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
            let text = super::chain_text(&*error);
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

/// containerd's words, which users search for.
fn refusal(name: &str, error: &ImageOrRemote) -> String {
    match error {
        ImageOrRemote::Remote(OciDistributionError::UnauthorizedError { .. })
        | ImageOrRemote::Remote(OciDistributionError::AuthenticationFailure(_)) => format!(
            "pull access denied, repository does not exist or may require authorization: {error}"
        ),
        ImageOrRemote::Remote(OciDistributionError::ImageManifestNotFoundError(_)) => {
            format!("{name}: not found")
        }
        ImageOrRemote::Remote(OciDistributionError::RegistryError { envelope, .. })
            if envelope.errors.iter().any(|error| {
                matches!(
                    error.code,
                    oci_client::errors::OciErrorCode::ManifestUnknown
                        | oci_client::errors::OciErrorCode::NameUnknown
                        | oci_client::errors::OciErrorCode::NotFound
                )
            }) =>
        {
            format!("{name}: not found")
        }
        ImageOrRemote::Remote(OciDistributionError::ServerError { code: 404, .. }) => {
            format!("{name}: not found")
        }
        other => super::chain_text(other),
    }
}

#[derive(Debug, thiserror::Error)]
enum ImageOrRemote {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Remote(#[from] OciDistributionError),
}

impl From<ImageOrRemote> for ImageError {
    fn from(error: ImageOrRemote) -> Self {
        match error {
            ImageOrRemote::Image(error) => error,
            ImageOrRemote::Remote(error) => Self::Registry(super::chain_text(&error)),
        }
    }
}

struct Resolved {
    manifest: Document,
    bytes: Vec<u8>,
    /// What the name stands for: of the index, if there is one.
    top_digest: String,
}

struct Registry {
    client: Client,
    remote: Remote,
    auth: RegistryAuth,
}

impl Registry {
    fn new(store: &ImageStore, reference: &Reference, auth: RegistryAuth) -> Self {
        // A second call finds the first one's provider and changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let protocol = match speaks_plain(&reference.domain, &store.insecure_registries) {
            true => ClientProtocol::Http,
            false => ClientProtocol::Https,
        };
        let client = Client::new(ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(SILENCE_TIMEOUT),
            user_agent: USER_AGENT,
            ..ClientConfig::default()
        });
        let (domain, path) = (reference.domain.clone(), reference.path.clone());
        let remote = match (&reference.digest, &reference.tag) {
            (Some(digest), _) => Remote::with_digest(domain, path, digest.clone()),
            (None, tag) => {
                Remote::with_tag(domain, path, tag.clone().unwrap_or_else(|| "latest".into()))
            }
        };
        Self {
            client,
            remote,
            auth,
        }
    }

    async fn resolve(&self) -> Result<Resolved, ImageOrRemote> {
        let (bytes, top_digest) = self.manifest(&self.remote).await?;
        let document = parse("manifest", &bytes)?;
        let index: Document = document;
        if index.manifests.is_empty() {
            return Ok(Resolved {
                manifest: index,
                bytes,
                top_digest,
            });
        }
        let host = Platform::host();
        let chosen = choose(&index.manifests, &host).ok_or_else(|| {
            ImageError::Registry(format!(
                "no match for platform in manifest: {}/{}",
                host.os, host.architecture
            ))
        })?;
        let remote = self.remote.clone_with_digest(chosen.digest.clone());
        let (bytes, _) = self.manifest(&remote).await?;
        Ok(Resolved {
            manifest: parse("manifest", &bytes)?,
            bytes,
            top_digest,
        })
    }

    async fn manifest(&self, remote: &Remote) -> Result<(Vec<u8>, String), ImageOrRemote> {
        let (bytes, _) = self
            .client
            .pull_manifest_raw(remote, &self.auth, MANIFEST_TYPES)
            .await?;
        if bytes.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(ImageError::Malformed("the manifest is too large".into()).into());
        }
        let actual = digest::of(&bytes);
        match remote.digest() {
            Some(expected) if expected != actual => Err(ImageError::Digest {
                what: "a manifest".into(),
                expected: expected.to_owned(),
                actual,
            }
            .into()),
            _ => Ok((bytes.to_vec(), actual)),
        }
    }

    /// A small blob, whole and checked.
    async fn config(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let reader = self.blob(descriptor).await?;
        let expected = descriptor.digest.clone();
        blocking(move || {
            let mut hashed = HashingReader::new(reader, CONFIG_BYTES_MAX);
            let mut bytes = Vec::new();
            hashed
                .read_to_end(&mut bytes)
                .and_then(|_| hashed.finish())
                .map_err(|error| ImageError::Registry(super::chain_text(&error)))
                .and_then(|(actual, _)| same("a configuration", expected, actual))?;
            Ok(bytes)
        })
        .await
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<impl Read + Send + use<>, ImageError> {
        if !is_digest(&descriptor.digest) {
            return Err(ImageError::Malformed(format!(
                "{:?} is no digest",
                descriptor.digest
            )));
        }
        let sized = self
            .client
            .pull_blob_stream(&self.remote, descriptor.digest.as_str())
            .await;
        let stream = sized.map_err(ImageOrRemote::from)?.stream;
        Ok(SyncIoBridge::new(StreamReader::new(stream)))
    }
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
    session.need(
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
        size_bytes: config.size + layers.iter().map(|layer| layer.size).sum::<u64>(),
        user: document.config.user,
        imported: false,
    };
    let store = store.clone();
    blocking(move || store.commit(session, record)).await
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

fn same(what: &str, expected: String, actual: String) -> Result<(), ImageError> {
    match expected == actual {
        true => Ok(()),
        false => Err(ImageError::Digest {
            what: what.to_owned(),
            expected,
            actual,
        }),
    }
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, ImageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ImageError::Registry(format!("unpacking broke off: {error}")))?
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ImageError::Malformed(format!("cannot read the {what}: {error}")))
}

fn speaks_plain(domain: &str, insecure: &[String]) -> bool {
    let host = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => domain,
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = bare
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    host == "localhost"
        || is_loopback
        || insecure
            .iter()
            .any(|listed| listed == domain || listed == host)
}

#[cfg(test)]
mod tests;
