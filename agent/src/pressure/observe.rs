//! Reads the signals of this machine.

use super::rank::Layout;
use super::signal::Signal;
use super::tracker::{Observation, Observations};
use crate::runtime::Runtime;
use crate::usage::{disk, node};
use coracle_api::quantity::{Format, Quantity};
use std::path::Path;

/// Some small files and two calls of `statvfs`.
pub async fn observe(runtime: &dyn Runtime, data_dir: &Path) -> Observations {
    let mut seen = Observations::new();
    if let Some(memory) = node::memory() {
        let signal = Signal::MemoryAvailable;
        note(
            &mut seen,
            signal,
            memory.available_bytes(),
            memory.total_bytes,
        );
    }
    if let Ok(Some(total)) = runtime.total_usage().await
        && let Some(limit) = total.memory_limit_bytes
    {
        let used = total.usage.memory_working_set_bytes;
        let signal = Signal::AllocatableMemoryAvailable;
        note(
            &mut seen,
            signal,
            signed(limit.saturating_sub(used)),
            signed(limit),
        );
    }
    let of_disk = |seen: &mut Observations, path: &Path, [space, files]: [Signal; 2]| {
        let Some(found) = disk::file_system(path) else {
            return;
        };
        note(seen, space, found.free_bytes, found.total_bytes);
        // Some file systems make inodes as they need them, and count none.
        if found.files > 0 {
            note(seen, files, found.free_files, found.files);
        }
    };
    let own = [Signal::NodeFsAvailable, Signal::NodeFsInodesFree];
    of_disk(&mut seen, data_dir, own);
    let images = [Signal::ImageFsAvailable, Signal::ImageFsInodesFree];
    of_disk(&mut seen, &runtime.images_directory(), images);
    if let Some(processes) = node::processes() {
        let free = processes.max - processes.count;
        note(&mut seen, Signal::PidAvailable, free, processes.max);
    }
    seen
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn note(seen: &mut Observations, signal: Signal, available: i64, capacity: i64) {
    let is_count = matches!(
        signal,
        Signal::NodeFsInodesFree | Signal::ImageFsInodesFree | Signal::PidAvailable
    );
    let format = if is_count {
        Format::DecimalSi
    } else {
        Format::BinarySi
    };
    let observed = Observation {
        available: Quantity::from_units(available, format),
        capacity: Quantity::from_units(capacity, format),
    };
    seen.insert(signal, observed);
}

/// By what is mounted now.
pub fn layout(runtime: &dyn Runtime, data_dir: &Path) -> Layout {
    let node = disk::device(data_dir);
    let images = disk::device(&runtime.images_directory());
    let containers = disk::device(&runtime.containers_directory());
    let has_image_fs = images.is_some() && images != node;
    Layout {
        has_image_fs,
        is_split: has_image_fs && containers != images,
    }
}
