//! What to attach to a node, what to detach from it, and what it may be told is attached. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{AttachedVolume, Node, PersistentVolume, Pod};
use k8s_openapi::api::storage::v1::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ring::digest::{SHA256, digest};

use crate::nodes;

/// Upstream's: a node that is not ready has lost what it has not let go of by then.
const FORCED_AFTER: Duration = Duration::from_secs(6 * 60);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// A volume of a driver that has volumes attached.
#[derive(Clone, Debug)]
pub(super) struct Attachable {
    pub volume: Arc<PersistentVolume>,
    pub driver: String,
    pub handle: String,
}

impl Attachable {
    pub(super) fn of(volume: &Arc<PersistentVolume>) -> Option<Self> {
        let csi = volume.spec.as_ref()?.csi.as_ref()?;
        Some(Self {
            volume: Arc::clone(volume),
            driver: csi.driver.clone(),
            handle: csi.volume_handle.clone(),
        })
    }

    pub(super) fn name(&self) -> &str {
        self.volume.metadata.name.as_deref().unwrap_or_default()
    }

    /// Upstream's, under which nodes know it.
    fn unique_name(&self) -> String {
        format!("kubernetes.io/csi/{}^{}", self.driver, self.handle)
    }

    /// Upstream's name of the attachment, the node's too.
    pub(super) fn attachment(&self, node: &str) -> String {
        let text = format!("{}{}{node}", self.handle, self.driver);
        let hash = digest(&SHA256, text.as_bytes());
        let hex = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
        format!("csi-{}", hex.collect::<String>())
    }

    /// It may be on several nodes at a time.
    pub(super) fn is_shared(&self) -> bool {
        let spec = self.volume.spec.as_ref();
        let mut modes = spec
            .into_iter()
            .flat_map(|s| s.access_modes.iter().flatten());
        modes.any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany")
    }
}

/// A volume that pods of the node use.
#[derive(Debug)]
pub(super) struct Wanted {
    pub volume: Attachable,
    pub pods: Vec<Arc<Pod>>,
    /// Nodes that it is attached to besides this one, or is still to be detached from.
    pub elsewhere: BTreeSet<String>,
    /// Pods that use it there.
    pub users: Vec<Arc<Pod>>,
}

/// All that concerns one node.
#[derive(Debug, Default)]
pub(super) struct View {
    pub name: String,
    pub node: Option<Arc<Node>>,
    pub wanted: Vec<Wanted>,
    /// Of this node, of volumes that are known.
    pub attachments: Vec<Arc<VolumeAttachment>>,
    /// The volume of each attachment, by the attachment's name.
    pub volumes: BTreeMap<String, Attachable>,
    /// How long nobody has wanted an attachment, by its name.
    pub unwanted_for: BTreeMap<String, Duration>,
}

#[derive(Debug)]
pub(super) struct Detach {
    pub attachment: Arc<VolumeAttachment>,
    pub unique_name: String,
    /// Whatever the node says.
    pub is_forced: bool,
}

impl Detach {
    pub(super) fn name(&self) -> &str {
        name(&self.attachment)
    }
}

#[derive(Debug)]
pub(super) struct Told {
    pub pod: Arc<Pod>,
    pub message: String,
}

/// The list of the node is written first, then what goes is detached, then what comes attached.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// `None` when it is as it should be.
    pub attached: Option<Vec<AttachedVolume>>,
    pub detach: Vec<Detach>,
    pub attach: Vec<VolumeAttachment>,
    /// What failed.
    pub told: Vec<Told>,
    /// What is attached now; told once it is on the list, so that nobody hears it twice.
    pub told_attached: Vec<Told>,
    /// Names of the attachments that no pod uses.
    pub unwanted: BTreeSet<String>,
    pub again: Option<Duration>,
}

pub(super) fn plan(view: &View) -> Plan {
    let mut plan = Plan::default();
    let wanted: BTreeMap<String, &Wanted> = view
        .wanted
        .iter()
        .map(|one| (one.volume.attachment(&view.name), one))
        .collect();
    let there: BTreeSet<&str> = view.attachments.iter().map(|one| name(one)).collect();
    for (name, one) in &wanted {
        if !there.contains(name.as_str()) {
            attach(&mut plan, view, name, one);
        }
    }
    let noted = view.node.as_deref().map(noted);
    let mut attached = Vec::new();
    for attachment in &view.attachments {
        let Some(volume) = view.volumes.get(name(attachment)) else {
            continue;
        };
        let wanted = wanted.get(name(attachment)).copied();
        if let (Some(wanted), Some(error)) = (wanted, attach_error(attachment)) {
            let name = volume.name();
            let text = format!("AttachVolume.Attach failed for volume {name:?} : {error}");
            tell(&mut plan.told, &wanted.pods, |_| text.clone());
        }
        let stays = wanted.is_some() || !detach(&mut plan, view, attachment, volume);
        let is_going = attachment.metadata.deletion_timestamp.is_some();
        if !stays || is_going || !is_attached(attachment) {
            continue;
        }
        let entry = AttachedVolume {
            name: volume.unique_name(),
            device_path: String::new(),
        };
        let is_news = noted.as_ref().is_some_and(|noted| !noted.contains(&entry));
        if let Some(wanted) = wanted.filter(|_| is_news) {
            // The space at the end is upstream's.
            let text = format!(
                "AttachVolume.Attach succeeded for volume {:?} ",
                volume.name()
            );
            tell(&mut plan.told_attached, &wanted.pods, |_| text.clone());
        }
        attached.push(entry);
    }
    attached.sort_by(|a, b| a.name.cmp(&b.name));
    plan.attached = noted.and_then(|noted| (noted != attached).then_some(attached));
    plan
}

