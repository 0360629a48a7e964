//! Holds all pods together to what of the node is for them.
//!
//! Pods that use more at that moment make the kernel refuse; then it is tried again every minute,
//! as upstream does, until eviction has brought them below.

use super::allocatable::{self, CPU, MEMORY, PROCESSES};
use super::facts::Facts;
use crate::Config;
use crate::pods::Context;
use crate::runtime::Resources;
use coracle_api::amounts::Amounts;
use coracle_api::quantity::{Format, Quantity};
use coracle_client::events::EventType;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const RETRY: Duration = Duration::from_secs(60);

pub async fn limit_pods(
    context: Arc<Context>,
    config: Config,
    facts: Facts,
    stop: CancellationToken,
) {
    let mut capacity = allocatable::capacity(&facts, &config.resources);
    if facts.process_ids_max > 0 {
        let ids = Quantity::from_units(facts.process_ids_max, Format::DecimalSi);
        capacity.set(PROCESSES, ids);
    }
    let limits = limits(&allocatable::less_reserved(&capacity, &config.resources));
    let node = super::reference(&config.node_name);
    let recorder = &context.recorder;
    loop {
        match context.runtime.limit_total(limits.clone()).await {
            Ok(()) => {
                let message = "Updated Node Allocatable limit across pods";
                recorder.event(&node, EventType::Normal, "NodeAllocatableEnforced", message);
                return;
            }
            Err(error) => {
                let message = format!("Failed to update Node Allocatable Limits: {error}");
                let reason = "FailedNodeAllocatableEnforcement";
                recorder.event(&node, EventType::Warning, reason, message);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

fn limits(left: &Amounts) -> Resources {
    let amount = |name: &str| left.get(name).unwrap_or(Quantity::ZERO);
    Resources {
        cpu_shares: crate::pods::cpu_shares(amount(CPU).milli_value()),
        memory_limit_bytes: amount(MEMORY).value(),
        pids_limit: amount(PROCESSES).value(),
        ..Resources::default()
    }
}
