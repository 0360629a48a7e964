//! Sample images as archives of each kind, and damaged ones.

use super::*;
use crate::images::manifest::Platform;
use std::fs;
use std::io::Write;

/// An image of one file a layer, named after what is in it.
pub(crate) struct Sample {
    name: String,
    pub layers: Vec<Vec<u8>>,
    pub config: Vec<u8>,
}

pub(crate) fn file_layer(name: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    add(&mut builder, name, name.as_bytes());
    builder.into_inner().unwrap()
}

fn add(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_uid(nix::unistd::geteuid().as_raw().into());
    header.set_gid(nix::unistd::getegid().as_raw().into());
    builder.append_data(&mut header, name, bytes).unwrap();
}

impl Sample {
    pub fn new(name: &str, layers: &[&str]) -> Self {
        let layers: Vec<Vec<u8>> = layers.iter().map(|layer| file_layer(layer)).collect();
        let diff_ids: Vec<String> = layers.iter().map(|layer| digest::of(layer)).collect();
        let host = Platform::host();
        let config = serde_json::json!({
            "architecture": host.architecture, "os": "linux",
            "config": { "User": "7", "Env": null, "Entrypoint": ["/run"] },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        Self {
            name: name.to_owned(),
            layers,
            config: config.to_string().into_bytes(),
        }
    }

    pub fn docker(&self) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut names = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            names.push(format!("{number}/layer.tar"));
            add(&mut archive, &names[number], layer);
        }
        add(&mut archive, "config.json", &self.config);
        let manifest = serde_json::json!([
            { "Config": "config.json", "RepoTags": [self.name], "Layers": names }
        ]);
        add(
            &mut archive,
            "manifest.json",
            manifest.to_string().as_bytes(),
        );
        archive.into_inner().unwrap()
    }

    /// With gzipped layers, inside an index for two platforms.
    pub fn oci(&self) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut blob = |bytes: &[u8], kind: &str| {
            let digest = digest::of(bytes);
            add(
                &mut archive,
                &format!("./blobs/sha256/{}", digest::digits(&digest)),
                bytes,
            );
            serde_json::json!({
                "mediaType": format!("application/vnd.oci.image.{kind}"),
                "digest": digest, "size": bytes.len(),
            })
        };
        let layers: Vec<serde_json::Value> = self
            .layers
            .iter()
            .map(|layer| blob(&gzip(layer), "layer.v1.tar+gzip"))
            .collect();
        let config = blob(&self.config, "config.v1+json");
        let manifest =
            serde_json::json!({ "schemaVersion": 2, "config": config, "layers": layers });
        let mut ours = blob(manifest.to_string().as_bytes(), "manifest.v1+json");
        ours["platform"] =
            serde_json::json!({ "os": "linux", "architecture": Platform::host().architecture });
        let mut theirs = ours.clone();
        theirs["platform"] = serde_json::json!({ "os": "plan9", "architecture": "vax" });
        theirs["digest"] = digest::of(b"not in the archive").into();
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [theirs, ours] });
        let mut index = blob(index.to_string().as_bytes(), "index.v1+json");
        index["annotations"] =
            serde_json::json!({ "org.opencontainers.image.ref.name": self.name });
        let top = serde_json::json!({ "schemaVersion": 2, "manifests": [index] });
        add(
            &mut archive,
            "oci-layout",
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        );
        add(&mut archive, "index.json", top.to_string().as_bytes());
        archive.into_inner().unwrap()
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn import_bytes(bytes: &[u8]) -> Result<(tempfile::TempDir, ImageStore, Vec<ImageInfo>), String> {
    let directory = tempfile::tempdir().unwrap();
    let store = ImageStore::open(&directory.path().join("images")).unwrap();
    let path = directory.path().join("archive");
    fs::write(&path, bytes).unwrap();
    let imported = store
        .import(&path)
        .map_err(|error| crate::error::chain(&error));
    let left = fs::read_dir(directory.path().join("images/work"))
        .unwrap()
        .count();
    assert_eq!(left, 0, "nothing half done stays");
    Ok((directory, store, imported?))
}

#[test]
fn both_kinds_import_alike_plain_and_compressed() {
    let sample = Sample::new("example.com/app:1", &["a", "b"]);
    let expected = digest::of(&sample.config);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    for archive in [
        sample.docker(),
        sample.oci(),
        gzip(&sample.docker()),
        zstd(&sample.docker()),
        gzip(&sample.oci()),
    ] {
        let (_directory, store, images) = import_bytes(&archive).unwrap();
        assert_eq!(images.len(), 1);
        assert_eq!(images[0].id, expected);
        assert_eq!(images[0].names, ["example.com/app:1"]);
        assert_eq!(images[0].user, "7");
        let held = store.hold(&["example.com/app:1"], "c").unwrap().remove(0);
        assert_eq!(held.config.entrypoint, ["/run"]);
        assert_eq!(fs::read_to_string(held.layers[0].join("b")).unwrap(), "b");
        assert_eq!(fs::read_to_string(held.layers[1].join("a")).unwrap(), "a");
    }
    let (_directory, _store, images) = import_bytes(&sample.oci()).unwrap();
    assert!(images[0].digests[0].starts_with("example.com/app@sha256:"));
}

#[test]
fn what_is_damaged_is_refused() {
    let check = |bytes: &[u8], expected: &str| {
        let text = import_bytes(bytes).map(|_| ()).unwrap_err();
        assert!(text.contains(expected), "{text:?} lacks {expected:?}");
    };
    check(b"no archive at all", "cannot read");
    check(&file_layer("some file"), "lacks manifest.json");
    let mut sample = Sample::new("app:1", &["a", "b"]);
    let layer = sample.layers.pop().unwrap();
    check(&sample.docker(), "1 layers for 2");
    sample.layers.push(file_layer("other"));
    check(&sample.docker(), "the digest of an unpacked layer");
    sample.layers[1] = layer;
    let mut archive = sample.oci();
    let at = archive
        .windows(7)
        .position(|bytes| bytes == b"\"User\":")
        .unwrap();
    archive[at + 8] = b'8';
    // The configuration is no longer what its name says.
    check(&archive, "digest");
    check(&sample.docker()[..2000], "");
}
