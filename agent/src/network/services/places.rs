//! Endpoints keep their places in a list: one that comes is put where one went or behind the last,
//! and the last ones take the places of those that go. So a change costs what changed. Pure.

use super::steps::{ListId, Step, Target};
use std::collections::BTreeSet;

/// The wanted targets, each once, in places as near as can be to those that they have, and the
/// steps that lead there.
pub fn arrange(list: ListId, now: &[Target], wanted: &[Target]) -> (Vec<Target>, Vec<Step>) {
    let stay: BTreeSet<Target> = wanted.iter().copied().collect();
    let known: BTreeSet<Target> = now.iter().copied().collect();
    let mut coming = stay
        .iter()
        .filter(|target| !known.contains(target))
        .copied();
    let mut moves = Moves {
        list,
        places: now.to_vec(),
        steps: Vec::new(),
    };
    let gone: Vec<usize> = (0..now.len())
        .filter(|place| !stay.contains(&now[*place]))
        .collect();
    let mut gone = gone.into_iter().peekable();
    while gone.peek().is_some() {
        let Some(target) = coming.next() else { break };
        let place = gone.next().expect("it was peeked at");
        moves.replace(place, target);
    }
    for target in coming {
        moves.append(target);
    }
    moves.shrink(stay.len(), &stay, gone);
    (moves.places, moves.steps)
}

struct Moves {
    list: ListId,
    places: Vec<Target>,
    steps: Vec<Step>,
}

impl Moves {
    fn replace(&mut self, place: usize, target: Target) {
        self.delete(place);
        self.add(place, target);
        self.places[place] = target;
    }

    fn append(&mut self, target: Target) {
        self.add(self.places.len(), target);
        self.places.push(target);
    }

    /// Takes away what is behind the new end; those of it that stay fill the holes before it.
    fn shrink(
        &mut self,
        length: usize,
        stay: &BTreeSet<Target>,
        holes: impl Iterator<Item = usize>,
    ) {
        if length == self.places.len() {
            return;
        }
        for place in length..self.places.len() {
            self.delete(place);
        }
        let tail = self.places.split_off(length);
        let movers = tail.into_iter().filter(|target| stay.contains(target));
        for (place, target) in holes.take_while(|place| *place < length).zip(movers) {
            self.replace(place, target);
        }
    }

    fn add(&mut self, place: usize, target: Target) {
        self.steps.push(Step::AddTarget {
            list: self.list,
            place: number(place),
            target,
        });
    }

    fn delete(&mut self, place: usize) {
        self.steps.push(Step::DeleteTarget {
            list: self.list,
            place: number(place),
            target: self.places[place],
        });
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).expect("no machine has memory for more")
}

#[cfg(test)]
mod tests;
