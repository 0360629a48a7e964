//! One registry, as one user: names to manifests, digests to bytes.

use super::super::digest::{self, HashingReader};
use super::super::manifest::{
    CONFIG_BYTES_MAX, Descriptor, Document, MANIFEST_BYTES_MAX, Platform, choose,
};
use super::super::reference::{Reference, is_digest};
use super::super::{ImageError, ImageStore};
use crate::error::chain;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference as Remote};
use std::io::Read;
use std::time::Duration;
use tokio_util::io::{StreamReader, SyncIoBridge};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two pieces of an answer, not for all of it.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("coracle/", env!("CARGO_PKG_VERSION"));
pub const MANIFEST_TYPES: &[&str] = &[
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

#[derive(Debug, thiserror::Error)]
pub enum ImageOrRemote {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Remote(#[from] OciDistributionError),
}

impl From<ImageOrRemote> for ImageError {
    fn from(error: ImageOrRemote) -> Self {
        match error {
            ImageOrRemote::Image(error) => error,
            ImageOrRemote::Remote(error) => Self::Registry(chain(&error)),
        }
    }
}

pub struct Resolved {
    pub manifest: Document,
    pub bytes: Vec<u8>,
    /// What the name stands for: of the index, if there is one.
    pub top_digest: String,
}

pub struct Registry {
    pub client: Client,
    pub remote: Remote,
    auth: RegistryAuth,
}

impl Registry {
    pub fn new(store: &ImageStore, reference: &Reference, auth: RegistryAuth) -> Self {
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

    pub async fn resolve(&self) -> Result<Resolved, ImageOrRemote> {
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
    pub async fn config(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let reader = self.blob(descriptor).await?;
        let expected = descriptor.digest.clone();
        blocking(move || {
            let mut hashed = HashingReader::new(reader, CONFIG_BYTES_MAX);
            let mut bytes = Vec::new();
            hashed
                .read_to_end(&mut bytes)
                .and_then(|_| hashed.finish())
                .map_err(|error| ImageError::Registry(chain(&error)))
                .and_then(|(actual, _)| same("a configuration", expected, actual))?;
            Ok(bytes)
        })
        .await
    }

    pub async fn blob(
        &self,
        descriptor: &Descriptor,
    ) -> Result<impl Read + Send + use<>, ImageError> {
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

/// containerd's words, which users search for.
pub fn refusal(name: &str, error: &ImageOrRemote) -> String {
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
                    OciErrorCode::ManifestUnknown
                        | OciErrorCode::NameUnknown
                        | OciErrorCode::NotFound
                )
            }) =>
        {
            format!("{name}: not found")
        }
        ImageOrRemote::Remote(OciDistributionError::ServerError { code: 404, .. }) => {
            format!("{name}: not found")
        }
        other => chain(other),
    }
}

pub fn same(what: &str, expected: String, actual: String) -> Result<(), ImageError> {
    match expected == actual {
        true => Ok(()),
        false => Err(ImageError::Digest {
            what: what.to_owned(),
            expected,
            actual,
        }),
    }
}

pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, ImageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ImageError::Registry(format!("unpacking broke off: {error}")))?
}

pub fn parse<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ImageError::Malformed(format!("cannot read the {what}: {error}")))
}

pub fn speaks_plain(domain: &str, insecure: &[String]) -> bool {
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
