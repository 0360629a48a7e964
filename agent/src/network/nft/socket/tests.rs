//! The kernel, in a network namespace of the test's own.

use super::super::watch::{Disturbance, Watch};
use super::super::{
    Batch, Chain, ChainType, Datum, Element, Family, Field, Hook, Kind, Range, Rule, Set, Verdict,
};
use super::{CommitError, Nft};
use crate::network::subnet::Subnet;
use crate::network::testing::isolated_async;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

fn v4(text: &str) -> Datum {
    Datum::Ip4(text.parse().unwrap())
}

fn network(text: &str, prefix: u8) -> Range {
    Subnet::new(text.parse().unwrap(), prefix).unwrap().into()
}

/// An open table, empty.
async fn table() -> Nft {
    let nft = Nft::open().unwrap();
    let mut batch = Batch::new();
    batch.add_table();
    nft.commit(&batch).await.unwrap();
    nft
}

async fn commit(nft: &Nft, fill: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    fill(&mut batch);
    nft.commit(&batch).await.unwrap();
}

async fn elements(nft: &Nft, name: &str) -> BTreeSet<Element> {
    let sets = nft.sets().await.unwrap();
    let set = sets.iter().find(|set| set.name == name).unwrap();
    nft.elements(set).await.unwrap().into_iter().collect()
}

#[test]
fn what_is_added_is_read_back_and_goes_again() {
    isolated_async(|| async {
        let nft = table().await;
        let handle = nft.table().await.unwrap().unwrap().handle;
        commit(&nft, |batch| {
            batch.add_chain(&Chain::plain("a"));
            batch.add_chain(&Chain::base("in", ChainType::Filter, Hook::Input, 0));
            batch.add_rule(&Rule::new("in").jump("a").comment("first"));
            batch.add_rule(&Rule::new("in").accept().comment("second"));
            batch.insert_rule(&Rule::new("in").drop().comment("before"));
        })
        .await;
        let chains = nft.chains().await.unwrap();
        let named: Vec<_> = chains
            .iter()
            .map(|found| (&*found.name, found.is_base))
            .collect();
        assert_eq!(named, [("a", false), ("in", true)]);
        assert_eq!(chains[0].uses, 1);
        let rules = nft.rules(None).await.unwrap();
        let comments: Vec<_> = rules
            .iter()
            .map(|rule| rule.comment.clone().unwrap())
            .collect();
        assert_eq!(comments, ["before", "first", "second"]);
        commit(&nft, |batch| {
            batch.replace_rule(rules[0].handle, &Rule::new("in").accept().comment("other"));
            batch.delete_rule("in", rules[1].handle);
            batch.delete_chain("a");
        })
        .await;
        let rules = nft.rules(Some("in")).await.unwrap();
        let comments: Vec<_> = rules
            .iter()
            .map(|rule| rule.comment.clone().unwrap())
            .collect();
        assert_eq!(comments, ["other", "second"]);
        commit(&nft, |batch| batch.delete_table()).await;
        assert_eq!(nft.table().await.unwrap(), None);
        assert!(nft.rules(Some("in")).await.unwrap().is_empty());
        commit(&nft, |batch| batch.add_table()).await;
        assert_ne!(nft.table().await.unwrap().unwrap().handle, handle);
    });
}

fn shapes() -> Vec<(Set, Vec<Element>)> {
    let frontend = [Kind::Ip4, Kind::Protocol, Kind::Port];
    let key = [v4("10.96.0.1"), Datum::Protocol(6), Datum::Port(443)];
    vec![
        (
            Set::new("plain", &frontend),
            vec![Element::new(key.clone())],
        ),
        (
            Set::map("map", &[Kind::Number], &[Kind::Ip6, Kind::Port]),
            vec![
                Element::new([Datum::Number(0)])
                    .to([Datum::Ip6("fd00::1".parse().unwrap()), Datum::Port(80)]),
                Element::new([Datum::Number(1)])
                    .to([Datum::Ip6("fd00::2".parse().unwrap()), Datum::Port(80)]),
            ],
        ),
        (
            Set::verdict_map("verdicts", &frontend),
            vec![Element::new(key.clone()).verdict(Verdict::Goto("to".to_owned()))],
        ),
        (
            Set::new("links", &[Kind::Interface]),
            vec![Element::new([Datum::Interface(
                "cveth0123456789".to_owned(),
            )])],
        ),
        (
            Set::new("networks", &[Kind::Ip4]).intervals(),
            vec![
                Element::range(network("10.0.0.0", 24)),
                Element::range(network("10.0.1.0", 24)),
                Element::range(network("10.9.0.7", 32)),
                Element::range(network("240.0.0.0", 4)),
            ],
        ),
        (
            Set::new("networks6", &[Kind::Ip6]).intervals(),
            vec![
                Element::range(network("fd00::", 64)),
                Element::range(network("::", 1)),
            ],
        ),
        (
            Set::verdict_map("blocks", &[Kind::Ip4, Kind::Port]).intervals(),
            vec![
                Element::new([v4("10.0.0.0"), Datum::Port(80)])
                    .until([v4("10.0.0.255"), Datum::Port(90)])
                    .verdict(Verdict::Accept),
            ],
        ),
    ]
}

