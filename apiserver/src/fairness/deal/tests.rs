//! Hands have different cards, and every hand comes up.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn a_hand_has_different_cards_of_the_deck() {
    for seed in 0..2000_u64 {
        let hand = deal(hash("schema", &seed.to_string()), 128, 6);
        let cards: BTreeSet<u32> = hand.cards().iter().copied().collect();
        assert_eq!(cards.len(), 6);
        assert!(cards.iter().all(|card| *card < 128));
    }
}

#[test]
fn every_ordered_hand_comes_up_equally_often() {
    // 5 * 4 * 3 hands; the hashes below 60 * 100 deal each a hundred times.
    let mut seen: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for hash in 0..6000 {
        *seen.entry(deal(hash, 5, 3).cards().to_vec()).or_default() += 1;
    }
    assert_eq!(seen.len(), 60);
    assert!(seen.values().all(|count| *count == 100), "{seen:?}");
}

#[test]
fn a_hand_is_never_larger_than_the_deck() {
    assert_eq!(deal(7, 1, 1).cards(), [0]);
    assert_eq!(deal(u64::MAX, 3, 8).cards().len(), 3);
}

#[test]
fn flows_seldom_share_a_whole_hand() {
    let hand = |flow: u64| {
        let mut cards = deal(hash("s", &flow.to_string()), 64, 6).cards().to_vec();
        cards.sort_unstable();
        cards
    };
    let first = hand(0);
    let alike = (1..2000).filter(|flow| hand(*flow) == first).count();
    assert_eq!(alike, 0);
}
