//! The demo's image: this static binary in an otherwise empty root.

use anyhow::Context;
use coracle_agent::images::ImageStore;
use serde_json::json;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

pub const REFERENCE: &str = "coracle.local/demo:1";
pub const PORT: u16 = 8080;

/// Writes a Docker archive to a temporary file and imports it as a user's archive would be.
pub fn import(images: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(images)?;
    let archive = images.join("demo.tar");
    let written = write(&archive).and_then(|()| {
        let store = ImageStore::open(images)?;
        store.import(&archive)?;
        Ok(())
    });
    drop(std::fs::remove_file(&archive));
    written
}

fn write(path: &Path) -> anyhow::Result<()> {
    let mut layer_file = tempfile(path)?;
    let digest = {
        let mut writer = Hashing::new(&mut layer_file);
        let mut layer = tar::Builder::new(&mut writer);
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut program = File::open(program).context("cannot read this program")?;
        let mut header = header(program.metadata()?.len(), 0o755);
        layer.append_data(&mut header, "coracle", &mut program)?;
        layer.into_inner()?.digest()
    };
    let config = json!({
        "architecture": if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" },
        "os": "linux",
        "config": { "Entrypoint": ["/coracle", "demo-page"], "ExposedPorts": { "8080/tcp": {} } },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    });
    let manifest = json!([{
        "Config": "config.json",
        "RepoTags": [REFERENCE],
        "Layers": ["layer.tar"],
    }]);
    let mut archive = tar::Builder::new(File::create(path)?);
    append(&mut archive, "config.json", &serde_json::to_vec(&config)?)?;
    layer_file.rewind()?;
    let mut layer_header = header(layer_file.metadata()?.len(), 0o644);
    archive.append_data(&mut layer_header, "layer.tar", &mut layer_file)?;
    append(
        &mut archive,
        "manifest.json",
        &serde_json::to_vec(&manifest)?,
    )?;
    archive.into_inner()?.flush()?;
    Ok(())
}

/// A file beside `path` that has no name: it is gone when it is closed.
fn tempfile(path: &Path) -> anyhow::Result<File> {
    let name = path.with_extension("layer");
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&name)?;
    std::fs::remove_file(&name)?;
    Ok(file)
}

fn header(size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header
}

fn append(archive: &mut tar::Builder<File>, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    archive.append_data(&mut header(bytes.len() as u64, 0o644), name, bytes)?;
    Ok(())
}

/// Passes bytes on and keeps their SHA-256.
struct Hashing<'a> {
    inner: &'a mut File,
    context: ring::digest::Context,
}

impl<'a> Hashing<'a> {
    fn new(inner: &'a mut File) -> Self {
        Self {
            inner,
            context: ring::digest::Context::new(&ring::digest::SHA256),
        }
    }

    fn digest(&self) -> String {
        hex::encode(self.context.clone().finish())
    }
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.context.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
