//! Volumes of drivers, for one pod: attached by a controller, staged, published, and made larger.

use super::super::context::Context;
use super::super::prepare::Failure;
use super::super::state::{self, Retry};
use super::{Claimed, failed, owner};
use crate::csi::{self, Csi, Driver, Lifecycle, Publication, Waited, Wanted};
use crate::error::chain;
use crate::volumes::claims::Used;
use crate::volumes::content::TokenSpec;
use crate::volumes::{Found, Kept, OfDriver, Refusal};
use coracle_api::quantity::Quantity;
use coracle_client::events::{EventType, reference};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use tokio_util::sync::CancellationToken;

type Map = BTreeMap<String, String>;

/// What upstream tells tokens as.
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";
/// Of a token whose life nobody says.
const TOKEN_SECONDS: i64 = 3600;

/// A volume that a driver is to make.
#[derive(Debug)]
pub struct Job {
    /// The pod's own name of it.
    pub volume: String,
    wanted: Wanted,
    driver: Driver,
    claimed: Option<Claimed>,
    context: Map,
    tokens: Map,
}

impl Job {
    pub fn found(&self, csi: &Csi, pod: &Pod, directory: &Path) -> Found {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let wanted = &self.wanted;
        let is_attached = wanted.lifecycle == Lifecycle::Persistent && self.driver.is_attached();
        let volume = self.claimed.as_ref().map(|claimed| &claimed.volume);
        Found {
            name: wanted.name.clone(),
            path: csi.published_place(wanted, directory, uid),
            is_device: wanted.is_block,
            read_only: wanted.read_only,
            group: volume.and_then(crate::volumes::claims::group),
            driver: Some(wanted.of_driver(is_attached)),
            ..Found::default()
        }
    }

    fn refused(&self, refusal: &Refusal) -> Failure {
        failed(refusal.step, &self.wanted.name, &refusal.why)
    }

    /// Bytes, when the volume is larger than its claim knows.
    fn growth(&self) -> Option<(i64, Written)> {
        let claimed = self.claimed.as_ref().filter(|_| !self.wanted.read_only)?;
        growth(&claimed.claim, &claimed.volume)
    }

    fn wait_step(&self) -> &'static str {
        match self.wanted.is_block {
            true => "MapVolume.WaitForAttach failed",
            false => "MountVolume.WaitForAttach failed",
        }
    }
}

/// Those of claims and those that live with the pod; volumes that no container uses need none.
pub async fn jobs(context: &Context, pod: &Pod, claimed: &[Claimed]) -> Result<Vec<Job>, Failure> {
    let of_claims = claimed.iter().filter_map(|claimed| {
        let wanted = Wanted::of_volume(&claimed.volume, claimed.reference.read_only)?;
        let volume = claimed.reference.volume.clone();
        Some((volume, wanted, Some(claimed.clone())))
    });
    let used = Used::by(pod);
    let volumes = state::spec(pod).volumes.iter().flatten();
    let own = volumes.filter(|volume| used.has(&volume.name));
    let own = own.filter_map(|volume| {
        let wanted = Wanted::of_pod(pod, volume)?;
        Some((volume.name.clone(), wanted, None))
    });
    let mut jobs = Vec::new();
    for (volume, wanted, claimed) in of_claims.chain(own) {
        let driver = context.csi.driver(&wanted.driver).await;
        let driver = driver.map_err(|error| failed(super::SET_UP, &wanted.name, &error))?;
        let tokens = tokens(context, pod, &driver).await.map_err(|error| {
            let why = format!(
                "kubernetes.io/csi: mounter.SetUpAt failed to get service accoount token \
                 attributes: {error}"
            );
            failed(super::SET_UP, &wanted.name, &why)
        })?;
        jobs.push(Job {
            volume,
            wanted,
            driver,
            claimed,
            context: Map::new(),
            tokens,
        });
    }
    Ok(jobs)
}

