//! How long one cycle takes and how much memory the cache does, without an API server.
//!
//! `cargo bench -p coracle-scheduler --bench cycle -- [SHAPE [NODES [PODS]]]`; see docs/scheduler.md.

use coracle_client::clock::Clock;
use coracle_scheduler::cache::{Cache, Snapshot};
use coracle_scheduler::cycle::{self, Outcome, Rotation};
use coracle_scheduler::pod_info::{PodInfo, TraitsTable};
use coracle_scheduler::views::Views;
use made::{node, pod};
use profile::profile;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

#[path = "cycle/counting.rs"]
mod counting;
#[path = "cycle/made.rs"]
mod made;
#[path = "cycle/profile.rs"]
mod profile;

const SHAPES: [&str; 5] = ["plain", "spread", "affinity", "owned", "named"];
/// What is measured unless it is said otherwise: nodes, and pods on them.
const SIZES: [(usize, usize); 2] = [(100, 1_000), (5_000, 10_000)];
/// Cycles that are measured.
const CYCLES: usize = 1_000;

#[allow(clippy::print_stdout)] // The report is for the terminal.
fn main() {
    // `cargo bench` adds an option for its own harness.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<usize>().ok());
    let sizes = match (number(1), number(2)) {
        (Some(nodes), pods) => vec![(nodes, pods.unwrap_or(nodes * 2))],
        _ => SIZES.to_vec(),
    };
    println!(
        "shape      nodes    pods   cycle p50       p99   update p50  a node  its copy   a pod  allocations"
    );
    for shape in SHAPES {
        if words.first().is_none_or(|only| only == shape) {
            for (nodes, pods) in &sizes {
                println!("{}", measure(shape, *nodes, *pods));
            }
        }
    }
}

/// Pods one after the other, each placed where its cycle says, as the loop does it.
fn measure(shape: &str, nodes: usize, pods: usize) -> String {
    let views = Views::default();
    let profile = profile(&views);
    if shape == "owned" {
        let labels = [("app".to_owned(), "bench".to_owned())];
        let key = coracle_client::ObjectKey::new("default", "bench");
        views.owners.services.set(key, labels.into_iter().collect());
    }
    let (mut snapshot, mut rotation) = (Snapshot::default(), Rotation::default());
    let mut cache = views.cache.lock();
    let empty = counting::live();
    for number in 0..nodes {
        cache.set_node(&Arc::new(node(number)));
    }
    let with_nodes = counting::live();
    cache.update(&mut snapshot);
    let with_copies = counting::live();
    let traits = TraitsTable::default();
    fill(&mut cache, &traits, shape, nodes, pods);
    let with_pods = counting::live();
    let (mut cycles, mut updates) = (Vec::new(), Vec::new());
    let (clock, mut allocations) = (Clock::system(), 0);
    for number in pods..pods + CYCLES {
        let pod = Arc::new(pod(shape, number, None));
        let pod = Arc::new(PodInfo::sharing(pod, &traits));
        let (begun, asked) = (clock.monotonic(), counting::asked());
        cache.update(&mut snapshot);
        updates.push(begun.elapsed());
        let begun = clock.monotonic();
        let outcome = cycle::run(&profile, &snapshot, &pod, &mut rotation, |count| {
            number % count
        });
        cycles.push(begun.elapsed());
        allocations += counting::asked() - asked;
        match outcome {
            Outcome::Node(node) => drop(cache.assume(pod, &node)),
            Outcome::NoFit(diagnosis) => panic!("{}", diagnosis.message(&pod)),
            Outcome::Failed(why) => panic!("{why}"),
        }
    }
    let mut line = format!("{shape:<9} {nodes:>6} {pods:>7} ");
    let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
    let columns = [
        micros(part(&mut cycles, 50)),
        micros(part(&mut cycles, 99)),
        micros(part(&mut updates, 50)),
    ];
    let [p50, p99, update] = columns;
    let _ = write!(line, "{p50:>11} {p99:>9} {update:>12}");
    let a_node = (with_nodes - empty) / nodes;
    let its_copy = (with_copies - with_nodes) / nodes;
    let a_pod = (with_pods - with_copies) / pods;
    let each = allocations / CYCLES;
    let _ = write!(
        line,
        " {a_node:>5} B {its_copy:>7} B {a_pod:>5} B {each:>12}"
    );
    line
}

fn fill(cache: &mut Cache, traits: &TraitsTable, shape: &str, nodes: usize, pods: usize) {
    for number in 0..pods {
        let node = format!("node-{:05}", number % nodes);
        let pod = Arc::new(pod(shape, number, Some(&node)));
        cache.set_pod(Arc::new(PodInfo::sharing(pod, traits)));
    }
}

/// A time that this many of a hundred do not pass.
fn part(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}
