//! What a pod is let do in one direction, from the policies of its namespace. Pure.
//!
//! Pods that may do the same have equal contents, and share a chain of the kernel.

use super::labels::Selector;
use super::record::{Direction, Key, Namespaces, Number, Peers, Pod, PodPeer, Policy, Port, Rule};
use crate::network::nft::Range;
use crate::network::view::Protocol;
use std::sync::Arc;

/// What passes; all else is dropped.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Content {
    pub direction: Direction,
    pub allows: Box<[Allow]>,
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Allow {
    /// That lets it pass, for those who read the rules.
    pub policy: Key,
    pub who: Who,
    /// Empty: all.
    pub spans: Box<[Span]>,
}

/// Who is at the other end.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Who {
    Everyone,
    Pods(Arc<Group>),
    Blocks(Arc<[Range]>),
}

/// Pods, whose addresses come and go without a change of any rule.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Group {
    pub peers: Box<[PodPeer]>,
    /// Only their ports of this name.
    pub port: Option<(Protocol, Box<str>)>,
}

/// Ports of one protocol, the last one too.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Span {
    pub protocol: Protocol,
    pub first: u16,
    pub last: u16,
}

/// `policies` are those of the pod's namespace. None: nothing isolates the pod.
pub fn plan<'a>(
    policies: impl Iterator<Item = (&'a Key, &'a Policy)>,
    pod: &Pod,
    direction: Direction,
) -> Option<Content> {
    let mut is_isolated = false;
    let mut allows = Vec::new();
    for (key, policy) in policies {
        let Some(rules) = policy.rules(direction) else {
            continue;
        };
        if !policy.pods.has(&pod.labels) {
            continue;
        }
        is_isolated = true;
        for rule in rules {
            add(key, rule, pod, direction, &mut allows);
        }
    }
    allows.sort();
    allows.dedup();
    is_isolated.then(|| Content {
        direction,
        allows: allows.into(),
    })
}

fn add(key: &Key, rule: &Rule, pod: &Pod, direction: Direction, allows: &mut Vec<Allow>) {
    let ports = rule.ports.as_deref();
    let spans = match ports {
        None => Some(Box::default()),
        Some(ports) => {
            let spans = spans(ports, pod, direction);
            (!spans.is_empty()).then_some(spans)
        }
    };
    let mut allow = |who: Who, spans: &[Span]| {
        allows.push(Allow {
            policy: key.clone(),
            who,
            spans: spans.into(),
        });
    };
    if let Some(spans) = &spans {
        match &rule.peers {
            Peers::Everyone => allow(Who::Everyone, spans),
            Peers::Some { pods, blocks } => {
                if !pods.is_empty() {
                    let group = Group {
                        peers: pods.clone(),
                        port: None,
                    };
                    allow(Who::Pods(Arc::new(group)), spans);
                }
                if !blocks.is_empty() {
                    allow(Who::Blocks(blocks.clone().into()), spans);
                }
            }
        }
    }
    if direction == Direction::Ingress {
        return;
    }
    // Which number a name has is for the pod at the other end to say. A block is no pod.
    let peers = match &rule.peers {
        Peers::Everyone => every_pod(),
        Peers::Some { pods, .. } => pods.clone(),
    };
    for port in ports.unwrap_or_default() {
        let (Number::Named(name), false) = (&port.number, peers.is_empty()) else {
            continue;
        };
        let group = Group {
            peers: peers.clone(),
            port: Some((port.protocol, name.clone())),
        };
        allow(Who::Pods(Arc::new(group)), &[]);
    }
}

fn every_pod() -> Box<[PodPeer]> {
    Box::new([PodPeer {
        namespaces: Namespaces::Selected(Selector::default()),
        pods: Selector::default(),
    }])
}

/// By number, as far as that is known of this pod's rules. None of them touch.
fn spans(ports: &[Port], pod: &Pod, direction: Direction) -> Box<[Span]> {
    let mut all: Vec<Span> = Vec::new();
    for port in ports {
        let span = |first, last| Span {
            protocol: port.protocol,
            first,
            last,
        };
        match &port.number {
            Number::Any => all.push(span(0, u16::MAX)),
            Number::Between(first, last) if first <= last => all.push(span(*first, *last)),
            Number::Between(..) => {}
            Number::Named(name) if direction == Direction::Ingress => {
                let numbers = pod.named(port.protocol, name);
                all.extend(numbers.map(|number| span(number, number)));
            }
            Number::Named(_) => {}
        }
    }
    all.sort();
    let mut merged: Vec<Span> = Vec::with_capacity(all.len());
    for span in all {
        match merged.last_mut() {
            Some(last)
                if last.protocol == span.protocol && span.first <= last.last.saturating_add(1) =>
            {
                last.last = last.last.max(span.last);
            }
            _ => merged.push(span),
        }
    }
    merged.into()
}

#[cfg(test)]
mod tests;