/// What a driver wants of the pod's account, as one attribute.
async fn tokens(context: &Context, pod: &Pod, driver: &Driver) -> Result<Map, String> {
    let mut told = BTreeMap::new();
    for (audience, seconds) in driver.tokens() {
        let spec = TokenSpec {
            audience: audience.clone(),
            seconds: seconds.unwrap_or(TOKEN_SECONDS),
        };
        let now = context.clock.now();
        let (token, ends) = context
            .tokens
            .get_with_end(&context.client, pod, &spec, now)
            .await?;
        let ends = coracle_client::clock::seconds(ends);
        told.insert(
            audience,
            json!({ "token": token, "expirationTimestamp": ends.to_string() }),
        );
    }
    if told.is_empty() {
        return Ok(Map::new());
    }
    Ok(Map::from([(TOKENS.to_owned(), json!(told).to_string())]))
}

fn attached(kept: &Kept, job: &Job) -> Option<OfDriver> {
    let found = kept.0.get(&job.volume)?;
    found.driver.clone().filter(|driver| driver.is_attached)
}

/// Waits until all that is to be attached is, and learns what the driver is told of it.
pub async fn attach(
    context: &Context,
    kept: &Kept,
    jobs: &mut [Job],
    halt: &CancellationToken,
) -> Result<(), Failure> {
    let names: Vec<String> = jobs
        .iter()
        .filter_map(|job| attached(kept, job))
        .map(|driver| driver.unique_name())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    match csi::wait_attached(&context.node, &names, halt).await {
        Waited::Attached => {}
        // Upstream says nothing here either: the controller does.
        Waited::Halted | Waited::TimedOut => return Err(Failure::silent(Retry::Awaited)),
    }
    for job in jobs {
        learn(context, kept, job).await?;
    }
    Ok(())
}

/// What the driver is told of a volume that is attached.
async fn learn(context: &Context, kept: &Kept, job: &mut Job) -> Result<(), Failure> {
    if let Some(driver) = attached(kept, job) {
        let attachment = context.csi.attachment(&driver).await;
        job.context =
            attachment.map_err(|error| failed(job.wait_step(), &job.wanted.name, &error))?;
    }
    Ok(())
}

/// Stages, publishes and makes larger. Under the pod's turn.
pub async fn make(
    context: &Context,
    pod: &Pod,
    directory: &Path,
    job: &Job,
) -> Result<(), Failure> {
    let (csi, wanted) = (&context.csi, &job.wanted);
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let _turn = csi.turn(&wanted.driver, &wanted.handle).await;
    let publication = publication(pod, directory, job, false);
    if wanted.lifecycle == Lifecycle::Persistent {
        let group = publication.owner.map(|owner| owner.group);
        let staged = csi.stage(wanted, uid, group, &job.context).await;
        staged.map_err(|refusal| job.refused(&refusal))?;
    }
    let published = csi.publish(&publication).await;
    published.map_err(|refusal| job.refused(&refusal))?;
    let grown = grow(context, pod, directory, job).await;
    grown.map_err(|why| {
        let step = match wanted.is_block {
            true => "MapVolume.MarkVolumeAsMounted failed while expanding volume",
            false => "MountVolume.Setup failed while expanding volume",
        };
        failed(step, &wanted.name, &why)
    })
}

fn publication<'a>(
    pod: &'a Pod,
    directory: &'a Path,
    job: &'a Job,
    is_again: bool,
) -> Publication<'a> {
    Publication {
        pod,
        pod_directory: directory,
        wanted: &job.wanted,
        driver: &job.driver,
        owner: owner(pod, job.wanted.read_only),
        context: job.context.clone(),
        tokens: job.tokens.clone(),
        is_again,
    }
}

