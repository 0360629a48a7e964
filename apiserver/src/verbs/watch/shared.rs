//! What all watchers of an event use: its traits for selectors and its frames in the forms that
//! are no stored bytes. Made by the first who needs them, kept with the event while it is among
//! the newest.

use crate::options::Selection;
use crate::registry::glance::Traits;
use crate::respond::{Form, MetaVersion, Target};
use bytes::Bytes;
use coracle_api::resource::Resource;
use coracle_api::table::Include;
use coracle_store::Event;
use parking_lot::Mutex;
use std::sync::Arc;

/// Forms of one event that are kept: more are in use by nobody at a time.
const FRAMES_MAX: usize = 8;
/// Views (group versions) on one stored kind.
const VIEWS_MAX: usize = 4;

/// The traits of an object before and after an event.
#[derive(Debug, Default)]
pub(super) struct Sides {
    before: Option<Traits>,
    after: Option<Traits>,
}

/// What an event is to a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
    /// It ceased to match: its last state that did, at the revision at which it ceased to.
    Left,
}

impl Change {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted | Self::Left => "DELETED",
        }
    }
}

/// All that a frame depends on beside the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameKey {
    /// The row: its place in memory is its identity.
    pub(super) resource: usize,
    pub(super) change: Change,
    pub(super) form: Form,
    pub(super) target: Target,
    pub(super) version: MetaVersion,
    pub(super) include: Include,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    sides: Mutex<Vec<(usize, Arc<Sides>)>>,
    frames: Mutex<Vec<(FrameKey, Bytes)>>,
}

pub(super) fn identity(resource: &'static Resource) -> usize {
    std::ptr::from_ref(resource) as usize
}

impl Shared {
    pub(super) fn sides(&self, resource: &'static Resource, event: &Event) -> Arc<Sides> {
        let mut sides = self.sides.lock();
        let own = identity(resource);
        if let Some((_, found)) = sides.iter().find(|(of, _)| *of == own) {
            return Arc::clone(found);
        }
        let before = event.previous.as_ref();
        let made = Arc::new(Sides {
            before: before.and_then(|entry| Traits::of(resource, &entry.value, true)),
            after: Traits::of(resource, &event.value, true),
        });
        if sides.len() < VIEWS_MAX {
            sides.push((own, Arc::clone(&made)));
        }
        made
    }

    /// The frame, made by `make` where nobody made it yet.
    pub(super) fn frame(
        &self,
        key: FrameKey,
        make: impl FnOnce() -> Option<Bytes>,
    ) -> Option<Bytes> {
        let mut frames = self.frames.lock();
        if let Some((_, found)) = frames.iter().find(|(own, _)| *own == key) {
            return Some(found.clone());
        }
        let made = make()?;
        if frames.len() < FRAMES_MAX {
            frames.push((key, made.clone()));
        }
        Some(made)
    }
}

impl Sides {
    /// Whether a selection chose the object before the event, and whether it does after it.
    pub(super) fn chosen(&self, selection: &Selection, resource: &Resource) -> (bool, bool) {
        let matches = |side: &Option<Traits>| {
            side.as_ref()
                .is_some_and(|traits| selection.matches(resource, traits))
        };
        (matches(&self.before), matches(&self.after))
    }
}
