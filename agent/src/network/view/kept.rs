//! The view on the node's disk, for a start without the server.
//!
//! Under steady change it is written the less often the larger it is.

use super::{Key, Origin, Service, Slice, Subscription, View};
use crate::packed_file::{self, PAUSE_MAX, PAUSE_MIN, pause_after};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Of another layout nothing is read.
const LAYOUT: u32 = 2;

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
        // What was to be written last was not.
        let mut is_owed = false;
        loop {
            if !is_owed {
                tokio::select! {
                    // What came before the stop is written too.
                    biased;
                    _ = self.changes.changed() => {}
                    Ok(()) = self.namespaces.changed() => {}
                    () = stop.cancelled() => return,
                }
            }
            let is_stopped = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                () = tokio::time::sleep(pause) => false,
            };
            self.changes.take();
            self.namespaces.mark_unchanged();
            let (view, path) = (self.view.clone(), self.path.clone());
            let written = tokio::task::spawn_blocking(move || write(&view, &path)).await;
            let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
            is_owed = written.is_err();
            match written {
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

fn load(path: &Path) -> io::Result<Option<Content<'static>>> {
    let Some(content) = packed_file::read::<Content<'static>>(path)? else {
        return Ok(None);
    };
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
    packed_file::write(path, &content)
}

#[cfg(test)]
mod tests;
