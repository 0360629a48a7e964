//! What plugins worked out for the pod of one cycle, from PreFilter and PreScore on.
//!
//! Each plugin has two slots of its own, one for its filter and one for its score, and nobody else
//! looks into them. With some pods taken out, or pods that were promised a node put in, the state
//! stands for another world: what the filters would say there. Whoever does that undoes it.

use std::any::Any;
use std::fmt::Debug;

/// Anything that can be copied.
pub trait Data: Any + Debug + Send + Sync {
    fn copied(&self) -> Box<dyn Data>;
}

impl<T: Any + Clone + Debug + Send + Sync> Data for T {
    fn copied(&self) -> Box<dyn Data> {
        Box::new(self.clone())
    }
}

/// What one plugin keeps for one pod.
#[derive(Debug, Default)]
pub struct Slot(Option<Box<dyn Data>>);

impl Slot {
    pub fn set(&mut self, data: impl Data) {
        self.0 = Some(Box::new(data));
    }

    pub fn get<T: Any>(&self) -> Option<&T> {
        let data: &dyn Any = self.0.as_deref()?;
        data.downcast_ref()
    }

    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        let data: &mut dyn Any = self.0.as_deref_mut()?;
        data.downcast_mut()
    }
}

impl Clone for Slot {
    fn clone(&self) -> Self {
        // Of what is in the box, not of the box.
        Self(self.0.as_deref().map(Data::copied))
    }
}

/// The filters' slots of all plugins, by their place in the profile.
#[derive(Clone, Debug, Default)]
pub struct CycleState(pub(super) Vec<Kept>);

#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub slot: Slot,
    /// PreFilter said that there is nothing to filter for this pod.
    pub is_skipped: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_goes_its_own_way() {
        let mut slot = Slot::default();
        assert_eq!(slot.get::<u32>(), None);
        slot.set(1_u32);
        let copy = slot.clone();
        *slot.get_mut::<u32>().unwrap() += 1;
        assert_eq!((slot.get(), copy.get()), (Some(&2_u32), Some(&1_u32)));
        assert_eq!(slot.get::<i64>(), None, "another type is not there");
    }
}
