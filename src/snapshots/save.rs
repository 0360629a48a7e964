//! `coracle snapshot save`: of a store that nobody has open, or through the API of its server.

use super::Settings;
use crate::cli::SaveArgs;
use crate::control_plane::{store_directory, told};
use crate::show;
use anyhow::{Context, bail};
use coracle_api::timestamp;
use coracle_apiserver::at_rest::AtRest;
use coracle_apiserver::private_file;
use coracle_apiserver::snapshots::{
    self, Header, KeyFiles, KeySource, SealingKey, Verified, WithKeys, ca_fingerprint,
};
use coracle_client::{Client, clock::Clock, connect};
use coracle_store::{Config, Frozen, OpenError, Store};
use http_body_util::{BodyExt, Limited};
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Of an answer that is no snapshot.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

pub(super) fn save(runtime: &Runtime, settings: &Settings, args: &SaveArgs) -> anyhow::Result<()> {
    let file = Path::new(&args.file);
    if file.is_dir() {
        bail!("{} is a directory: name a file in it", file.display());
    }
    let sealing = settings.passphrase.as_deref().map(SealingKey::new);
    let sealing = sealing.transpose()?;
    let verified = match &args.kubeconfig {
        Some(kubeconfig) => of_server(runtime, Path::new(kubeconfig), file, sealing.as_ref()),
        None => match runtime.block_on(objects(settings))? {
            Objects::Frozen(objects) => of_store(settings, &objects, file, sealing.as_ref()),
            Objects::Served => {
                let kubeconfig = settings.data_dir.join("admin.kubeconfig");
                of_server(runtime, &kubeconfig, file, sealing.as_ref()).with_context(|| {
                    let data_dir = settings.data_dir.display();
                    format!("a server has the store in {data_dir} open; it was asked")
                })
            }
        },
    };
    let verified = verified.context("no snapshot was saved")?;
    let (facts, sha256) = (verified.facts, verified.sha256);
    show::line(&format!(
        "saved {}: revision {}, {} objects, {} bytes, SHA-256 {sha256}",
        file.display(),
        facts.revision,
        facts.entries,
        verified.bytes
    ));
    show::line(match sealing {
        Some(_) => {
            "the cluster's keys are in it, encrypted: it restores anywhere with the passphrase"
        }
        None => {
            "the cluster's keys are not in it: it restores only where server/pki of this data \
             directory is, or a copy of that; with --passphrase-file they are in it, encrypted"
        }
    });
    Ok(())
}

enum Objects {
    Frozen(Frozen),
    /// A server has them open.
    Served,
}

/// Opens the store as a server would, and closes it again.
async fn objects(settings: &Settings) -> anyhow::Result<Objects> {
    let directory = store_directory(&settings.data_dir);
    if !directory.join("mark").exists() {
        bail!("there is no store in {}", directory.display());
    }
    let at_rest = AtRest::open(settings.at_rest.clone())?;
    let config = Config {
        seal: Some(at_rest.seal()),
        lock_wait: Duration::ZERO,
        ..Config::new(directory)
    };
    let store = match Store::open(config) {
        Ok(store) => store,
        Err(OpenError::InUse { .. }) => return Ok(Objects::Served),
        Err(error) => return Err(error.into()),
    };
    let frozen = store.freeze().await;
    store.close().await;
    Ok(Objects::Frozen(frozen?))
}

fn of_store(
    settings: &Settings,
    objects: &Frozen,
    file: &Path,
    sealing: Option<&SealingKey>,
) -> anyhow::Result<Verified> {
    let source = KeySource {
        pki: settings.pki(),
        at_rest: Some(settings.at_rest.clone()),
    };
    let keys =
        sealing.map(|sealing| Ok::<_, anyhow::Error>(sealing.seal(&KeyFiles::gather(&source)?)));
    let header = Header {
        created: timestamp::format_time(Clock::system().now()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ca: ca_fingerprint(&source.pki)?,
        keys: keys.transpose()?,
    };
    written(file, |out| {
        snapshots::write(BufWriter::new(out), &header, objects)?;
        Ok(())
    })
}

fn of_server(
    runtime: &Runtime,
    kubeconfig: &Path,
    file: &Path,
    sealing: Option<&SealingKey>,
) -> anyhow::Result<Verified> {
    let loaded = connect::kubeconfig::load(kubeconfig, None)
        .with_context(|| format!("cannot use the kubeconfig {}", kubeconfig.display()))?;
    let _guard = runtime.enter();
    let client = connect::client(&loaded.endpoint);
    let with_keys = sealing.map_or(WithKeys::No, WithKeys::Sealed);
    written(file, |out| {
        runtime.block_on(receive(&client, &with_keys, out))
    })
}

async fn receive(client: &Client, with_keys: &WithKeys<'_>, out: &mut File) -> anyhow::Result<()> {
    let request = with_keys.request().map(kube::client::Body::from);
    let response = client.send(request).await.map_err(told)?;
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let text = Limited::new(body, REFUSAL_BYTES_MAX).collect().await;
        let text = text
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let answer: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        match answer["message"].as_str() {
            Some(message) => bail!("{message}"),
            None => bail!("the server answered {status}"),
        }
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| told(kube::Error::Service(error.into())));
        let frame = frame.context("the snapshot broke off")?;
        if let Some(piece) = frame.data_ref() {
            out.write_all(piece).context("cannot write it")?;
        }
    }
    Ok(())
}

/// Writes a private file, whole or not at all, and reads it back before it gets its name.
fn written(
    file: &Path,
    fill: impl FnOnce(&mut File) -> anyhow::Result<()>,
) -> anyhow::Result<Verified> {
    let path = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
    let made = private_file::create(&path, |out| {
        fill(out)?;
        out.rewind()?;
        let checked = snapshots::check(BufReader::new(&mut *out));
        checked.context("what was written is not what is read back")
    });
    made.with_context(|| format!("cannot save {}", path.display()))
}
