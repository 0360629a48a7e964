//! What upstream's scheduler says of a pod in its log. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Levels at which it tells scores, victims and where volumes are held, and little else.
pub const LOG_LEVELS: [&str; 2] = [
    "-v=2",
    "--vmodule=schedule_one=10,default_preemption=5,preemption=5,executor=5,binder=5",
];

const SCORED: &str = "Plugin scored node for pod";
const SUMMED: &str = "Calculated node's final score for pod";
/// With volumes, which may be waited for.
const HELD: &str = "AssumePodVolumes";
const BOUND: &str = "Successfully bound pod to node";

/// One line of the log, as message and values.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub message: String,
    pub values: BTreeMap<String, String>,
}

impl Line {
    /// None for what is no structured line.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("] \"")?;
        let (message, mut rest) = unquoted(rest);
        let mut values = BTreeMap::new();
        while let Some((key, after)) = rest.trim_start().split_once('=') {
            let (value, left) = match after.strip_prefix('"') {
                Some(quoted) => unquoted(quoted),
                None => {
                    let end = after.find(' ').unwrap_or(after.len());
                    (after[..end].to_owned(), &after[end..])
                }
            };
            values.insert(key.to_owned(), value);
            rest = left;
        }
        Some(Self { message, values })
    }

    fn value(&self, key: &str) -> String {
        self.values.get(key).cloned().unwrap_or_default()
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.values.get(key)?.parse().ok()
    }
}

/// The rest begins after the closing quote.
fn unquoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (out, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, other)) => out.push(other),
                None => {}
            },
            _ => out.push(char),
        }
    }
    (out, "")
}

/// What it made of one pod, as far as the log went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The weighted sums, where more than one node fits.
    pub totals: BTreeMap<String, i64>,
    /// A node and a plugin, weighted.
    pub parts: BTreeMap<String, BTreeMap<String, i64>>,
    pub chosen: Option<String>,
    /// Why none fits.
    pub refusal: Option<String>,
    pub preempts_on: Option<String>,
    pub victims: BTreeSet<String>,
    evictions_ended: bool,
    /// Whether anything was left to be asked to go.
    evictions_began: bool,
}

impl Decision {
    /// Takes in a line; those of other pods are not for it.
    pub fn hear(&mut self, pod: &str, line: &Line) {
        let about = line.value("pod");
        let by = line.value("preemptor");
        if about != pod && by != pod {
            return;
        }
        let is_of_next_try = [SCORED, SUMMED, HELD, BOUND].contains(&line.message.as_str());
        if self.refusal.is_some() && is_of_next_try {
            return;
        }
        let node = line.value("node");
        match line.message.as_str() {
            SCORED => {
                let score = line.number("score").unwrap_or_default();
                let parts = self.parts.entry(node).or_default();
                parts.insert(line.value("plugin"), score);
            }
            SUMMED => {
                self.totals
                    .insert(node, line.number("score").unwrap_or_default());
            }
            HELD | BOUND => self.chosen = Some(node),
            "Unable to schedule pod; no fit; waiting" => self.refusal = Some(line.value("err")),
            "Unable to schedule pod; no nodes are registered to the cluster; waiting" => {
                self.refusal = Some("no nodes available to schedule pods".to_owned());
            }
            "the target node for the preemption is determined" => self.preempts_on = Some(node),
            "Start the preemption asynchronously" => self.evictions_began = true,
            "Preemptor Pod preempted victim Pod"
            | "Victim Pod is already being deleted, skipping the API call for it" => {
                self.victims.insert(line.value("victim"));
            }
            "Async Preemption finished completely" => self.evictions_ended = true,
            _ => {}
        }
    }

    pub fn is_complete(&self) -> bool {
        let evicts = self.preempts_on.is_some() && !self.evictions_ended;
        self.chosen.is_some() || (self.refusal.is_some() && !evicts)
    }

    /// Of the victims some go already; whether there are others is told later, or never.
    pub fn may_be_complete(&self) -> bool {
        self.refusal.is_some() && !self.victims.is_empty() && !self.evictions_began
    }

    /// The nodes that it could have taken.
    pub fn fitting(&self) -> BTreeSet<&str> {
        let scored = self.totals.keys();
        scored.chain(&self.chosen).map(String::as_str).collect()
    }
}

#[test]
fn a_line_is_a_message_and_values() {
    let text = r#"I1130 22:39:01.1  7 schedule_one.go:1239] "Unable to schedule pod; no fit; waiting" pod="d1/p" err="0/1 nodes: \"x\"" score=-3"#;
    let line = Line::parse(text).expect("a line");
    assert_eq!(line.message, "Unable to schedule pod; no fit; waiting");
    assert_eq!(line.value("err"), "0/1 nodes: \"x\"");
    assert_eq!(line.number("score"), Some(-3));
    assert_eq!(Line::parse("a stack trace"), None);
    let mut decision = Decision::default();
    decision.hear("d1/other", &line);
    assert!(!decision.is_complete());
    decision.hear("d1/p", &line);
    assert!(decision.is_complete());
}
