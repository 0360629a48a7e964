//! Volumes that show what is in an image. The shim mounts them when the container starts; what
//! can be said before is said here.

use super::super::record::{self, ContainerRecord};
use super::super::{RuntimeError, image_volume};
use super::io_error;
use crate::images::HeldImage;
use nix::mount::{MntFlags, umount2};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Links to the layers of each, and a place to mount them on.
pub fn prepare(directory: &Path, volumes: &[HeldImage]) -> io::Result<()> {
    for (number, held) in volumes.iter().enumerate() {
        let volume = directory.join(image_volume::directory(number));
        for part in ["l", "e", "m"] {
            fs::create_dir_all(volume.join(part))?;
        }
        record::link_layers(&volume, &held.layers)?;
    }
    Ok(())
}

/// A part of an image that is asked for must be there.
pub fn check(directory: &Path, record: &ContainerRecord) -> Result<(), RuntimeError> {
    let mounts = record.config.mounts.iter();
    let volumes = mounts.filter(|mount| !mount.image.is_empty()).enumerate();
    for (number, mount) in volumes.filter(|(_, mount)| !mount.sub_path.as_os_str().is_empty()) {
        let volume = directory.join(image_volume::directory(number));
        let failed = || io_error(format!("cannot open {}", volume.display()));
        let opened = File::open(&volume).map_err(failed())?;
        let short = image_volume::short_path(&opened);
        image_volume::mount(&short).map_err(failed())?;
        let found = image_volume::resolve(&short, &mount.sub_path);
        let _ = umount2(&short.join("m"), MntFlags::MNT_DETACH);
        found.map_err(|error| {
            RuntimeError::Failed(format!(
                "ImageVolumeMountFailed: {:?} in the image volume at {}: {error}",
                mount.sub_path,
                mount.container_path.display()
            ))
        })?;
    }
    Ok(())
}
