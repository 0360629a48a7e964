//! Which CSI driver attaches which volumes of a pod.

use crate::pod_info::{Driven, PodInfo, of_volume, provisioner_driver};
use crate::volumes::Volumes;
use coracle_client::ObjectKey;
use coracle_client::volumes::{class_of_claim, volume_name};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

/// Volumes of a pod whose claims are known; each once.
pub fn volumes(pod: &PodInfo, known: &Volumes) -> Vec<Driven> {
    let mut found = Vec::new();
    for claim in pod.claims.iter() {
        let key = ObjectKey::new(pod.key.namespace.as_str(), claim.name.as_str());
        let driven = known
            .claim(&key)
            .and_then(|claim| of_claim(&key, claim, known));
        found.extend(driven);
    }
    found.extend(pod.driven.iter().cloned());
    let mut seen = Vec::new();
    found.retain(|one| {
        let is_new = !seen.contains(one);
        seen.push(one.clone());
        is_new
    });
    found
}

fn of_claim(key: &ObjectKey, claim: &PersistentVolumeClaim, known: &Volumes) -> Option<Driven> {
    if let Some(volume) = known.volume(volume_name(claim)) {
        return of_volume(volume);
    }
    // Nobody has made it yet: it will be the class's driver that attaches it.
    let class = known.class(class_of_claim(claim))?;
    let driver = provisioner_driver(&class.provisioner).unwrap_or(&class.provisioner);
    Some(Driven::new(driver, &format!("claim {key}")))
}
