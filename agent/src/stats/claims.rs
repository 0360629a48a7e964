//! What `/metrics` says of claimed volumes, each once however many pods use it.

use super::storage;
use super::summary::{ClaimReference, FsStats};
use crate::pods::{Context, Pods};
use coracle_api::exposition::{Text, go_number};
use std::collections::BTreeMap;

type Number = fn(&FsStats) -> Option<u64>;

const FAMILIES: [(&str, &str, Number); 6] = [
    (
        "kubelet_volume_stats_available_bytes",
        "Number of available bytes in the volume",
        |fs| fs.available_bytes,
    ),
    (
        "kubelet_volume_stats_capacity_bytes",
        "Capacity in bytes of the volume",
        |fs| fs.capacity_bytes,
    ),
    (
        "kubelet_volume_stats_inodes",
        "Maximum number of inodes in the volume",
        |fs| fs.inodes,
    ),
    (
        "kubelet_volume_stats_inodes_free",
        "Number of free inodes in the volume",
        |fs| fs.inodes_free,
    ),
    (
        "kubelet_volume_stats_inodes_used",
        "Number of used inodes in the volume",
        |fs| fs.inodes_used,
    ),
    (
        "kubelet_volume_stats_used_bytes",
        "Number of used bytes in the volume",
        |fs| fs.used_bytes,
    ),
];

pub fn text(text: &mut Text, context: &Context, pods: &Pods) {
    let now = context.clock.now();
    let mut claims: BTreeMap<(String, String), FsStats> = BTreeMap::new();
    for pod in pods.list() {
        let directory = context.pod_directory(&pod);
        for (claim, path) in storage::claims(&directory, &pod) {
            let ClaimReference { name, namespace } = claim;
            if let Some(fs) = storage::file_system(&path, now) {
                claims.insert((namespace, name), fs);
            }
        }
    }
    if claims.is_empty() {
        return;
    }
    for (name, help, number) in FAMILIES {
        text.family(name, "gauge", &format!("[ALPHA] {help}"));
        for ((namespace, claim), fs) in &claims {
            if let Some(value) = number(fs) {
                let labels = [
                    ("namespace", namespace.as_str()),
                    ("persistentvolumeclaim", claim),
                ];
                text.sample(name, &labels, go_number(value as f64));
            }
        }
    }
}