#[test]
fn elements_of_all_shapes_are_read_back() {
    isolated_async(|| async {
        let nft = table().await;
        let shapes = shapes();
        commit(&nft, |batch| {
            batch.add_chain(&Chain::plain("to"));
            for (set, elements) in &shapes {
                // Twice: what is there is no error.
                batch.add_set(set);
                batch.add_set(set);
                batch.add_elements(&set.name, elements.clone());
            }
        })
        .await;
        for (set, expected) in &shapes {
            let expected: BTreeSet<_> = expected.iter().cloned().collect();
            assert_eq!(elements(&nft, &set.name).await, expected, "{}", set.name);
        }
        commit(&nft, |batch| {
            for (set, elements) in &shapes {
                batch.delete_elements(&set.name, elements.clone());
            }
        })
        .await;
        for (set, _) in &shapes {
            assert!(elements(&nft, &set.name).await.is_empty(), "{}", set.name);
        }
    });
}

#[test]
fn an_element_is_given_other_data_within_a_batch() {
    isolated_async(|| async {
        let nft = table().await;
        let element =
            |port| Element::new([Datum::Number(0)]).to([v4("10.0.0.1"), Datum::Port(port)]);
        commit(&nft, |batch| {
            batch.add_set(&Set::map("m", &[Kind::Number], &[Kind::Ip4, Kind::Port]));
            batch.add_elements("m", [element(1)]);
        })
        .await;
        let mut batch = Batch::new();
        batch.add_elements("m", [element(2)]);
        let refused = nft.commit(&batch).await;
        assert!(
            matches!(refused, Err(CommitError::Refused(_))),
            "{refused:?}"
        );
        commit(&nft, |batch| {
            batch.delete_elements("m", [element(1)]);
            batch.add_elements("m", [element(2)]);
        })
        .await;
        assert_eq!(elements(&nft, "m").await, BTreeSet::from([element(2)]));
    });
}

#[test]
fn a_refused_batch_says_which_message_and_changes_nothing() {
    isolated_async(|| async {
        let nft = table().await;
        let mut batch = Batch::new();
        batch.add_chain(&Chain::plain("a"));
        batch.add_rule(&Rule::new("a").jump("nowhere").comment("lost"));
        batch.delete_set("missing");
        let Err(CommitError::Refused(refused)) = nft.commit(&batch).await else {
            panic!("refused");
        };
        assert_eq!(refused.index, Some(1));
        assert_eq!(refused.code(), libc::ENOENT);
        let said = refused.to_string();
        assert!(
            said.starts_with("nf_tables refused to add a rule to a (lost)"),
            "{said}"
        );
        assert!(said.ends_with("and 1 more"), "{said}");
        assert!(nft.chains().await.unwrap().is_empty());
        // The last message of a batch is the one whose answer is asked for.
        let mut batch = Batch::new();
        batch.add_chain(&Chain::plain("a"));
        batch.delete_set("missing");
        let Err(CommitError::Refused(refused)) = nft.commit(&batch).await else {
            panic!("refused");
        };
        assert_eq!(refused.index, Some(1));
        // And the socket is as good as before.
        commit(&nft, |batch| batch.add_chain(&Chain::plain("a"))).await;
        assert_eq!(nft.chains().await.unwrap().len(), 1);
    });
}

