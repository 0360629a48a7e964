//! Which pods nobody will ever end.

use super::*;
use serde_json::json;

fn pod(name: &str, node: &str, phase: &str, deleting: bool) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": { "name": name },
        "spec": { "containers": [], "nodeName": node },
        "status": { "phase": phase },
    });
    if deleting {
        pod["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn node(name: &str, taint: &str) -> Arc<Node> {
    Arc::new(
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "taints": [{ "key": taint, "effect": "NoExecute" }] },
        }))
        .unwrap(),
    )
}

fn shown(plan: &Plan) -> Vec<String> {
    let line = |removal: &Removal| {
        format!(
            "{} {:?}",
            removal.pod.metadata.name.as_deref().unwrap(),
            removal.reason
        )
    };
    plan.removals.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_must_stay_away_before_its_pods_go() {
    let pods = [
        pod("a", "gone", "Running", false),
        pod("b", "here", "Running", false),
    ];
    let nodes = [node("here", "x")];
    let mut missing = HashMap::new();
    let quarantine = Duration::from_secs(40);
    let begun = Instant::now();
    note_missing(&mut missing, &pods, &nodes, begun);
    let first = plan(&pods, &nodes, &missing, begun, quarantine);
    assert!(first.removals.is_empty());
    assert_eq!(first.look_again, Some(quarantine));
    let later = begun + quarantine;
    note_missing(&mut missing, &pods, &nodes, later);
    let second = plan(&pods, &nodes, &missing, later, quarantine);
    assert_eq!(shown(&second), ["a NodeGone"]);
    note_missing(
        &mut missing,
        &pods,
        &[node("gone", "x"), node("here", "x")],
        later,
    );
    assert!(missing.is_empty(), "a node that came back starts anew");
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_that_nobody_runs_go_at_once() {
    let pods = [
        pod("unscheduled", "", "Pending", true),
        pod("waiting", "", "Pending", false),
        pod("stuck", "out", "Running", true),
        pod("alive", "out", "Running", false),
    ];
    let nodes = [node("out", OUT_OF_SERVICE)];
    let plan = plan(
        &pods,
        &nodes,
        &HashMap::new(),
        Instant::now(),
        Duration::ZERO,
    );
    assert_eq!(
        shown(&plan),
        ["unscheduled NeverScheduled", "stuck OutOfService"]
    );
}

#[test]
fn the_oldest_ended_pods_go_when_there_are_too_many() {
    let pods: Vec<_> = (0..ENDED_MAX + 2)
        .map(|n| pod(&format!("p{n:05}"), "n", "Succeeded", false))
        .collect();
    let removals = surplus(&pods);
    assert_eq!(removals.len(), 2);
    assert_eq!(removals[0].pod.metadata.name.as_deref(), Some("p00000"));
}
