//! Shuffle sharding: which queues a flow may use.
//!
//! A flow's hash deals it a hand of different queues, always the same for the same hash. Two flows
//! share all of theirs only by a rare chance, so one that fills its hand leaves others theirs.

/// The largest hand that the API allows for 8 or more queues.
pub const HAND_MAX: usize = 8;

/// A hand of different queues, in the order in which they were dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hand {
    cards: [u32; HAND_MAX],
    size: usize,
}

impl Hand {
    pub fn cards(&self) -> &[u32] {
        &self.cards[..self.size]
    }
}

/// Deals `hand` of `deck` queues. The hash is read as a number in falling factorial base: each
/// digit picks one of the cards that are left.
pub fn deal(mut hash: u64, deck: u32, hand: usize) -> Hand {
    let deck = deck.max(1);
    let size = hand.clamp(1, HAND_MAX).min(deck as usize);
    let mut picks = [0_u32; HAND_MAX];
    for (place, pick) in picks.iter_mut().enumerate().take(size) {
        let left = u64::from(deck) - place as u64;
        *pick = (hash % left) as u32;
        hash /= left;
    }
    let mut cards = [0; HAND_MAX];
    for place in 0..size {
        let mut card = picks[place];
        // Undoes, newest first, the closing of the gaps that earlier picks left.
        for earlier in picks[..place].iter().rev() {
            if card >= *earlier {
                card += 1;
            }
        }
        cards[place] = card;
    }
    Hand { cards, size }
}

/// A flow's hash: FNV-1a over its schema and its distinguisher, then mixed, because dealing takes
/// the low digits first.
pub fn hash(schema: &str, distinguisher: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = BASIS;
    let parts = [schema.as_bytes(), &[0], distinguisher.as_bytes()];
    for byte in parts.into_iter().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests;
