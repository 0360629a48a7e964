//! `coracle scheduler explain`: why this node, and why not the others.

use crate::cli::ExplainArgs;
use crate::{Failure, runtime, show};
use anyhow::Context;
use coracle_client::connect;
use coracle_scheduler::explain::{Explanation, NodeVerdict, Verdict};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Everything that the scheduler watches is read once; on a slow link that takes a while.
const READ_MAX: Duration = Duration::from_secs(60);

pub fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let path = Path::new(&args.kubeconfig);
    let loaded = connect::kubeconfig::load(path, None)
        .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?;
    let told = runtime()?.block_on(async {
        let client = connect::client(&loaded.endpoint);
        let told = coracle_scheduler::explain_pod(client, &args.namespace, &args.pod);
        let told = tokio::time::timeout(READ_MAX, told).await;
        told.context("the API server did not answer within a minute")?
            .map_err(anyhow::Error::from)
    })?;
    let node = told.node.as_deref();
    show::line(&match args.json {
        true => json_of(&told.explanation, node).to_string(),
        false => text(&told.explanation, node),
    });
    Ok(())
}

fn json_of(told: &Explanation, node: Option<&str>) -> Value {
    let nodes = told.nodes.iter().map(|one| match &one.verdict {
        Verdict::Fits(scores) => {
            let parts = scores
                .iter()
                .map(|one| json!({"plugin": one.plugin, "weight": one.weight, "score": one.score}));
            let parts: Vec<_> = parts.collect();
            json!({"node": one.node, "fits": true, "score": one.total(), "scores": parts})
        }
        Verdict::Refused(refusals) => {
            let parts = refusals
                .iter()
                .map(|(plugin, texts)| json!({"plugin": plugin, "reasons": texts}));
            let parts: Vec<_> = parts.collect();
            json!({"node": one.node, "fits": false, "refusedBy": parts})
        }
    });
    json!({
        "nodeName": node,
        "gatedBy": told.gated_by,
        "nodes": nodes.collect::<Vec<_>>(),
        "best": told.best(),
        "message": told.message,
        "preempts": told.preempts.as_ref().map(|plan| {
            json!({"node": plan.node, "victims": plan.victims})
        }),
    })
}

/// `node` is where the pod is already.
fn text(told: &Explanation, node: Option<&str>) -> String {
    let mut text = String::new();
    if !told.nodes.is_empty() {
        let rows: Vec<_> = told.nodes.iter().map(row).collect();
        text = show::columns(&["NODE", "FITS", "SCORE", "WHY"], &rows);
        text.push_str("\n\n");
    }
    text.push_str(&outcome(told, node));
    text
}

fn row(one: &NodeVerdict) -> Vec<String> {
    let (fits, why) = match &one.verdict {
        Verdict::Fits(scores) => {
            let parts = scores
                .iter()
                .map(|one| format!("{} {}x{}", one.plugin, one.weight, one.score));
            ("yes", parts.collect::<Vec<_>>().join(", "))
        }
        Verdict::Refused(refusals) => {
            let parts = refusals
                .iter()
                .map(|(plugin, texts)| format!("{plugin}: {}", texts.join(", ")));
            ("no", parts.collect::<Vec<_>>().join("; "))
        }
    };
    let total = one.total().map(|total| total.to_string());
    let total = total.unwrap_or_default();
    vec![one.node.clone(), fits.to_owned(), total, why]
}

fn outcome(told: &Explanation, node: Option<&str>) -> String {
    let best = told.best();
    let chosen = match best.as_slice() {
        [] => nowhere(told),
        [one] => format!("The best is {one}."),
        many => format!("The best are {}: chance decides.", many.join(", ")),
    };
    match (node, told.gated_by) {
        (Some(node), _) => format!("The pod is on {node}. Were it to be placed now: {chosen}"),
        (None, Some(plugin)) => {
            format!("{plugin} keeps the pod out of the queue. Without that: {chosen}")
        }
        (None, None) => chosen,
    }
}

fn nowhere(told: &Explanation) -> String {
    let mut text = told.message.clone().unwrap_or_default();
    if let Some(plan) = &told.preempts {
        let victims = plan.victims.join(", ");
        text.push_str(&format!(
            " To make room on {}, these would have to go: {victims}.",
            plan.node
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_scheduler::explain::{Preempts, Score};
    use expect_test::expect;

    const NOWHERE: &str = "0/1 nodes are available: 1 Insufficient cpu.";

    #[test]
    fn a_table_says_who_refuses_and_what_counts() {
        let score = |plugin, weight, score| Score {
            plugin,
            weight,
            score,
        };
        let node = |name: &str, verdict| NodeVerdict {
            node: name.to_owned(),
            verdict,
        };
        let refused = vec![
            ("NodeResourcesFit", vec!["Insufficient cpu".to_owned()]),
            (
                "NodeUnschedulable",
                vec!["node(s) were unschedulable".to_owned()],
            ),
        ];
        let fits = |points| {
            Verdict::Fits(vec![
                score("TaintToleration", 3, 100),
                score("ImageLocality", 1, points),
            ])
        };
        let mut told = Explanation {
            nodes: vec![
                node("a", fits(7)),
                node("b", fits(7)),
                node("far", Verdict::Refused(refused)),
            ],
            ..Explanation::default()
        };
        expect![[r#"
            NODE   FITS   SCORE   WHY
            a      yes    307     TaintToleration 3x100, ImageLocality 1x7
            b      yes    307     TaintToleration 3x100, ImageLocality 1x7
            far    no             NodeResourcesFit: Insufficient cpu; NodeUnschedulable: node(s) were unschedulable

            The best are a, b: chance decides."#]]
        .assert_eq(&text(&told, None));
        told.nodes.remove(1);
        let last = |told: &Explanation, node| text(told, node).lines().last().unwrap().to_owned();
        expect!["The pod is on far. Were it to be placed now: The best is a."]
            .assert_eq(&last(&told, Some("far")));
        told.gated_by = Some("SchedulingGates");
        told.nodes.remove(0);
        told.message = Some(NOWHERE.to_owned());
        expect!["SchedulingGates keeps the pod out of the queue. Without that: 0/1 nodes are available: 1 Insufficient cpu."]
            .assert_eq(&last(&told, None));
        let json = json_of(&told, None);
        assert_eq!(
            json["nodes"][0]["refusedBy"][0]["reasons"][0],
            "Insufficient cpu"
        );
        assert_eq!(
            (&json["message"], &json["nodeName"]),
            (&NOWHERE.into(), &Value::Null)
        );
        told.preempts = Some(Preempts {
            node: "far".to_owned(),
            victims: vec!["default/low".to_owned()],
        });
        expect!["SchedulingGates keeps the pod out of the queue. Without that: 0/1 nodes are available: 1 Insufficient cpu. To make room on far, these would have to go: default/low."]
            .assert_eq(&last(&told, None));
        assert_eq!(json_of(&told, None)["preempts"]["node"], "far");
    }
}
