//! Against a kernel of the tests' own, as strict as the real one: what is added is not there yet,
//! what is deleted is, and nothing leads to a chain that is not there.

use super::super::fixtures::{entry, ip, node, slice};
use super::super::plan::plan;
use super::super::steps::{Chain, Element, ListId, Rule, Step, Target, Value};
use super::{Changes, State};
use crate::network::view::{Entry, Key};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[derive(Clone, Debug, Default, PartialEq)]
struct Kernel {
    chains: BTreeMap<Chain, Vec<Rule>>,
    elements: BTreeMap<Element, Value>,
    targets: BTreeMap<(ListId, u32), Target>,
    members: BTreeSet<(ListId, Target)>,
}

fn leads_to(rule: &Rule) -> Option<&Chain> {
    match rule {
        Rule::Goto(chain) | Rule::GotoIfFrom(_, chain) | Rule::GotoIfLocal(chain) => Some(chain),
        _ => None,
    }
}

impl Kernel {
    fn take(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
        self.check();
    }

    fn step(&mut self, step: &Step) {
        let expect = |holds: bool| assert!(holds, "{step:?}");
        match step {
            Step::AddChain(chain) => {
                self.chains.entry(chain.clone()).or_default();
            }
            Step::SetRules(chain, rules) => {
                let ways = rules.iter().filter_map(leads_to);
                expect(ways.into_iter().all(|to| self.chains.contains_key(to)));
                let held = self.chains.get_mut(chain);
                *held.unwrap_or_else(|| panic!("{step:?}")) = rules.clone();
            }
            Step::DeleteChain(chain) => {
                expect(self.chains.remove(chain) == Some(Vec::new()));
                let ways = self.chains.values().flatten().filter_map(leads_to);
                expect(!ways.into_iter().any(|to| to == chain));
                expect(
                    !self
                        .elements
                        .values()
                        .any(|value| *value == Value::Goto(chain.clone())),
                );
            }
            Step::Add(element, value) => {
                if let Value::Goto(chain) = value {
                    expect(self.chains.contains_key(chain));
                }
                expect(self.elements.insert(*element, value.clone()).is_none());
            }
            Step::Delete(element, value) => {
                expect(self.elements.remove(element).as_ref() == Some(value));
            }
            Step::AddTarget {
                list,
                place,
                target,
            } => {
                expect(self.targets.insert((*list, *place), *target).is_none());
            }
            Step::DeleteTarget {
                list,
                place,
                target,
            } => {
                expect(self.targets.remove(&(*list, *place)) == Some(*target));
            }
            Step::AddMember(list, target) => expect(self.members.insert((*list, *target))),
            Step::DeleteMember(list, target) => expect(self.members.remove(&(*list, *target))),
        }
    }

    /// A chain counts on as many targets as there are.
    fn check(&self) {
        let mut counted = 0;
        for rule in self.chains.values().flatten() {
            if let Rule::Balance(balance) = rule {
                let of = self
                    .targets
                    .range((balance.list, 0)..=(balance.list, u32::MAX));
                let places: Vec<_> = of.map(|((_, place), _)| *place).collect();
                assert!(
                    places.iter().copied().eq(0..balance.count),
                    "{balance:?} {places:?}"
                );
                counted += places.len();
            }
        }
        assert_eq!(
            counted,
            self.targets.len(),
            "a target that no chain counts on"
        );
    }

    /// Without what places are, and without empty chains.
    fn shape(&self) -> String {
        let mut text = String::new();
        let chains = self.chains.iter().filter(|(_, rules)| !rules.is_empty());
        for (chain, rules) in chains {
            writeln!(text, "{chain} {rules:?}").unwrap();
        }
        let lists: BTreeSet<_> = self
            .targets
            .iter()
            .map(|((list, _), target)| (list, target))
            .collect();
        writeln!(text, "{:?} {lists:?} {:?}", self.elements, self.members).unwrap();
        text
    }
}