/// What the node is told is attached, in order.
fn noted(node: &Node) -> Vec<AttachedVolume> {
    let status = node.status.iter();
    let mut noted: Vec<AttachedVolume> = status
        .flat_map(|status| status.volumes_attached.iter().flatten())
        .cloned()
        .collect();
    noted.sort_by(|a, b| a.name.cmp(&b.name));
    noted
}

fn attach(plan: &mut Plan, view: &View, name: &str, wanted: &Wanted) {
    let volume = &wanted.volume;
    if !volume.is_shared() && !wanted.elsewhere.is_empty() {
        tell(&mut plan.told, &wanted.pods, |pod| {
            let why = taken(pod, &wanted.users);
            format!("Multi-Attach error for volume {:?} {why}", volume.name())
        });
        return;
    }
    plan.attach.push(VolumeAttachment {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: VolumeAttachmentSpec {
            attacher: volume.driver.clone(),
            node_name: view.name.clone(),
            source: VolumeAttachmentSource {
                persistent_volume_name: Some(volume.name().to_owned()),
                inline_volume_spec: None,
            },
        },
        status: None,
    });
}

/// Upstream's words; names of pods of other namespaces are not told.
fn taken(pod: &Pod, users: &[Arc<Pod>]) -> String {
    let own = |user: &&Arc<Pod>| user.metadata.namespace == pod.metadata.namespace;
    let names = users.iter().filter(own);
    let names: Vec<&str> = names
        .filter_map(|user| user.metadata.name.as_deref())
        .collect();
    let others = users.len() - names.len();
    match (names.is_empty(), others) {
        (true, 0) => "Volume is already exclusively attached to one node and can't be attached \
                      to another"
            .to_owned(),
        (true, others) => {
            format!("Volume is already used by {others} pod(s) in different namespaces")
        }
        (false, 0) => format!("Volume is already used by pod(s) {}", names.join(", ")),
        (false, others) => format!(
            "Volume is already used by pod(s) {} and {others} pod(s) in different namespaces",
            names.join(", ")
        ),
    }
}

/// Whether what no pod uses is to go now.
fn detach(
    plan: &mut Plan,
    view: &View,
    attachment: &Arc<VolumeAttachment>,
    volume: &Attachable,
) -> bool {
    let name = name(attachment);
    plan.unwanted.insert(name.to_owned());
    let unique_name = volume.unique_name();
    let node = view.node.as_deref();
    let status = node.and_then(|node| node.status.as_ref());
    let mut in_use = status
        .into_iter()
        .flat_map(|s| s.volumes_in_use.iter().flatten());
    let is_in_use = match node {
        Some(_) => in_use.any(|one| *one == unique_name),
        None => true, // Nobody says that it has let go.
    };
    let waited = view.unwanted_for.get(name).copied().unwrap_or_default();
    let is_lost = !node.is_some_and(nodes::is_ready) && waited >= FORCED_AFTER;
    let is_forced = is_lost || node.is_some_and(is_out_of_service);
    if is_in_use && !is_forced {
        if !node.is_some_and(nodes::is_ready) {
            let left = FORCED_AFTER.saturating_sub(waited);
            plan.again = Some(plan.again.map_or(left, |again| again.min(left)));
        }
        return false;
    }
    if attachment.metadata.deletion_timestamp.is_none() {
        plan.detach.push(Detach {
            attachment: Arc::clone(attachment),
            unique_name,
            is_forced,
        });
    }
    true
}

fn tell(told: &mut Vec<Told>, pods: &[Arc<Pod>], message: impl Fn(&Pod) -> String) {
    told.extend(pods.iter().map(|pod| Told {
        pod: Arc::clone(pod),
        message: message(pod),
    }));
}

fn is_out_of_service(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let mut taints = spec
        .into_iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == OUT_OF_SERVICE)
}

fn name(attachment: &VolumeAttachment) -> &str {
    attachment.metadata.name.as_deref().unwrap_or_default()
}

fn is_attached(attachment: &VolumeAttachment) -> bool {
    attachment
        .status
        .as_ref()
        .is_some_and(|status| status.attached)
}

fn attach_error(attachment: &VolumeAttachment) -> Option<&str> {
    let status = attachment
        .status
        .as_ref()
        .filter(|status| !status.attached)?;
    status.attach_error.as_ref()?.message.as_deref()
}
