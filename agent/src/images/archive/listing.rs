//! Which images an archive holds, by docker's list or by an OCI index.

use super::super::ImageError;
use super::super::manifest::{Descriptor, Document, MANIFEST_BYTES_MAX, Platform, choose};
use super::super::reference::Reference;
use super::tar_file::{Archive, blob_name, clean};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Indexes of indexes; two are usual for archives of several images.
const INDEX_DEPTH_MAX: usize = 4;

/// One image of an archive, before its layers were read.
pub struct Found {
    pub config: String,
    /// Names of entries, lowest layer first.
    pub layers: Vec<String>,
    pub names: BTreeSet<String>,
    pub manifest: Option<Vec<u8>>,
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

pub fn images(archive: &mut Archive) -> Result<Vec<Found>, ImageError> {
    let images = match archive.entries.contains_key("index.json") {
        true => archive.oci()?,
        false => archive.docker()?,
    };
    match images.is_empty() {
        true => Err(ImageError::Malformed(
            "the archive holds no image for this platform".into(),
        )),
        false => Ok(images),
    }
}

impl Archive {
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

pub fn parse<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ImageError::Malformed(format!("{what} in the archive: {error}")))
}
