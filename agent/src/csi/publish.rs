//! A volume is published for each pod that has it, and unpublished when the pod goes.

use super::messages::{NodePublishVolumeRequest, STAGE_UNSTAGE_VOLUME, VOLUME_MOUNT_GROUP};
use super::node::{Capabilities, Node, is_final};
use super::stage::make_directory;
use super::{Csi, Driver, Refusal, Wanted, data, places, said, secret_name};
use crate::volumes::ownership::{self, Owner};
use crate::volumes::{Found, OfDriver};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

type Map = BTreeMap<String, String>;

/// A volume for a pod.
#[derive(Debug)]
pub struct Publication<'a> {
    pub pod: &'a Pod,
    pub pod_directory: &'a Path,
    pub wanted: &'a Wanted,
    pub driver: &'a Driver,
    pub owner: Option<Owner>,
    /// Of its attachment.
    pub context: Map,
    /// Tokens of the pod's account, by the attribute that they are told as.
    pub tokens: Map,
    /// It is published already, and running containers see it.
    pub is_again: bool,
}

impl Publication<'_> {
    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    fn group(&self) -> Option<u32> {
        self.owner.map(|owner| owner.group)
    }
}

impl Csi {
    /// Where containers will find it.
    pub fn published_place(&self, wanted: &Wanted, pod_directory: &Path, uid: &str) -> PathBuf {
        match wanted.is_block {
            true => places::device(&self.root, &wanted.name, uid).published,
            false => places::published(pod_directory, &wanted.name),
        }
    }

    /// The volume is staged, and the caller holds its turn. An end that nobody knows leaves the
    /// record.
    pub async fn publish(&self, publication: &Publication<'_>) -> Result<(), Refusal> {
        let step = match publication.wanted.is_block {
            true => "MapVolume.MapPodDevice failed",
            false => "MountVolume.SetUp failed",
        };
        let published = self.publish_at(publication).await;
        published.map_err(|why| Refusal { step, why })
    }

    async fn publish_at(&self, publication: &Publication<'_>) -> Result<(), String> {
        let (wanted, driver) = (publication.wanted, publication.driver);
        let (directory, uid) = (publication.pod_directory, publication.uid());
        let (node, has) = self.publisher(wanted, driver).await?;
        let place = self.published_place(wanted, directory, uid);
        let question = self.question(publication, &has, &place).await?;
        let above = place.parent().unwrap_or(&place);
        make_directory(above).map_err(|error| {
            let above = above.display().to_string();
            said(format_args!(
                "mounter.SetUpAt failed to create dir {above:?}:  {error}"
            ))
        })?;
        if !wanted.is_block {
            let mut known = self.known_of(wanted);
            known.insert(data::LIFECYCLE, wanted.lifecycle.name().to_owned());
            let saved = data::save(above, &known);
            saved.map_err(|error| {
                said(format_args!(
                    "mounter.SetUpAt failed to save volume info data: {error}"
                ))
            })?;
        }
        if let Err(status) = node.publish(&question).await {
            if is_final(&status)
                && !publication.is_again
                && !wanted.is_block
                && let Err(error) = data::remove(&place)
            {
                tracing::warn!(%error, volume = wanted.name, "what a volume left stays");
            }
            return Err(status.to_string());
        }
        if has.has(VOLUME_MOUNT_GROUP) || wanted.is_block {
            return Ok(());
        }
        self.give(publication, place).await
    }

    async fn publisher(
        &self,
        wanted: &Wanted,
        driver: &Driver,
    ) -> Result<(Node, Capabilities), String> {
        let node = self.node(&wanted.driver);
        let node = node.map_err(|error| {
            let step = match wanted.is_block {
                true => "blockMapper.MapPodDevice",
                false => "mounter.SetUpAt",
            };
            said(format_args!("{step} failed to get CSI client: {error}"))
        })?;
        driver.check(wanted.lifecycle).map_err(|error| {
            said(format_args!(
                "mounter.SetupAt failed to check volume lifecycle mode: {error}"
            ))
        })?;
        let has = node.capabilities().await;
        let has = has.map_err(|status| {
            said(format_args!(
                "mounter.SetUpAt failed to check for STAGE_UNSTAGE_VOLUME capability: {status}"
            ))
        })?;
        Ok((node, has))
    }

