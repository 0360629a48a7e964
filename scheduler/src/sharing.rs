//! Equal values kept once, for as long as somebody has them.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Values that nobody has any more are looked for when there are more than this, and than twice
/// those that were in use the last time.
const SWEEP_MIN: usize = 64;

#[derive(Debug)]
pub struct Sharing<T: ?Sized> {
    all: HashSet<Arc<T>>,
    swept_at: usize,
}

impl<T: ?Sized> Default for Sharing<T> {
    fn default() -> Self {
        Self {
            all: HashSet::new(),
            swept_at: 0,
        }
    }
}

impl<T: Eq + Hash + ?Sized> Sharing<T> {
    /// The same `Arc` for equal values.
    pub fn share(&mut self, value: impl Borrow<T> + Into<Arc<T>>) -> Arc<T> {
        if let Some(known) = self.all.get::<T>(value.borrow()) {
            return Arc::clone(known);
        }
        if self.all.len() >= self.swept_at.max(SWEEP_MIN) {
            self.all.retain(|one| Arc::strong_count(one) > 1);
            self.swept_at = self.all.len() * 2;
        }
        let value = value.into();
        self.all.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_only_while_somebody_has_them() {
        let mut table = Sharing::<str>::default();
        let kept = table.share("a");
        assert!(Arc::ptr_eq(&kept, &table.share("a".to_owned())));
        for number in 0..SWEEP_MIN * 10 {
            table.share(number.to_string());
        }
        assert!(table.all.len() <= SWEEP_MIN);
        assert!(Arc::ptr_eq(&kept, &table.share("a")));
    }
}
