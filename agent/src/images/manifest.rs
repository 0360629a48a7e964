//! What the store reads of manifests, indexes and image configurations. Pure.
//!
//! Docker's and OCI's media types are read alike; what is not needed is passed over.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// As registries bound them.
pub const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// Configurations carry the build history; real ones stay far below.
pub const CONFIG_BYTES_MAX: u64 = 8 << 20;
/// Overlayfs takes no more lower directories.
pub const LAYERS_MAX: usize = 500;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    pub platform: Option<Platform>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Platform {
    pub architecture: String,
    pub os: String,
    pub variant: String,
}

/// An index when it has `manifests`, else a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Document {
    pub schema_version: u32,
    pub manifests: Vec<Descriptor>,
    pub config: Option<Descriptor>,
    pub layers: Vec<Descriptor>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ImageDocument {
    pub architecture: String,
    pub os: String,
    pub variant: String,
    #[serde(deserialize_with = "null_is_default")]
    pub config: ImageConfig,
    pub rootfs: RootFs,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RootFs {
    #[serde(deserialize_with = "null_is_default")]
    pub diff_ids: Vec<String>,
}

/// What a container takes from its image.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ImageConfig {
    #[serde(deserialize_with = "null_is_default")]
    pub user: String,
    #[serde(deserialize_with = "null_is_default")]
    pub env: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub entrypoint: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub cmd: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub working_dir: String,
    #[serde(deserialize_with = "null_is_default")]
    pub stop_signal: String,
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl Platform {
    /// Of this machine, in Go's words.
    pub fn host() -> Self {
        let (architecture, variant) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", ""),
            "x86" => ("386", ""),
            "aarch64" => ("arm64", "v8"),
            "arm" => ("arm", "v7"),
            "powerpc64" => ("ppc64le", ""),
            "loongarch64" => ("loong64", ""),
            other => (other, ""),
        };
        Self {
            architecture: architecture.into(),
            os: "linux".into(),
            variant: variant.into(),
        }
    }

    /// 0 when `offered` cannot run here; the highest number runs best. An arm v7 machine runs
    /// v6 and v5 too; no variant stands for the architecture's usual one.
    fn fit(&self, offered: &Self) -> u32 {
        if offered.os != self.os || offered.architecture != self.architecture {
            return 0;
        }
        let number = |variant: &str| variant.trim_start_matches('v').parse::<u32>().ok();
        match (number(&self.variant), number(&offered.variant)) {
            (Some(ours), Some(theirs)) if theirs > ours => 0,
            (Some(_), Some(theirs)) => 10 + theirs,
            (None, Some(_)) => 1,
            _ => 10,
        }
    }
}

/// The manifest of an index that suits the platform best. One without a platform suits when it
/// is the only one.
pub fn choose<'a>(manifests: &'a [Descriptor], platform: &Platform) -> Option<&'a Descriptor> {
    if let [only] = manifests
        && only.platform.is_none()
    {
        return Some(only);
    }
    let fit = |entry: &Descriptor| entry.platform.as_ref().map_or(0, |p| platform.fit(p));
    manifests
        .iter()
        .rev()
        .filter(|entry| fit(entry) > 0)
        .max_by_key(|entry| fit(entry))
}
