//! Makes a pod's volumes: what they are written from and what claims stand for is read, then all
//! of them are made, in one go that nothing breaks off.

pub mod drivers; // Those that others make.

use super::contents;
use super::context::Context;
use super::prepare::Failure;
use super::state::{self, Retry};
use crate::error::chain;
use crate::volumes::claims::{self, Reference};
use crate::volumes::content::Contents;
use crate::volumes::kept::{self, Found, Kept};
use crate::volumes::local;
use crate::volumes::ownership::Owner;
use crate::volumes::{self, VolumeError};
use coracle_client::events::EventType;
use drivers::Job;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const REASON: &str = "FailedMount";
pub const SET_UP: &str = "MountVolume.SetUp failed";

/// As upstream's events tell of one volume.
pub fn failed(step: &str, volume: &str, why: &str) -> Failure {
    let reason = match step.starts_with("MapVolume") {
        true => "FailedMapVolume",
        false => REASON,
    };
    Failure::new(reason, format!("{step} for volume {volume:?} : {why}"))
}

/// As upstream's events tell of volumes that are not even known: names, and why.
pub fn unknown(volumes: &[(String, String)]) -> Failure {
    let names: Vec<&str> = volumes.iter().map(|(name, _)| name.as_str()).collect();
    let whys: Vec<&str> = volumes.iter().map(|(_, why)| why.as_str()).collect();
    let (names, whys) = (names.join(" "), whys.join("; "));
    let message = format!(
        "Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], \
         failed to process volumes=[{names}]: {whys}"
    );
    Failure {
        retry: Retry::Awaited,
        ..Failure::new(REASON, message)
    }
}

/// May be repeated. Waits for volumes to be attached until `halt`.
pub async fn mount(
    context: &Arc<Context>,
    pod: &Arc<Pod>,
    halt: &CancellationToken,
) -> Result<(), Failure> {
    let first = contents::first_volume(pod);
    let gathered = contents::gather(context, pod, &mut contents::Read::default()).await;
    let gathered = gathered.map_err(|error| failed(SET_UP, first, &error))?;
    let claimed = look_up(context, pod).await?;
    let jobs = drivers::jobs(context, pod, &claimed).await?;
    let mut work = Work {
        context: context.clone(),
        pod: pod.clone(),
        claimed,
        jobs,
        gathered,
    };
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let kept = work.plan()?;
    let turn = context.volume_writes.hold(uid).await;
    work.keep(&kept).await?;
    drop(turn);
    drivers::attach(context, &kept, &mut work.jobs, halt).await?;
    let turn = context.volume_writes.hold(uid).await;
    // Goes to its end when this task is aborted, and whoever takes the pod down waits for it.
    let work = tokio::spawn(async move {
        let _turn = turn;
        work.run(kept).await
    });
    let done = work.await;
    done.unwrap_or_else(|error| Err(failed(SET_UP, first, &error.to_string())))
}

/// A claim of the pod and its volume.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub reference: Reference,
    pub claim: PersistentVolumeClaim,
    pub volume: PersistentVolume,
}

impl Claimed {
    pub fn volume_name(&self) -> &str {
        self.volume.metadata.name.as_deref().unwrap_or_default()
    }

    fn wanted<'a>(&'a self, context: &'a Context) -> local::Wanted<'a> {
        local::Wanted {
            made_here: context.local_path.all.as_deref(),
            volume: &self.volume,
            read_only: self.reference.read_only,
            is_block: claims::is_block(&self.volume),
        }
    }
}

async fn look_up(context: &Context, pod: &Pod) -> Result<Vec<Claimed>, Failure> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for reference in claims::references(pod) {
        let volume = reference.volume.clone();
        match claimed(context, pod, reference).await {
            Ok(claimed) => found.push(claimed),
            Err(why) => missing.push((volume, why)),
        }
    }
    match missing.as_slice() {
        [] => Ok(found),
        missing => Err(unknown(missing)),
    }
}

/// Reads a claim and its volume, and sees whether the pod may have them.
pub async fn claimed(
    context: &Context,
    pod: &Pod,
    reference: Reference,
) -> Result<Claimed, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = &reference.claim;
    let unread = |what: &str, error: &dyn std::error::Error| {
        let error = chain(error);
        format!(
            "error processing PVC {namespace}/{name}: failed to fetch {what} from API server: {error}"
        )
    };
    let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), namespace);
    let claim = api.get_opt(name).await;
    let claim = claim.map_err(|error| unread("PVC", &error))?;
    let bound = claims::bound(pod, &reference, claim.as_ref())?.to_owned();
    let api: Api<PersistentVolume> = Api::all(context.client.clone());
    let volume = api.get_opt(&bound).await;
    let volume = volume.map_err(|error| unread(&format!("PV {bound}"), &error))?;
    let claim = claim.unwrap_or_default();
    claims::check_volume(pod, &reference, &claim, &bound, volume.as_ref())?;
    Ok(Claimed {
        reference,
        claim,
        volume: volume.unwrap_or_default(),
    })
}

/// What is made for one pod.
struct Work {
    context: Arc<Context>,
    pod: Arc<Pod>,
    claimed: Vec<Claimed>,
    jobs: Vec<Job>,
    gathered: Contents,
}