    async fn question(
        &self,
        publication: &Publication<'_>,
        has: &Capabilities,
        place: &Path,
    ) -> Result<NodePublishVolumeRequest, String> {
        let (wanted, driver) = (publication.wanted, publication.driver);
        let secrets = self.secrets(wanted.publish_secret.as_ref()).await;
        let mut secrets = secrets.map_err(|error| {
            let name = secret_name(wanted.publish_secret.as_ref());
            format!("fetching NodePublishSecretRef {name} failed: {error}")
        })?;
        let mut more = driver.pod_attributes(publication.pod, wanted.lifecycle);
        match driver.has_tokens_in_secrets() {
            true => secrets.extend(publication.tokens.clone()),
            false => more.extend(publication.tokens.clone()),
        }
        let is_staged = has.has(STAGE_UNSTAGE_VOLUME) && wanted.access_modes.is_some();
        let staged = match is_staged {
            true => self.shown(&self.staged_place(wanted, publication.uid())),
            false => String::new(),
        };
        Ok(wanted.publish_question(
            has,
            [staged, self.shown(place)],
            publication.group(),
            publication.context.clone(),
            secrets,
            more,
        ))
    }

    async fn give(&self, publication: &Publication<'_>, place: PathBuf) -> Result<(), String> {
        let (wanted, driver) = (publication.wanted, publication.driver);
        let modes = wanted.access_modes.as_deref();
        let Some(owner) = publication.owner else {
            return Ok(());
        };
        if !driver.gives_group(&wanted.fs_type, modes, wanted.read_only) {
            return Ok(());
        }
        let given = tokio::task::spawn_blocking(move || ownership::give(&place, owner)).await;
        let given = given.unwrap_or_else(|error| Err(io::Error::other(error)));
        let handle = &wanted.handle;
        given.map_err(|error| format!("applyFSGroup failed for vol {handle}: {error}"))
    }

    /// Whether a driver was asked for it, and has not undone it.
    pub fn is_published(&self, uid: &str, pod_directory: &Path, found: &Found) -> bool {
        if found.is_device {
            let places = places::device(&self.root, &found.name, uid);
            return fs::symlink_metadata(places.published).is_ok();
        }
        let place = places::published(pod_directory, &found.name);
        data::exists(place.parent().unwrap_or(&place))
    }

    /// May be repeated. Nothing where nothing was asked for. Takes the volume's turn.
    pub async fn unpublish(
        &self,
        uid: &str,
        pod_directory: &Path,
        found: &Found,
        of: &OfDriver,
    ) -> Result<(), String> {
        let _turn = self.turn(&of.driver, &of.handle).await;
        if found.is_device {
            return self.unpublish_device(uid, found, of).await;
        }
        let place = places::published(pod_directory, &found.name);
        if !data::exists(place.parent().unwrap_or(&place)) {
            return Ok(());
        }
        let node = self.node(&of.driver).map_err(|error| {
            said(format_args!(
                "Unmounter.TearDownAt failed to get CSI client: {error}"
            ))
        })?;
        let done = node.unpublish(&of.handle, &self.shown(&place)).await;
        done.map_err(|status| said(format_args!("Unmounter.TearDownAt failed: {status}")))?;
        data::remove(&place).map_err(|error| {
            let place = place.display();
            said(format_args!(
                "Unmounter.TearDownAt failed to clean mount dir [{place}]: {error}"
            ))
        })
    }

    async fn unpublish_device(
        &self,
        uid: &str,
        found: &Found,
        of: &OfDriver,
    ) -> Result<(), String> {
        let places = places::device(&self.root, &found.name, uid);
        if !data::exists(&places.data) {
            return Ok(());
        }
        let node = self.node(&of.driver).map_err(|error| {
            said(format_args!(
                "blockMapper.UnmapPodDevice failed to get CSI client: {error}"
            ))
        })?;
        let shown = self.shown(&places.published);
        let done = node.unpublish(&of.handle, &shown).await;
        done.map_err(|status| {
            said(format_args!(
                "blockMapper.unpublishVolumeForBlock failed: {status}"
            ))
        })?;
        // The driver removes what it made; an empty file may be left.
        match fs::remove_file(&places.published) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let place = places.published.display();
                Err(said(format_args!("failed to remove {place}: {error}")))
            }
            _ => Ok(()),
        }
    }
}
