//! Where volumes of drivers are on a node: the kubelet's places. Pure.

use crate::volumes::VOLUMES;
use ring::digest::{SHA256, digest};
use std::path::{Path, PathBuf};

const POD_PLUGIN: &str = "kubernetes.io~csi";
const PLUGIN: &str = "plugins/kubernetes.io/csi";
const DEVICES: &str = "volumeDevices";

fn hash(text: &str) -> String {
    hex::encode(digest(&SHA256, text.as_bytes()))
}

/// Of the VolumeAttachment of a volume and a node.
pub fn attachment(handle: &str, driver: &str, node: &str) -> String {
    format!("csi-{}", hash(&format!("{handle}{driver}{node}")))
}

/// Of a volume that is made with its pod.
pub fn ephemeral_handle(uid: &str, volume: &str) -> String {
    format!("csi-{}", hash(&format!("{uid}{volume}")))
}

/// Where a volume is mounted for all pods of the node.
pub fn staged(root: &Path, driver: &str, handle: &str) -> PathBuf {
    let directory = root.join(PLUGIN).join(driver).join(hash(handle));
    directory.join("globalmount")
}

/// All places of a pod's volumes; each has its data beside what is mounted.
pub fn published_all(pod_directory: &Path) -> PathBuf {
    pod_directory.join(VOLUMES).join(POD_PLUGIN)
}

pub fn published(pod_directory: &Path, name: &str) -> PathBuf {
    published_all(pod_directory).join(name).join("mount")
}

/// The same of a volume that is a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DevicePlaces {
    pub staged: PathBuf,
    pub published: PathBuf,
    /// With what was asked for in it.
    pub data: PathBuf,
}

pub fn device(root: &Path, name: &str, uid: &str) -> DevicePlaces {
    let all = root.join(PLUGIN).join(DEVICES);
    DevicePlaces {
        staged: all.join("staging").join(name),
        published: all.join("publish").join(name).join(uid),
        data: all.join(name).join("data"),
    }
}

#[cfg(test)]
mod tests;