fn growth(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<(i64, Written)> {
    let storage = |list: Option<&BTreeMap<String, Written>>| list?.get("storage").cloned();
    let spec = volume.spec.as_ref()?;
    let has = storage(spec.capacity.as_ref())?;
    let status = claim.status.as_ref();
    let known = storage(status.and_then(|status| status.capacity.as_ref()));
    let bytes = |text: &Written| Quantity::parse(&text.0).ok().map(|it| it.value());
    let known = known.as_ref().and_then(bytes).unwrap_or(0);
    bytes(&has)
        .filter(|bytes| *bytes > known)
        .map(|bytes| (bytes, has))
}

async fn grow(context: &Context, pod: &Pod, directory: &Path, job: &Job) -> Result<(), String> {
    let (Some(claimed), Some((bytes, size))) = (job.claimed.as_ref(), job.growth()) else {
        return Ok(());
    };
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let place = context.csi.published_place(&job.wanted, directory, uid);
    let grown = context.csi.expand(&job.wanted, uid, &place, bytes).await?;
    if !grown {
        return Ok(());
    }
    note_size(context, &claimed.claim, &size).await?;
    let (type_, name) = (EventType::Normal, &job.wanted.name);
    let node = &context.node_name;
    let message = format!("MountVolume.NodeExpandVolume succeeded for volume {name:?} {node}");
    let reason = "FileSystemResizeSuccessful";
    context.event(pod, type_, reason, message.clone());
    let claim = reference(&claimed.claim);
    context.recorder.event(&claim, type_, reason, message);
    Ok(())
}

/// The claim knows of its new size, and waits for nothing more.
async fn note_size(
    context: &Context,
    claim: &PersistentVolumeClaim,
    size: &Written,
) -> Result<(), String> {
    let meta = &claim.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    let status = claim.status.clone().unwrap_or_default();
    let mut conditions = status.conditions.unwrap_or_default();
    conditions.retain(|one| one.type_ != "Resizing" && one.type_ != "FileSystemResizePending");
    let patch = json!({
        "metadata": { "uid": meta.uid },
        "status": {
            "capacity": { "storage": size },
            "conditions": conditions,
            "allocatedResourceStatuses": null,
        },
    });
    let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), namespace);
    let done = api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    done.map(drop).map_err(|error| chain(&error))
}

/// What is done about once a minute for a pod whose volumes were made: those whose drivers want it
/// are published again, and drivers are told of those that have grown. What is not published, or
/// not any more, is left alone.
pub async fn tend(context: &Context, pod: &Pod) -> Vec<Failure> {
    let directory = context.pod_directory(pod);
    let kept = match Kept::load(&directory) {
        Ok(kept) => kept,
        Err(error) => return vec![failed(super::SET_UP, "", &error.to_string())],
    };
    if kept.0.values().all(|found| found.driver.is_none()) {
        return Vec::new();
    }
    let jobs = match grown_or_again(context, pod).await {
        Ok(jobs) => jobs,
        Err(failure) => return vec![failure],
    };
    let mut failures = Vec::new();
    for mut job in jobs {
        if let Some(found) = kept.0.get(&job.volume) {
            let tended = tend_one(context, pod, &kept, found, &mut job).await;
            failures.extend(tended.err());
        }
    }
    failures
}

async fn grown_or_again(context: &Context, pod: &Pod) -> Result<Vec<Job>, Failure> {
    let claimed = super::look_up(context, pod).await?;
    let mut jobs = jobs(context, pod, &claimed).await?;
    jobs.retain(|job| job.driver.is_published_again() || job.growth().is_some());
    Ok(jobs)
}

async fn tend_one(
    context: &Context,
    pod: &Pod,
    kept: &Kept,
    found: &Found,
    job: &mut Job,
) -> Result<(), Failure> {
    let (csi, directory) = (&context.csi, context.pod_directory(pod));
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    if !csi.is_published(uid, &directory, found) {
        return Ok(());
    }
    learn(context, kept, job).await?;
    // Under both turns nobody takes it down, and only now it is known that nobody has.
    let _turn_of_pod = context.volume_writes.hold(uid).await;
    let _turn = csi.turn(&job.wanted.driver, &job.wanted.handle).await;
    if !csi.is_published(uid, &directory, found) {
        return Ok(());
    }
    if job.driver.is_published_again() {
        let again = publication(pod, &directory, job, true);
        let published = csi.publish(&again).await;
        published.map_err(|refusal| job.refused(&refusal))?;
    }
    let grown = grow(context, pod, &directory, job).await;
    grown.map_err(|why| Failure {
        reason: "VolumeResizeFailed",
        ..failed(
            "NodeExpandVolume.NodeExpandVolume failed",
            &job.wanted.name,
            &why,
        )
    })
}

#[cfg(test)]
mod tests;
