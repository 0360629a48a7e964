//! The images of a node: a content store on disk, filled from archives and from registries.
//!
//! Used by the agent and by `coracle image` at the same time: every change holds a file lock.

use serde::{Deserialize, Serialize};

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
}
