//! The groups of pods by class of service, and what of huge pages they may have.
//!
//! Pods without guarantees are put together by class; their groups are kept at the weight that
//! upstream gives them: the burstable at what they ask for together, the others at the least.

use super::context::Context;
use super::{asked, sizes, state};
use crate::runtime::Resources;
use coracle_api::amounts::Amounts;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Upstream's period; what changes is looked at at once.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const CPU_SHARES_MIN: i64 = 2;
const CPU_SHARES_MAX: i64 = 262_144;
const HUGE_PAGES: &str = "hugepages-";

/// Below the runtime's own group.
pub fn of_pod(uid: &str, quality: &str) -> String {
    match quality {
        "Guaranteed" => format!("pod{uid}"),
        other => format!("{}/pod{uid}", other.to_lowercase()),
    }
}

pub fn huge_pages_of_pod(pod: &Pod) -> Vec<(String, u64)> {
    huge_pages(&asked::requests(pod))
}

/// What a container says stands over what its pod says.
pub fn huge_pages_of_container(pod: &Pod, container: &Container) -> Vec<(String, u64)> {
    let limits = |resources: Option<&ResourceRequirements>| {
        let value = serde_json::to_value(resources).unwrap_or_default();
        Amounts::of(&value["limits"])
    };
    let mut all = limits(state::spec(pod).resources.as_ref());
    for (name, amount) in limits(container.resources.as_ref()).iter() {
        all.set(name, amount);
    }
    huge_pages(&all)
}

/// `hugepages-2Mi` is `2MB` in a control group.
fn huge_pages(amounts: &Amounts) -> Vec<(String, u64)> {
    let sizes = amounts.iter().filter_map(|(name, amount)| {
        let size = Quantity::parse(name.strip_prefix(HUGE_PAGES)?).ok()?;
        let bytes = u64::try_from(size.value()).ok()?;
        let written = match bytes {
            _ if bytes >= 1 << 30 => format!("{}GB", bytes >> 30),
            _ if bytes >= 1 << 20 => format!("{}MB", bytes >> 20),
            _ => format!("{}KB", bytes >> 10),
        };
        Some((written, u64::try_from(amount.value()).ok()?))
    });
    sizes.collect()
}

pub async fn keep(
    context: Arc<Context>,
    list: impl Fn() -> Vec<Arc<Pod>>,
    changed: Arc<Notify>,
    stop: CancellationToken,
) {
    loop {
        for (group, resources) in weights(&list()) {
            if let Err(error) = context.runtime.set_group(group, resources).await {
                tracing::warn!(group, %error, "the weight of a control group is not set");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Of the classes that there are pods of.
fn weights(pods: &[Arc<Pod>]) -> Vec<(&'static str, Resources)> {
    let quality = |pod: &Pod| pod.status.as_ref()?.qos_class.clone();
    let of = |class: &str| -> Vec<&Arc<Pod>> {
        let all = pods.iter().filter(|pod| !state::has_ended(pod));
        all.filter(|pod| quality(pod).as_deref() == Some(class))
            .collect()
    };
    let weight = |shares: i64| Resources {
        cpu_shares: shares.clamp(CPU_SHARES_MIN, CPU_SHARES_MAX).cast_unsigned(),
        ..Resources::default()
    };
    let mut weights = Vec::new();
    let burstable = of("Burstable");
    if !burstable.is_empty() {
        let milli = burstable.iter().map(|pod| sizes::requests(pod).cpu_milli);
        let shares = milli.sum::<i64>() * 1024 / 1000;
        weights.push(("burstable", weight(shares)));
    }
    if !of("BestEffort").is_empty() {
        weights.push(("besteffort", weight(CPU_SHARES_MIN)));
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_burstable_weigh_what_they_ask_for() {
        let pod = |class: &str, phase: &str, cpu: &str| -> Arc<Pod> {
            let pod = json!({
                "metadata": {},
                "spec": { "containers": [
                    { "name": "a", "resources": { "requests": { "cpu": cpu } } },
                ] },
                "status": { "qosClass": class, "phase": phase },
            });
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        let told = |pods: &[Arc<Pod>]| -> Vec<(&'static str, u64)> {
            let weights = weights(pods).into_iter();
            weights
                .map(|(group, all)| (group, all.cpu_shares))
                .collect()
        };
        assert_eq!(told(&[pod("Guaranteed", "Running", "1")]), []);
        let pods = [
            pod("Burstable", "Running", "500m"),
            pod("Burstable", "Pending", "1"),
            pod("Burstable", "Failed", "8"),
            pod("BestEffort", "Running", "0"),
        ];
        assert_eq!(told(&pods), [("burstable", 1536), ("besteffort", 2)]);
    }

    #[test]
    fn pods_are_put_together_by_class() {
        assert_eq!(of_pod("u1", "BestEffort"), "besteffort/podu1");
        assert_eq!(of_pod("u1", "Burstable"), "burstable/podu1");
        assert_eq!(of_pod("u1", "Guaranteed"), "podu1");
    }

    #[test]
    fn huge_pages_are_bounded_by_what_was_asked_for() {
        let asked = json!({ "hugepages-2Mi": "64Mi", "memory": "1Gi" });
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {},
            "spec": {
                "containers": [{ "name": "a", "resources": { "requests": asked, "limits": asked } }],
                "resources": { "limits": { "hugepages-1Gi": "1Gi" } },
                "overhead": { "cpu": "1" },
            },
        }))
        .unwrap();
        let small = || ("2MB".to_owned(), 64 << 20);
        assert_eq!(huge_pages_of_pod(&pod), [small()]);
        let container = &state::spec(&pod).containers[0];
        let large = ("1GB".to_owned(), 1 << 30);
        assert_eq!(huge_pages_of_container(&pod, container), [large, small()]);
        assert_eq!(sizes::requests(&pod).cpu_milli, 1000);
    }
}
