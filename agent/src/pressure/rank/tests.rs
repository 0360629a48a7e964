//! A line a pod in, the order of eviction out.

use super::*;
use crate::runtime::Usage;
use crate::usage::pods::ContainerDisk;
use serde_json::json;

/// `NAME PRIORITY REQUEST_MI USED_MI`, or `-` for a pod of which nothing is known.
fn candidates(text: &str) -> Vec<Candidate> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let request = format!("{}Mi", words[2]);
            let pod = json!({
                "metadata": { "name": words[0] },
                "spec": {
                    "priority": words[1].parse::<i32>().unwrap(),
                    "containers": [{
                        "name": "main",
                        "resources": { "requests": {
                            "memory": request, "ephemeral-storage": request,
                        } },
                    }],
                },
            });
            Candidate {
                pod: Arc::new(serde_json::from_value(pod).unwrap()),
                usage: words[3].parse().ok().map(usage),
            }
        })
        .collect()
}

fn usage(used_mib: u64) -> PodUsage {
    let used = DiskUse {
        bytes: used_mib << 20,
        inodes: used_mib,
    };
    PodUsage {
        uid: String::new(),
        usage: Some(Usage {
            memory_working_set_bytes: used_mib << 20,
            process_count: used_mib,
            ..Usage::default()
        }),
        containers: Vec::new(),
        disk: Some(Arc::new(PodDisk {
            containers: vec![ContainerDisk {
                name: "main".into(),
                root: used,
                logs: DiskUse::default(),
            }],
            ..PodDisk::default()
        })),
    }
}

fn order(text: &str, signal: Signal, layout: Layout) -> String {
    let mut all = candidates(text);
    rank(&mut all, signal, layout);
    let names: Vec<_> = all
        .iter()
        .map(|one| one.pod.metadata.name.clone().unwrap())
        .collect();
    names.join(" ")
}

const PODS: &str = "within-low 0 100 50
                    over-high 10 100 500
                    over-low-much 0 100 300
                    over-low-little 0 100 101
                    unknown 10 0 -
                    best-effort 0 0 90";

#[test]
fn over_request_then_priority_then_how_much() {
    let expected = "unknown over-low-much best-effort over-low-little over-high within-low";
    for signal in [Signal::MemoryAvailable, Signal::NodeFsAvailable] {
        assert_eq!(order(PODS, signal, Layout::default()), expected);
    }
}

#[test]
fn processes_go_by_priority_and_number() {
    assert_eq!(
        order(PODS, Signal::PidAvailable, Layout::default()),
        "over-low-much over-low-little best-effort within-low unknown over-high"
    );
}

#[test]
fn only_what_is_on_the_file_system_counts() {
    let images = Layout {
        has_image_fs: true,
        is_split: false,
    };
    // Nothing of these is on the node's own: none is over, priority decides.
    let on_node = order(PODS, Signal::NodeFsAvailable, images);
    assert!(on_node.starts_with("unknown "), "{on_node}");
    assert!(on_node.ends_with(" over-high"), "{on_node}");
    assert_eq!(images.reclaims(Signal::NodeFsAvailable), (false, false));
    assert_eq!(images.reclaims(Signal::ImageFsInodesFree), (true, true));
    let split = Layout {
        is_split: true,
        ..images
    };
    assert_eq!(split.reclaims(Signal::NodeFsAvailable), (true, false));
    assert_eq!(split.reclaims(Signal::ImageFsAvailable), (false, true));
    let one = Layout::default();
    assert_eq!(one.reclaims(Signal::NodeFsInodesFree), (true, true));
    assert_eq!(one.reclaims(Signal::MemoryAvailable), (false, false));
}
