//! A volume is staged once on a node, for all pods that have it, and unstaged after the last one.
//!
//! The caller holds the volume's turn.

use super::messages::STAGE_UNSTAGE_VOLUME;
use super::node::{Capabilities, Node, is_final};
use super::places::{self, DevicePlaces};
use super::{Csi, Refusal, Wanted, data, said, secret_name};
use crate::atomic_file;
use crate::volumes::{Found, OfDriver};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tokio::sync::OwnedMutexGuard;

const MODE: u32 = 0o750;

pub fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(MODE).create(path)
}

impl Csi {
    pub async fn turn(&self, driver: &str, handle: &str) -> OwnedMutexGuard<()> {
        self.turns.hold(&format!("{driver}^{handle}")).await
    }

    /// Where the volume is staged, for all questions but those of a driver that does not stage.
    pub fn staged_place(&self, wanted: &Wanted, uid: &str) -> PathBuf {
        match wanted.is_block {
            true => places::device(&self.root, &wanted.name, uid).staged,
            false => places::staged(&self.root, &wanted.driver, &wanted.handle),
        }
    }

    /// Nothing when this process did it already. An end that nobody knows leaves the record.
    pub async fn stage(
        &self,
        wanted: &Wanted,
        uid: &str,
        group: Option<u32>,
        context: &BTreeMap<String, String>,
    ) -> Result<(), Refusal> {
        let place = self.staged_place(wanted, uid);
        if self.staged.lock().contains(&place) {
            return Ok(());
        }
        let step = match wanted.is_block {
            true => "MapVolume.SetUpDevice failed",
            false => "MountVolume.MountDevice failed",
        };
        let staged = self.stage_at(wanted, uid, &place, group, context).await;
        staged.map_err(|why| Refusal { step, why })?;
        self.staged.lock().insert(place);
        Ok(())
    }

    async fn stage_at(
        &self,
        wanted: &Wanted,
        uid: &str,
        place: &Path,
        group: Option<u32>,
        context: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let (node, has) = self.stager(wanted).await?;
        let devices = places::device(&self.root, &wanted.name, uid);
        if wanted.is_block {
            self.record_device(wanted, &devices)?;
        }
        if !has.has(STAGE_UNSTAGE_VOLUME) {
            return Ok(());
        }
        let secrets = self.secrets(wanted.stage_secret.as_ref()).await;
        let secrets = secrets.map_err(|error| {
            let name = secret_name(wanted.stage_secret.as_ref());
            match wanted.is_block {
                true => said(format_args!(
                    "failed to get NodeStageSecretRef {name}: {error}"
                )),
                false => format!("fetching NodeStageSecretRef {name} failed: {error}"),
            }
        })?;
        make_directory(place).map_err(|error| {
            said(format_args!(
                "attacher.MountDevice failed to create dir {:?}:  {error}",
                place.display().to_string()
            ))
        })?;
        if !wanted.is_block {
            self.record(wanted, place)?;
        }
        let shown = self.shown(place);
        let question = wanted.stage_question(&has, shown, group, context.clone(), secrets);
        let Err(status) = node.stage(&question).await else {
            return Ok(());
        };
        if is_final(&status) {
            let removed = match wanted.is_block {
                true => remove_device(&devices),
                false => data::remove(place),
            };
            if let Err(error) = removed {
                tracing::warn!(%error, volume = wanted.name, "what a volume left is not removed");
            }
        }
        Err(status.to_string())
    }

    async fn stager(&self, wanted: &Wanted) -> Result<(Node, Capabilities), String> {
        let node = self
            .node(&wanted.driver)
            .map_err(|error| match wanted.is_block {
                true => said(format_args!(
                    "blockMapper.SetUpDevice failed to get CSI client: {error}"
                )),
                false => said(format_args!(
                    "attacher.MountDevice failed to create newCsiDriverClient: {error}"
                )),
            })?;
        let has = node.capabilities().await;
        let has = has.map_err(|status| match wanted.is_block {
            true => said(format_args!(
                "blockMapper.stageVolumeForBlock failed to check STAGE_UNSTAGE_VOLUME capability: \
                 {status}"
            )),
            false => status.to_string(),
        })?;
        Ok((node, has))
    }

    /// From here on somebody will unstage it.
    fn record(&self, wanted: &Wanted, place: &Path) -> Result<(), String> {
        let known = data::Data::from([
            (data::HANDLE, wanted.handle.clone()),
            (data::DRIVER, wanted.driver.clone()),
        ]);
        let directory = place.parent().unwrap_or(place);
        data::save(directory, &known)
            .map_err(|error| said(format_args!("failed to save volume info data: {error}")))
    }

    fn record_device(&self, wanted: &Wanted, places: &DevicePlaces) -> Result<(), String> {
        let made = make_directory(&places.data);
        made.and_then(|()| data::save(&places.data, &self.known_of(wanted)))
            .map_err(|error| {
                said(format_args!(
                    "csi.NewBlockVolumeMapper failed to save volume info data: {error}"
                ))
            })
    }

    /// What is kept of a volume of one pod, or of a device.
    pub fn known_of(&self, wanted: &Wanted) -> data::Data {
        let attachment = places::attachment(&wanted.handle, &wanted.driver, &self.node_name);
        data::Data::from([
            (data::SPEC_VOLUME, wanted.name.clone()),
            (data::HANDLE, wanted.handle.clone()),
            (data::DRIVER, wanted.driver.clone()),
            (data::NODE, self.node_name.clone()),
            (data::ATTACHMENT, attachment),
        ])
    }

    /// No pod has it any more. May be repeated.
    pub async fn unstage(&self, uid: &str, found: &Found, of: &OfDriver) -> Result<(), String> {
        let devices = places::device(&self.root, &found.name, uid);
        let place = match found.is_device {
            true => devices.staged.clone(),
            false => places::staged(&self.root, &of.driver, &of.handle),
        };
        let record = match found.is_device {
            true => devices.data.as_path(),
            false => place.parent().unwrap_or(&place),
        };
        self.staged.lock().remove(&place);
        if !data::exists(record) {
            return Ok(());
        }
        let step = match found.is_device {
            true => "blockMapper.TearDownDevice",
            false => "attacher.UnmountDevice",
        };
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            said(format_args!("{step} failed{what}: {error}"))
        };
        let node = self.node(&of.driver);
        let node = node.map_err(|error| failed(" to create newCsiDriverClient", &error))?;
        let has = node
            .capabilities()
            .await
            .map_err(|status| failed(" to check whether STAGE_UNSTAGE_VOLUME set", &status))?;
        if has.has(STAGE_UNSTAGE_VOLUME) {
            let done = node.unstage(&of.handle, &self.shown(&place)).await;
            done.map_err(|status| failed("", &status))?;
        }
        let removed = match found.is_device {
            true => remove_device(&devices),
            false => data::remove(&place),
        };
        removed.map_err(|error| {
            let place = place.display();
            said(format_args!(
                "failed to clean up global mount {place}: {error}"
            ))
        })
    }
}

/// Only what is empty goes.
pub fn remove_device(places: &DevicePlaces) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    if let Some(publish) = places.published.parent() {
        gone(fs::remove_dir(publish))?;
    }
    gone(fs::remove_dir(&places.staged))?;
    atomic_file::remove(&places.data.join(data::FILE))?;
    gone(fs::remove_dir(&places.data))?;
    match places.data.parent() {
        Some(volume) => gone(fs::remove_dir(volume)),
        None => Ok(()),
    }
}
