//! Takes a pod's volumes down: containers are gone, and nobody is about to make any.
//!
//! Order: drivers unpublish, what is mounted goes, drivers unstage what no other pod has, and then
//! what was kept of the volumes is forgotten. Errors are upstream's, for the log alone.

use super::context::Context;
use crate::volumes::kept::others_have;
use crate::volumes::{self, Found, Kept, OfDriver};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of a pod's directory goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Extent {
    /// What it has of logs and last words stays.
    Volumes,
    All,
}

/// May be repeated, and is when it fails. Goes to its end also when the task that asks is aborted.
pub async fn unmount(context: &Arc<Context>, uid: &str, extent: Extent) -> Result<(), String> {
    let turn = context.volume_writes.hold(uid).await;
    let work = Work {
        directory: volumes::pod_directory(&context.pods_directory(), uid),
        context: context.clone(),
        uid: uid.to_owned(),
    };
    let work = tokio::spawn(async move {
        let _turn = turn;
        work.run(extent).await
    });
    work.await.map_err(|error| error.to_string())?
}

fn of_drivers(kept: &Kept) -> impl Iterator<Item = (&Found, &OfDriver)> {
    let all = kept.0.values();
    all.filter_map(|found| Some((found, found.driver.as_ref()?)))
}

struct Work {
    context: Arc<Context>,
    uid: String,
    directory: PathBuf,
}

impl Work {
    async fn run(self, extent: Extent) -> Result<(), String> {
        let mut kept = Kept::load(&self.directory).map_err(|error| error.to_string())?;
        let mut refusals = Vec::new();
        for (found, driver) in of_drivers(&kept) {
            let (csi, name) = (&self.context.csi, &found.name);
            let done = csi.unpublish(&self.uid, &self.directory, found, driver);
            if let Err(error) = done.await {
                let step = "UnmountVolume.TearDown failed";
                refusals.push(format!("{step} for volume {name:?} : {error}"));
            }
        }
        if !refusals.is_empty() {
            return Err(refusals.join("; "));
        }
        self.on_disk(volumes::clear).await?;
        if !kept.0.is_empty() {
            // Of two pods that let go at the same time one must see that the other has.
            kept.let_go();
            let saved = kept.clone();
            self.on_disk(move |directory| saved.save(directory)).await?;
        }
        for (found, driver) in of_drivers(&kept) {
            self.unstage(found, driver).await?;
        }
        self.on_disk(Kept::forget).await?;
        self.context.csi.forget_in_use(&self.uid);
        match extent {
            Extent::Volumes => Ok(()),
            Extent::All => self.on_disk(volumes::tear_down).await,
        }
    }

    async fn on_disk(
        &self,
        work: impl FnOnce(&Path) -> Result<(), volumes::VolumeError> + Send + 'static,
    ) -> Result<(), String> {
        let directory = self.directory.clone();
        let done = tokio::task::spawn_blocking(move || work(&directory)).await;
        let done = done.map_err(|error| error.to_string())?;
        done.map_err(|error| error.to_string())
    }

    /// Unless another pod has it, or is about to.
    async fn unstage(&self, found: &Found, driver: &OfDriver) -> Result<(), String> {
        if driver.is_ephemeral {
            return Ok(());
        }
        let csi = &self.context.csi;
        let _turn = csi.turn(&driver.driver, &driver.handle).await;
        let is_it = |other: &Found| {
            let other = other.driver.as_ref();
            other.is_some_and(|other| {
                (&other.driver, &other.handle) == (&driver.driver, &driver.handle)
            })
        };
        if others_have(&self.context.pods_directory(), &self.uid, is_it) {
            return Ok(());
        }
        let done = csi.unstage(&self.uid, found, driver).await;
        let name = &found.name;
        done.map_err(|error| format!("UnmountDevice failed for volume {name:?} : {error}"))
    }
}