#[test]
fn a_loop_of_chains_is_refused_with_the_whole_batch() {
    isolated_async(|| async {
        let nft = table().await;
        let mut batch = Batch::new();
        batch.add_chain(&Chain::base("in", ChainType::Filter, Hook::Input, 0));
        batch.add_chain(&Chain::plain("a"));
        batch.add_rule(&Rule::new("in").jump("a"));
        for (from, to) in [("a", "b"), ("b", "a")] {
            batch.add_chain(&Chain::plain(from));
            batch.add_chain(&Chain::plain(to));
            batch.add_rule(&Rule::new(from).jump(to));
        }
        let Err(CommitError::Refused(refused)) = nft.commit(&batch).await else {
            panic!("refused");
        };
        assert!(
            [libc::ELOOP, libc::EMLINK].contains(&refused.code()),
            "{refused:?}"
        );
        assert!(nft.chains().await.unwrap().is_empty());
        commit(&nft, |batch| batch.add_chain(&Chain::plain("a"))).await;
    });
}

#[test]
fn a_hundred_thousand_elements_are_one_batch() {
    isolated_async(|| async {
        let nft = table().await;
        let all = || (0..100_000).map(|number| Element::new([Datum::Ip4(Ipv4Addr::from(number))]));
        commit(&nft, |batch| {
            batch.add_set(&Set::new("s", &[Kind::Ip4]));
            batch.add_elements("s", all());
        })
        .await;
        assert_eq!(elements(&nft, "s").await.len(), 100_000);
        // Each refused: more answers than the socket has room for are no hang.
        let mut batch = Batch::new();
        for element in all() {
            batch.delete_elements("nowhere", [element]);
        }
        assert!(nft.commit(&batch).await.is_err());
        commit(&nft, |batch| batch.flush_set("s")).await;
        assert!(elements(&nft, "s").await.is_empty());
    });
}

#[test]
fn what_a_cancelled_commit_leaves_is_passed_over() {
    isolated_async(|| async {
        let nft = table().await;
        for number in 0..20 {
            let mut batch = Batch::new();
            batch.add_chain(&Chain::plain(format!("c{number}")));
            let commit = nft.commit(&batch);
            tokio::select! {
                biased;
                () = std::future::ready(()) => {}
                _ = commit => {}
            }
            let mut batch = Batch::new();
            batch.delete_set("missing");
            assert!(nft.commit(&batch).await.is_err());
            commit_nothing(&nft).await;
        }
    });
}

async fn commit_nothing(nft: &Nft) {
    nft.commit(&Batch::new()).await.unwrap();
    let mut batch = Batch::new();
    batch.add_table();
    nft.commit(&batch).await.unwrap();
}

#[test]
fn only_what_others_do_is_told() {
    isolated_async(|| async {
        let nft = table().await;
        let mut watch = Watch::open(&nft).unwrap();
        commit(&nft, |batch| batch.add_chain(&Chain::plain("a"))).await;
        let other = Nft::open().unwrap();
        let mut batch = Batch::of("another");
        batch.add_table();
        batch.delete_table();
        other.commit(&batch).await.unwrap();
        // More than a socket has room for.
        commit(&nft, |batch| {
            batch.add_set(&Set::new("s", &[Kind::Ip4]));
            let all = (0..50_000).map(|number| Element::new([Datum::Ip4(Ipv4Addr::from(number))]));
            batch.add_elements("s", all);
        })
        .await;
        let quiet = tokio::time::timeout(Duration::from_millis(100), watch.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
        commit(&other, |batch| batch.delete_chain("a")).await;
        assert_eq!(watch.next().await.unwrap(), Disturbance::Changed);
        commit(&other, |batch| batch.delete_table()).await;
        assert_eq!(watch.next().await.unwrap(), Disturbance::TableDeleted);
    });
}

#[test]
fn generations_count_commits() {
    isolated_async(|| async {
        let nft = table().await;
        let before = nft.generation().await.unwrap();
        commit(&nft, |batch| batch.add_chain(&Chain::plain("a"))).await;
        assert_eq!(nft.generation().await.unwrap(), before + 1);
        // Nothing is in the way of looking at what is not there.
        assert!(nft.sets().await.unwrap().is_empty());
        let rule = Rule::new("a").is(Field::Source(Family::Ip4), v4("10.0.0.1"));
        commit(&nft, |batch| batch.add_rule(&rule)).await;
    });
}