fn update(state: &mut State, kernel: &mut Kernel, now: &[(&Key, &Entry)]) -> Vec<Step> {
    let mut changes = Changes::default();
    for (key, entry) in now {
        state.update(key, plan(key, entry, &node()), &mut changes);
    }
    let steps = state.steps(changes);
    kernel.take(&steps);
    steps
}

fn chain_at(kernel: &Kernel, address: &str) -> Option<Chain> {
    let mut elements = kernel.elements.iter();
    elements.find_map(|(element, value)| match (element, value) {
        (Element::Frontend(of), Value::Goto(chain)) if of.address == ip(address) => {
            Some(chain.clone())
        }
        _ => None,
    })
}

/// What is stale is deleted by the second.
fn sweep(state: &mut State, kernel: &mut Kernel) {
    for _ in 0..2 {
        kernel.take(&state.sweep());
    }
    assert!(!state.has_stale());
}

fn many(count: u8, port: &str) -> String {
    let all = (1..=count).map(|number| format!("10.42.{}.{number} there\n", port.len()));
    all.collect()
}

#[test]
fn a_change_costs_what_changed() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let key: Key = "default/web".into();
    let of = |count| {
        entry(
            "ip=10.43.0.1 ports=http/tcp/80/30080",
            &[slice("http/tcp/8080", &many(count, ""))],
        )
    };
    update(&mut state, &mut kernel, &[(&key, &of(200))]);
    for number in 0..100u32 {
        let other = format!("default/other-{number}").into();
        let ip = format!("ip=10.43.1.{number} ports=http/tcp/80");
        let other_entry = entry(&ip, &[slice("http/tcp/8080", &many(3, ""))]);
        update(&mut state, &mut kernel, &[(&other, &other_entry)]);
    }
    let same = update(&mut state, &mut kernel, &[(&key, &of(200))]);
    assert_eq!(same, []);
    // The target, and the rule that counts them.
    let more = update(&mut state, &mut kernel, &[(&key, &of(201))]);
    assert_eq!(more.len(), 3, "{more:?}");
    let fewer = update(&mut state, &mut kernel, &[(&key, &of(200))]);
    assert_eq!(fewer.len(), 3, "{fewer:?}");
    let moved = entry(
        "ip=10.43.0.2 ports=http/tcp/80/30080",
        &[slice("http/tcp/8080", &many(200, ""))],
    );
    let moved = update(&mut state, &mut kernel, &[(&key, &moved)]);
    assert_eq!(moved.len(), 4, "{moved:?}");
}

#[test]
fn a_service_that_goes_leaves_nothing() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let key: Key = "default/web".into();
    let text = "ip=10.43.0.1,fd43::1 ports=http/tcp/80/30080 balancer=5.6.7.8 ranges=10.0.0.0/8 \
                external-local affinity=60";
    let slices = [
        slice("http/tcp/8080", "10.42.0.5 here\n10.42.0.6 there"),
        slice("http/tcp/8080", "fd42::5 here"),
    ];
    update(&mut state, &mut kernel, &[(&key, &entry(text, &slices))]);
    assert!(kernel.chains.len() >= 6, "{:?}", kernel.chains.keys());
    update(&mut state, &mut kernel, &[(&key, &Entry::default())]);
    assert!(state.has_stale());
    sweep(&mut state, &mut kernel);
    assert_eq!(kernel, Kernel::default());
    assert!(!state.has_stale() && state.keys().next().is_none());
}

#[test]
fn a_chain_that_comes_back_is_not_swept() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let key: Key = "default/web".into();
    let full = entry(
        "ip=10.43.0.1 ports=http/tcp/80",
        &[slice("http/tcp/8080", "10.42.0.5")],
    );
    update(&mut state, &mut kernel, &[(&key, &full)]);
    let before = kernel.shape();
    update(
        &mut state,
        &mut kernel,
        &[(&key, &entry("ip=10.43.0.1 ports=http/tcp/80", &[]))],
    );
    update(&mut state, &mut kernel, &[(&key, &full)]);
    sweep(&mut state, &mut kernel);
    assert_eq!(kernel.shape(), before);
}