impl Work {
    fn directory(&self) -> PathBuf {
        self.context.pod_directory(&self.pod)
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    async fn run(self, kept: Kept) -> Result<(), Failure> {
        let directory = self.directory();
        for job in &self.jobs {
            drivers::make(&self.context, &self.pod, &directory, job).await?;
        }
        let first = contents::first_volume(&self.pod).to_owned();
        let work = tokio::task::spawn_blocking(move || self.make(&kept));
        let done = work.await;
        done.unwrap_or_else(|error| Err(failed(SET_UP, &first, &error.to_string())))
    }

    /// Where each claimed volume will be.
    fn plan(&self) -> Result<Kept, Failure> {
        let (mut kept, mut missing) = (BTreeMap::new(), Vec::new());
        for job in &self.jobs {
            let found = job.found(&self.context.csi, &self.pod, &self.directory());
            kept.insert(job.volume.clone(), found);
        }
        for claimed in &self.claimed {
            let volume = &claimed.reference.volume;
            if kept.contains_key(volume) {
                continue;
            }
            match local::plan(&self.directory(), claimed.wanted(&self.context)) {
                Some(found) => {
                    let group = claims::group(&claimed.volume);
                    kept.insert(volume.clone(), Found { group, ..found });
                }
                None => {
                    let name = claimed.volume_name();
                    let why = format!(
                        "failed to get Plugin from volumeSpec for volume {name:?} err=no volume \
                         plugin matched"
                    );
                    missing.push((volume.clone(), why));
                }
            }
        }
        if !missing.is_empty() {
            return Err(unknown(&missing));
        }
        let kept = Kept(kept);
        match kept.collision() {
            None => Ok(kept),
            Some(name) => {
                let why = "two volumes of the pod have this name, one of a claim and one of the \
                           pod's own: rename the pod's";
                Err(failed(SET_UP, name, why))
            }
        }
    }

    /// From here on other pods see that this one has the volumes.
    async fn keep(&self, kept: &Kept) -> Result<(), Failure> {
        if kept.0.is_empty() {
            return Ok(());
        }
        // Two pods that want the same volume must not both find it free.
        let _turn = self.context.volume_writes.hold("claims.json").await;
        for claimed in &self.claimed {
            let name = claimed.volume_name();
            if claims::is_for_one_pod(&claimed.volume) && self.others_have(name) {
                let step = match claims::is_block(&claimed.volume) {
                    true => "MapVolume.SetUpDevice failed",
                    false => SET_UP,
                };
                let why = "volume uses the ReadWriteOncePod access mode and is already in use by \
                           another pod";
                return Err(failed(step, name, why));
            }
        }
        let saved = kept.save(&self.directory());
        saved.map_err(|error| {
            let name = self.claimed.first().map_or("", Claimed::volume_name);
            failed(SET_UP, name, &error.to_string())
        })?;
        self.context.csi.note_in_use(self.uid(), kept);
        Ok(())
    }

    fn others_have(&self, name: &str) -> bool {
        let pods = self.context.pods_directory();
        kept::others_have(&pods, self.uid(), |found| found.is_of(name))
    }

    fn make(&self, kept: &Kept) -> Result<(), Failure> {
        for claimed in &self.claimed {
            let found = kept.0.get(&claimed.reference.volume);
            let Some(found) = found.filter(|found| found.driver.is_none()) else {
                continue;
            };
            let owner = self.owner(claimed);
            let made = local::set_up(claimed.wanted(&self.context), found, owner);
            made.map_err(|refusal| failed(refusal.step, &found.name, &refusal.why))?;
        }
        let now = self.context.clock.now();
        let made = volumes::set_up(&self.directory(), &self.pod, &self.gathered, now);
        made.map_err(|(volume, error): (String, VolumeError)| {
            failed(SET_UP, &volume, &error.to_string())
        })
    }

    /// The first pod that has a volume gives it to its group.
    fn owner(&self, claimed: &Claimed) -> Option<Owner> {
        let owner = owner(&self.pod, claimed.reference.read_only)?;
        let local = claimed.volume.spec.as_ref()?.local.as_ref()?;
        if claimed.reference.read_only {
            return None;
        }
        if !self.others_have(claimed.volume_name()) {
            return Some(owner);
        }
        let has = fs::metadata(&local.path).ok()?.gid();
        if has != owner.group {
            let name = claimed.volume_name();
            let message = format!(
                "The requested fsGroup is {}, but the volume {name} has GID {has}. The volume may \
                 not be shareable.",
                owner.group
            );
            let type_ = EventType::Warning;
            self.context
                .event(&self.pod, type_, "AlreadyMountedVolume", message);
        }
        None
    }
}

/// As the pod says: the group of its volumes.
pub fn owner(pod: &Pod, read_only: bool) -> Option<Owner> {
    let context = state::spec(pod).security_context.as_ref()?;
    let group = u32::try_from(context.fs_group?).ok()?;
    let policy = context.fs_group_change_policy.as_deref();
    Some(Owner {
        group,
        read_only,
        root_says_all: policy == Some("OnRootMismatch"),
    })
}

#[cfg(test)]
mod tests;
