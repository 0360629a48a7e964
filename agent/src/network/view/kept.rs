//! The view on the node's disk, for a start without the server.
//!
//! One file, replaced as a whole: gzip (whose checksum tells a damaged one) over JSON. Under
//! steady change it is written the less often the larger it is, so that a flash card bears it.

use super::{Key, Origin, Service, Slice, Subscription, View};
use crate::atomic_file;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Of another layout nothing is read.
const LAYOUT: u32 = 2;
/// Bounds what a damaged file can cost; a hundred thousand endpoints are below.
const PLAIN_BYTES_MAX: u64 = 64 << 20;
/// Between two writes at least: what changes together is written together.
const PAUSE_MIN: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// What constant change may write.
const BYTES_PER_SECOND: u64 = 1024;

#[derive(Default, Deserialize, Serialize)]
struct Content<'a> {
    layout: u32,
    namespaces: Vec<Cow<'a, str>>,
    services: Vec<(Key, Arc<Service>)>,
    slices: Vec<(Key, Arc<Slice>)>,
}

/// Reads the file once, then keeps it true.
#[derive(Debug)]
pub struct Keeper {
    view: View,
    path: PathBuf,
    /// Since the file was read.
    changes: Subscription,
    namespaces: watch::Receiver<BTreeSet<Box<str>>>,
}

impl Keeper {
    /// Fills the view with what the file holds. A file that is not there or cannot be trusted
    /// leaves it as it is.
    pub fn open(view: View, path: PathBuf) -> Self {
        match load(&path) {
            Ok(Some(content)) => fill(&view, content),
            Ok(None) => {}
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "the Services known last are lost until the server tells");
            }
        }
        let mut changes = view.subscribe();
        changes.take();
        Self {
            changes,
            namespaces: view.namespaces_changed(),
            view,
            path,
        }
    }

    /// Until `stop`; what changed last is written then too.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pause = PAUSE_MIN;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = self.changes.changed() => {}
                Ok(()) = self.namespaces.changed() => {}
            }
            let is_stopped = tokio::select! {
                () = stop.cancelled() => true,
                () = tokio::time::sleep(pause) => false,
            };
            self.changes.take();
            self.namespaces.mark_unchanged();
            let (view, path) = (self.view.clone(), self.path.clone());
            let written = tokio::task::spawn_blocking(move || write(&view, &path)).await;
            match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(bytes) => pause = pause_after(bytes),
                Err(error) => {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "Services are not kept for a start without the server");
                    pause = PAUSE_MAX;
                }
            }
            if is_stopped {
                return;
            }
        }
    }
}

fn pause_after(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND).clamp(PAUSE_MIN, PAUSE_MAX)
}

fn load(path: &Path) -> io::Result<Option<Content<'static>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut plain = GzDecoder::new(BufReader::new(file)).take(PLAIN_BYTES_MAX);
    let content: Content<'static> = serde_json::from_reader(BufReader::new(&mut plain))?;
    // The checksum is behind the last byte.
    io::copy(&mut plain, &mut io::sink())?;
    let is_sound = content.layout == LAYOUT
        && content.slices.iter().all(|(_, slice)| {
            let endpoints = slice.endpoints.iter();
            endpoints
                .into_iter()
                .all(|endpoint| !endpoint.addresses.is_empty())
        });
    if !is_sound {
        return Err(io::Error::other("the file is of another version"));
    }
    Ok(Some(content))
}

fn fill(view: &View, content: Content<'static>) {
    for namespace in &content.namespaces {
        view.set_namespace(namespace, true);
    }
    for (key, service) in content.services {
        let service = Arc::unwrap_or_clone(service);
        view.change(|tables| tables.set_service(&key, Some(service)));
    }
    for (key, slice) in content.slices {
        let name = super::key(super::parts(&key).0, &slice.name);
        let slice = Arc::unwrap_or_clone(slice);
        view.change(|tables| tables.set_slice(&name, Some((key, slice))));
    }
    view.reach(Origin::Disk);
}

/// The bytes written.
fn write(view: &View, path: &Path) -> io::Result<u64> {
    let namespaces = view.namespaces();
    let mut content = Content {
        layout: LAYOUT,
        namespaces: namespaces
            .iter()
            .map(|name| Cow::Borrowed(&**name))
            .collect(),
        ..Content::default()
    };
    for (key, entry) in view.all() {
        for slice in entry.slices {
            content.slices.push((key.clone(), slice));
        }
        if let Some(service) = entry.service {
            content.services.push((key, service));
        }
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut packed, &content)?;
    let packed = packed.finish()?;
    atomic_file::write(path, &packed, 0o600)?;
    Ok(packed.len() as u64)
}

#[cfg(test)]
mod tests;