#[test]
fn the_first_by_name_has_an_address_that_two_claim() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let (a, b): (Key, Key) = ("default/a".into(), "default/b".into());
    let slices = [slice("http/tcp/8080", "10.42.0.5")];
    let of = |ip: &str| {
        entry(
            &format!("ip={ip} ports=http/tcp/80 external=1.2.3.4"),
            &slices,
        )
    };
    update(&mut state, &mut kernel, &[(&b, &of("10.43.0.2"))]);
    let owner = |kernel: &Kernel| {
        let chain = chain_at(kernel, "1.2.3.4");
        chain.unwrap_or_else(|| "none".into())
    };
    assert!(owner(&kernel).contains("default/b"));
    update(&mut state, &mut kernel, &[(&a, &of("10.43.0.1"))]);
    assert!(owner(&kernel).contains("default/a"));
    update(&mut state, &mut kernel, &[(&a, &Entry::default())]);
    assert!(owner(&kernel).contains("default/b"));
    // One takes it over from the other in a single batch.
    update(
        &mut state,
        &mut kernel,
        &[(&b, &Entry::default()), (&a, &of("10.43.0.1"))],
    );
    assert!(owner(&kernel).contains("default/a"));
}

#[test]
fn a_chain_is_deleted_by_the_second_sweep_after_it_was_emptied() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let (a, b): (Key, Key) = ("default/a".into(), "default/b".into());
    let full = |ip| {
        let text = format!("ip={ip} ports=http/tcp/80");
        entry(&text, &[slice("http/tcp/8080", "10.42.0.5")])
    };
    let both = [(&a, &full("10.43.0.1")), (&b, &full("10.43.0.2"))];
    update(&mut state, &mut kernel, &both);
    let gone = |name: &str| {
        vec![Step::DeleteChain(
            format!("svc-c4/default/{name}/tcp/http").into(),
        )]
    };
    update(&mut state, &mut kernel, &[(&a, &Entry::default())]);
    assert_eq!(state.sweep(), []);
    update(&mut state, &mut kernel, &[(&b, &Entry::default())]);
    assert_eq!(state.sweep(), gone("a"));
    assert!(state.has_stale());
    // It comes and goes again meanwhile.
    update(&mut state, &mut kernel, &[(&b, &full("10.43.0.2"))]);
    update(&mut state, &mut kernel, &[(&b, &Entry::default())]);
    assert_eq!(state.sweep(), []);
    assert_eq!(state.sweep(), gone("b"));
    assert!(!state.has_stale());
}

#[test]
fn nobody_gets_the_cluster_ip_of_another() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let (own, other): (Key, Key) = ("default/kubernetes".into(), "a/x".into());
    let slices = [slice("http/tcp/8080", "10.42.0.5")];
    let of = |text: &str| entry(&format!("ports=http/tcp/80 {text}"), &slices);
    let kubernetes = of("ip=10.43.0.1");
    let thief = of("ip=10.43.0.9 external=10.43.0.1");
    update(&mut state, &mut kernel, &[(&other, &thief)]);
    update(&mut state, &mut kernel, &[(&own, &kubernetes)]);
    let chain: Chain = "svc-c4/default/kubernetes/tcp/http".into();
    assert_eq!(chain_at(&kernel, "10.43.0.1"), Some(chain.clone()));
    // It claims again, in another way.
    let local = of("ip=10.43.0.9 external=10.43.0.1 external-local");
    for again in [&Entry::default(), &local, &thief] {
        update(&mut state, &mut kernel, &[(&other, again)]);
        assert_eq!(chain_at(&kernel, "10.43.0.1"), Some(chain.clone()));
    }
    update(&mut state, &mut kernel, &[(&own, &Entry::default())]);
    let chain = chain_at(&kernel, "10.43.0.1").unwrap();
    assert_eq!(&*chain, "svc-e4/a/x/tcp/http");
}

