//! Sets of completion indexes as the status writes them: `1,3-5,7`. Pure.
//!
//! Invariant: intervals rise and never touch one another.

use std::fmt::{self, Display, Formatter};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Intervals(Vec<(i32, i32)>);

impl Intervals {
    /// Reads what is below `completions`; fragments that make no sense are left out.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let mut read = Self::default();
        for fragment in text.split(',').filter(|_| !text.is_empty()) {
            let mut limits = fragment.split('-').map(str::parse::<i32>);
            let Some(Ok(first)) = limits.next() else {
                continue;
            };
            if first >= completions {
                break;
            }
            match limits.next() {
                None => read.push((first, first)),
                Some(Ok(last)) if last >= first => {
                    read.push((first, last.min(completions - 1)));
                }
                Some(_) => {}
            }
        }
        read
    }

    /// With these added; they rise.
    pub(super) fn with(&self, rising: impl IntoIterator<Item = i32>) -> Self {
        self.union(&Self::from_rising(rising))
    }

    fn from_rising(rising: impl IntoIterator<Item = i32>) -> Self {
        let mut all = Self::default();
        for index in rising {
            all.push((index, index));
        }
        all
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut merged: Vec<_> = self.0.iter().chain(&other.0).copied().collect();
        merged.sort_unstable();
        let mut all = Self::default();
        for interval in merged {
            all.push(interval);
        }
        all
    }

    /// Adds one that begins no earlier than the last.
    fn push(&mut self, (first, last): (i32, i32)) {
        match self.0.last_mut() {
            Some(end) if first <= end.1.saturating_add(1) => end.1 = end.1.max(last),
            _ => self.0.push((first, last)),
        }
    }

    pub(super) fn count(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, index: i32) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many indexes both have.
    pub(super) fn common(&self, other: &Self) -> i32 {
        let (mut mine, mut theirs) = (self.0.as_slice(), other.0.as_slice());
        let mut common = 0;
        while let ([(a_first, a_last), a_rest @ ..], [(b_first, b_last), b_rest @ ..]) =
            (mine, theirs)
        {
            common += (a_last.min(b_last) - a_first.max(b_first) + 1).max(0);
            if a_last <= b_last {
                mine = a_rest;
            } else {
                theirs = b_rest;
            }
        }
        common
    }

    /// The lowest indexes below `completions` that are not in here, as many as `count`.
    pub(super) fn missing(&self, completions: i32, count: usize) -> Vec<i32> {
        let mut found = Vec::new();
        let mut candidate = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, completions)]) {
            let gap = candidate..first.min(completions);
            found.extend(gap.take(count - found.len()));
            candidate = candidate.max(last.saturating_add(1));
        }
        found
    }
}

impl Display for Intervals {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{first}")?;
            match last - first {
                0 => {}
                1 => write!(f, ",{last}")?,
                _ => write!(f, "-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
