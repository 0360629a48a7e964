//! How long one event of a watch takes to decode and to drop, whole and as informers read it.
//!
//! `cargo bench -p coracle-client --bench decode`; see docs/scheduler.md.

use coracle_client::clock::Clock;
use coracle_client::informer::Lean;
use k8s_openapi::api::core::v1::Pod;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use std::hint::black_box;
use std::time::Duration;

/// A Deployment's pod that fits nowhere, as the server shows it.
const POD: &str = include_str!("decode/pod.json");
const ROUNDS: usize = 201;
const EVENTS: u32 = 200;

#[allow(clippy::print_stdout)] // The report is for the terminal.
fn main() {
    let event = format!(r#"{{"type":"MODIFIED","object":{}}}"#, POD.trim());
    let (mut whole, mut lean) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        whole.push(round::<Pod>(&event));
        lean.push(round::<Lean<Pod>>(&event));
    }
    for (name, mut times) in [("whole", whole), ("lean", lean)] {
        times.sort();
        println!(
            "{name:5} {:?} an event of {} bytes",
            times[ROUNDS / 2],
            event.len()
        );
    }
}

fn round<K: DeserializeOwned>(event: &str) -> Duration {
    let clock = Clock::system();
    let begun = clock.monotonic();
    for _ in 0..EVENTS {
        let decoded: WatchEvent<K> =
            serde_json::from_str(black_box(event)).expect("it is an event");
        drop(black_box(decoded));
    }
    clock.monotonic().duration_since(begun) / EVENTS
}