#[test]
fn chains_of_another_time_are_emptied_and_swept() {
    let (mut state, mut kernel) = (State::default(), Kernel::default());
    let key: Key = "default/web".into();
    let full = entry(
        "ip=10.43.0.1 ports=http/tcp/80",
        &[slice("http/tcp/8080", "10.42.0.5")],
    );
    update(&mut state, &mut kernel, &[(&key, &full)]);
    let mut there = Kernel::default();
    let old = ["svc-c4/default/web/tcp/http", "svc-c4/gone/web/tcp/http"];
    for chain in old {
        there.chains.insert(chain.into(), vec![Rule::Drop]);
    }
    there.take(&state.whole(&old));
    sweep(&mut state, &mut there);
    assert_eq!(there, kernel);
}

/// Any Service of one of three names, with any endpoints.
fn any_change() -> impl Strategy<Value = (u8, Entry)> {
    let words = prop::sample::subsequence(
        vec![
            "external=1.2.3.4",
            "external=10.43.0.1,1.2.3.4",
            "balancer=5.6.7.8",
            "ranges=10.0.0.0/8",
            "external-local",
            "internal-local",
            "affinity=60",
            "by-others",
        ],
        0..8,
    );
    let ports = prop::sample::subsequence(
        vec!["http/tcp/80/30080", "dns/udp/53", "x/sctp/9/30009"],
        1..=3,
    );
    let endpoints = prop::collection::vec((0u8..30, any::<bool>(), 0u8..3), 0..12);
    (0u8..3, words, ports, endpoints, any::<bool>()).prop_map(
        |(name, words, ports, endpoints, is_gone)| {
            if is_gone && endpoints.len() < 3 {
                return (name, Entry::default());
            }
            let text = format!(
                "ip=10.43.0.{name},fd43::{name} ports={} {}",
                ports.join(","),
                words.join(" ")
            );
            let lines: Vec<_> = endpoints
                .iter()
                .map(|(number, is_here, state)| {
                    let node = if *is_here { "here" } else { "there" };
                    let state =
                        ["", "unready terminating", "unready not-serving"][usize::from(*state)];
                    format!("10.42.0.{number} {node} {state}")
                })
                .collect();
            let lines = lines.join("\n");
            let v6 = lines.replace("10.42.0.", "fd42::");
            let slices = [
                slice("http/tcp/8080", &lines),
                slice("dns/udp/5353", &lines),
                slice("http/tcp/8080", &v6),
            ];
            (name, entry(&text, &slices))
        },
    )
}

proptest! {
    #[test]
    fn changes_in_order_are_the_whole(batches in prop::collection::vec(prop::collection::vec(any_change(), 1..3), 1..10)) {
        let (mut state, mut kernel) = (State::default(), Kernel::default());
        let mut last = BTreeMap::new();
        for batch in &batches {
            let mut now: BTreeMap<Key, &Entry> = BTreeMap::new();
            for (name, entry) in batch {
                now.insert(format!("default/{name}").into(), entry);
            }
            update(&mut state, &mut kernel, &now.iter().map(|(key, entry)| (key, *entry)).collect::<Vec<_>>());
            last.extend(now);
        }
        let (mut fresh, mut from_nothing) = (State::default(), Kernel::default());
        update(&mut fresh, &mut from_nothing, &last.iter().map(|(key, entry)| (key, *entry)).collect::<Vec<_>>());
        prop_assert_eq!(kernel.shape(), from_nothing.shape());
        sweep(&mut state, &mut kernel);
        prop_assert!(kernel.chains.values().all(|rules| !rules.is_empty()));
        let mut whole = Kernel::default();
        whole.take(&state.whole(&[]));
        prop_assert_eq!(whole.shape(), kernel.shape());
    }
}
