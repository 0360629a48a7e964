//! Chance, of a seed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub struct Dice(StdRng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_ratio(percent, 100)
    }

    /// Both ends are possible.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..=high)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    /// Different ones, in the order given.
    pub fn some<T: Copy>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut left: Vec<T> = of.to_vec();
        while left.len() > count {
            let gone = self.0.random_range(0..left.len());
            left.remove(gone);
        }
        left
    }
}
