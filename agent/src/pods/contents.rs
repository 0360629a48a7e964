//! Reads what the volumes of pods are written from, and keeps volumes of running pods up to date.

use super::context::Context;
use super::environment::Sources;
use super::mount;
use super::state;
use crate::error::chain;
use crate::families::Families;
use crate::volumes;
use crate::volumes::content::{self, Contents};
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Api;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Between two looks at what volumes were written from, as the kubelet's.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What one pass has read, by namespace and name, so that pods with the same one share it.
#[derive(Debug, Default)]
pub struct Read {
    config_maps: BTreeMap<(String, String), Option<ConfigMap>>,
    secrets: BTreeMap<(String, String), Option<Secret>>,
}

/// Everything that the pod's volumes need. What is not there is left to the volume, which may do
/// without; an error is of the connection or of rights.
pub async fn gather(context: &Context, pod: &Pod, read: &mut Read) -> Result<Contents, String> {
    let needs = content::needs(pod);
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let mut contents = Contents {
        objects: Sources {
            pod_ips: Families::default(),
            host_ips: context.host.all(),
            allocatable_cpu_milli: context.cpu_milli,
            allocatable_memory_bytes: context.memory_bytes,
            ..Sources::default()
        },
        tokens: BTreeMap::new(),
    };
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    for name in needs.config_maps {
        let key = (namespace.clone(), name.clone());
        if !read.config_maps.contains_key(&key) {
            let found = maps.get_opt(&name).await.map_err(|error| chain(&error))?;
            read.config_maps.insert(key.clone(), found);
        }
        let found = read.config_maps.get(&key).cloned().flatten();
        contents.objects.config_maps.insert(name, found);
    }
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
    for name in needs.secrets {
        let key = (namespace.clone(), name.clone());
        if !read.secrets.contains_key(&key) {
            let found = secrets
                .get_opt(&name)
                .await
                .map_err(|error| chain(&error))?;
            read.secrets.insert(key.clone(), found);
        }
        let found = read.secrets.get(&key).cloned().flatten();
        contents.objects.secrets.insert(name, found);
    }
    for spec in needs.tokens {
        let now = context.clock.now();
        let token = context.tokens.get(&context.client, pod, &spec, now).await?;
        contents.tokens.insert(spec, token);
    }
    Ok(contents)
}

/// Looks after the volumes of the pods that `list` shows, until the stop. What waits for drivers
/// and disks is a task of its own for each pod: a slow one holds up no other pod.
pub async fn keep_fresh(
    context: Arc<Context>,
    list: impl Fn() -> Vec<Arc<Pod>> + Send,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let mut rounds = Rounds::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let pods = list();
        let uids: HashSet<String> = pods
            .iter()
            .filter_map(|pod| pod.metadata.uid.clone())
            .collect();
        context.tokens.retain(&uids);
        let mut read = Read::default();
        for pod in pods {
            if stop.is_cancelled() {
                return;
            }
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if !has_volumes(&context, &pod) || rounds.is_on(&uid) {
                continue;
            }
            let gathered = match content::has_any(&pod) {
                true => Some(gather(&context, &pod, &mut read).await),
                false => None,
            };
            let round = look_after(context.clone(), pod, gathered);
            rounds.begin(&tasks, uid, round);
        }
    }
}

/// What is being done for pods, by uid: one task a pod at a time.
#[derive(Debug, Default)]
struct Rounds(HashMap<String, JoinHandle<()>>);

impl Rounds {
    /// The pod's last round has not ended.
    fn is_on(&mut self, uid: &str) -> bool {
        self.0.retain(|_, round| !round.is_finished());
        self.0.contains_key(uid)
    }

    fn begin(
        &mut self,
        tasks: &TaskTracker,
        uid: String,
        round: impl Future<Output = ()> + Send + 'static,
    ) {
        self.0.insert(uid, tasks.spawn(round));
    }
}

/// `gathered` is None for a pod with nothing that is written from objects.
async fn look_after(
    context: Arc<Context>,
    pod: Arc<Pod>,
    gathered: Option<Result<Contents, String>>,
) {
    if let Some(gathered) = gathered {
        let freshened = freshen(&context, &pod, gathered).await;
        // What volumes are written from may go before the pod does, as its namespace ends.
        if let Err(message) = freshened
            && has_volumes(&context, &pod)
        {
            context.event(&pod, EventType::Warning, "FailedMount", message);
        }
    }
    for failure in mount::drivers::tend(&context, &pod).await {
        if has_volumes(&context, &pod) && !failure.message.is_empty() {
            context.event(&pod, EventType::Warning, failure.reason, failure.message);
        }
    }
}

/// Those of a pod that has not ended were made.
fn has_volumes(context: &Context, pod: &Pod) -> bool {
    !state::has_ended(pod)
        && pod.metadata.deletion_timestamp.is_none()
        && context.pod_directory(pod).join(volumes::VOLUMES).is_dir()
}

async fn freshen(
    context: &Context,
    pod: &Arc<Pod>,
    contents: Result<Contents, String>,
) -> Result<(), String> {
    let failed =
        |volume: &str, why: &str| format!("MountVolume.SetUp failed for volume {volume:?} : {why}");
    let unread = |error: &str| failed(first_volume(pod), error);
    let contents = contents.map_err(|error| unread(&error))?;
    let directory = context.pod_directory(pod);
    let now = context.clock.now();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let of = pod.clone();
    let write = move || volumes::freshen(&directory, &of, &contents, now);
    let written = context.volume_writes.run(uid, write).await;
    written
        .map_err(|error| unread(&error.to_string()))?
        .map_err(|(volume, error)| failed(&volume, &error.to_string()))
}

/// The volume to name when what all of them need cannot be read.
pub fn first_volume(pod: &Pod) -> &str {
    let mut volumes = state::spec(pod).volumes.iter().flatten();
    let volume = volumes.find(|volume| content::plugin(volume).is_some());
    volume.map_or("", |volume| &volume.name)
}

#[cfg(test)]
mod tests;
