//! A volume that shows what is in an image: its layers, read only, mounted by overlayfs.
//!
//! ```text
//! v/<n>/l/<layer>  links to the layers, topmost first
//!      /e          an empty directory: the kernel wants two of them
//!      /m          where they are mounted
//! ```

use nix::mount::MsFlags;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Below a container's directory.
pub fn directory(number: usize) -> PathBuf {
    Path::new("v").join(number.to_string())
}

/// The kernel takes one page of options, however deep the directory is.
pub fn short_path(opened: &File) -> PathBuf {
    format!("/proc/self/fd/{}", opened.as_raw_fd()).into()
}

pub fn mount(volume: &Path) -> io::Result<()> {
    let layers = fs::read_dir(volume.join("l"))?.count();
    let place = volume.display();
    let layers: Vec<_> = (0..layers).map(|n| format!("{place}/l/{n}")).collect();
    let options = format!("lowerdir={}:{place}/e", layers.join(":"));
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOEXEC | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let (kind, target) = (Some("overlay"), volume.join("m"));
    Ok(nix::mount::mount(
        kind,
        &target,
        kind,
        flags,
        Some(options.as_str()),
    )?)
}

/// Where a part of it is: links in the image are followed as if its top were the root.
pub fn resolve(volume: &Path, sub_path: &Path) -> io::Result<PathBuf> {
    let root = File::open(volume.join("m"))?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(&root, sub_path, flags, Mode::empty(), inside)?;
    fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()))
}
