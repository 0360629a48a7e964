//! Unpacks one layer's tar stream into a directory that overlayfs can take as a lower one.
//!
//! Whiteouts become overlayfs's own: a device 0:0, and `trusted.overlay.opaque` on a directory.
//! Invariants: nothing is ever written, linked or changed outside the directory, whatever the
//! stream says; owners, modes, times and permitted extended attributes are kept; the work is
//! bounded in entries and bytes. The directory has no other writer.

mod heads; // How much entries may say of themselves.
mod room; // How much may be written.
mod tree;

use heads::{Heads, Left};
use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tar::EntryType;
use tree::{Attributes, Tree};

/// Far above real layers (a full distribution has some 200,000 files in one).
const ENTRIES_MAX: u64 = 2_000_000;
/// Unpacked; also bounds what a small compressed stream can expand to.
pub const LAYER_BYTES_MAX: u64 = 64 << 30;
/// The same as the kernel's XATTR_SIZE_MAX.
const XATTR_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("the entry {0:?} points outside of the layer")]
    Escapes(PathBuf),
    #[error("more than {ENTRIES_MAX} entries")]
    TooMany,
    #[error("the whiteout {0:?} names nothing")]
    Whiteout(PathBuf),
    #[error("the link {path:?} has no target {target:?}")]
    NoTarget { path: PathBuf, target: PathBuf },
    #[error("cannot read the layer")]
    Read(#[source] io::Error),
    #[error("cannot write {path:?}")]
    Write { path: PathBuf, source: io::Error },
}

/// `lowers` are the layers below, topmost first: directories that this layer only implies take
/// their owner and mode from there, as they would on a mounted stack.
pub fn unpack(reader: impl Read, root: &Path, lowers: &[PathBuf]) -> Result<(), UnpackError> {
    let mut tree = Tree::new(root, lowers);
    let left = Left::new();
    let mut archive = tar::Archive::new(Heads {
        inner: reader,
        left: left.clone(),
    });
    let mut entries = archive.entries().map_err(UnpackError::Read)?;
    for count in 0.. {
        left.expect_header();
        let Some(entry) = entries.next() else {
            break;
        };
        left.expect_content();
        if count >= ENTRIES_MAX {
            return Err(UnpackError::TooMany);
        }
        let mut entry = entry.map_err(UnpackError::Read)?;
        unpack_entry(&mut tree, &mut entry)?;
        // What is left of it is no part of the next header.
        io::copy(&mut entry, &mut io::sink()).map_err(UnpackError::Read)?;
    }
    tree.finish()
}

fn unpack_entry<R: Read>(
    tree: &mut Tree<'_>,
    entry: &mut tar::Entry<'_, R>,
) -> Result<(), UnpackError> {
    let kind = entry.header().entry_type();
    if kind == EntryType::XGlobalHeader {
        return Ok(());
    }
    let name = PathBuf::from(OsStr::from_bytes(&entry.path_bytes()));
    let parts = inside(&name)?;
    tree.make_room(&name, entry.size())?;
    let Some((last, parents)) = parts.split_last() else {
        let attributes = attributes(entry)?; // `.` or `/`: the root itself.
        return tree.set_root(attributes);
    };
    let parent = tree.enter(parents)?;
    if let Some(hidden) = last.as_bytes().strip_prefix(b".wh.") {
        return white_out(tree, &parent, OsStr::from_bytes(hidden), &name);
    }
    let attributes = attributes(entry)?;
    let path = parent.join(last);
    match kind {
        EntryType::Directory => return tree.directory(&path, attributes),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            tree.clear(&path)?;
            write_file(&tree.host(&path), entry)?;
        }
        EntryType::Symlink => {
            let target = link_name(entry, &name)?;
            tree.clear(&path)?;
            let host = tree.host(&path);
            std::os::unix::fs::symlink(&target, &host).map_err(failed(&host))?;
        }
        EntryType::Link => {
            let target = link_name(entry, &name)?;
            return tree.hard_link(&path, &inside(&target)?, &name, &target);
        }
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            if !make_node(tree, &path, entry)? {
                return Ok(());
            }
        }
        _ => return Ok(()),
    }
    attributes.set(&tree.host(&path), kind == EntryType::Symlink)
}

/// The parts of a path below the root. `..` is refused rather than cleaned: no tool writes it.
fn inside(path: &Path) -> Result<Vec<&OsStr>, UnpackError> {
    let bytes = path.as_os_str().as_bytes();
    let parts = bytes
        .split(|byte| *byte == b'/')
        .filter(|part| !matches!(*part, b"" | b"."));
    let parts: Vec<&OsStr> = parts.map(OsStr::from_bytes).collect();
    match parts
        .iter()
        .any(|part| *part == ".." || part.as_bytes().contains(&0))
    {
        true => Err(UnpackError::Escapes(path.to_owned())),
        false => Ok(parts),
    }
}

fn link_name<R: Read>(entry: &tar::Entry<'_, R>, name: &Path) -> Result<PathBuf, UnpackError> {
    let target = entry.link_name_bytes().filter(|target| !target.is_empty());
    match target {
        Some(target) => Ok(PathBuf::from(OsStr::from_bytes(&target))),
        None => Err(UnpackError::NoTarget {
            path: name.to_owned(),
            target: PathBuf::new(),
        }),
    }
}

/// `.wh.x` hides x of the layers below, `.wh..wh..opq` all that they have in this directory.
fn white_out(
    tree: &mut Tree<'_>,
    parent: &Path,
    hidden: &OsStr,
    name: &Path,
) -> Result<(), UnpackError> {
    match hidden.as_bytes() {
        b".wh..opq" => tree.set_opaque(parent),
        b"" | b"." | b".." => Err(UnpackError::Whiteout(name.to_owned())),
        other if other.starts_with(b".wh.") => Ok(()), // Aufs's own records.
        _ => tree.hide(&parent.join(hidden)),
    }
}

fn write_file(host: &Path, entry: &mut impl Read) -> Result<(), UnpackError> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(host)
        .map_err(failed(host))?;
    io::copy(entry, &mut file).map_err(failed(host))?;
    Ok(())
}

/// False for a device 0:0, which would be a whiteout in disguise.
fn make_node<R: Read>(
    tree: &mut Tree<'_>,
    path: &Path,
    entry: &tar::Entry<'_, R>,
) -> Result<bool, UnpackError> {
    let header = entry.header();
    let number = |part: io::Result<Option<u32>>| part.map(Option::unwrap_or_default);
    let major = number(header.device_major()).map_err(UnpackError::Read)?;
    let minor = number(header.device_minor()).map_err(UnpackError::Read)?;
    let kind = match header.entry_type() {
        EntryType::Char if (major, minor) == (0, 0) => return Ok(false),
        EntryType::Char => SFlag::S_IFCHR,
        EntryType::Block => SFlag::S_IFBLK,
        _ => SFlag::S_IFIFO,
    };
    tree.clear(path)?;
    let host = tree.host(path);
    let device = if kind == SFlag::S_IFIFO {
        0
    } else {
        makedev(major.into(), minor.into())
    };
    mknod(&host, kind, Mode::from_bits_truncate(0o600), device)
        .map_err(io::Error::from)
        .map_err(failed(&host))?;
    Ok(true)
}

fn attributes<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Attributes, UnpackError> {
    let header = entry.header();
    // A blank field stands for 0, as in other tools.
    let mut attributes = Attributes {
        mode: header.mode().unwrap_or(0) & 0o7777,
        uid: header.uid().unwrap_or(0),
        gid: header.gid().unwrap_or(0),
        mtime: header.mtime().unwrap_or(0).cast_signed(),
        ..Attributes::default()
    };
    let Some(extensions) = entry.pax_extensions().map_err(UnpackError::Read)? else {
        return Ok(attributes);
    };
    for extension in extensions {
        let extension = extension.map_err(UnpackError::Read)?;
        let (Ok(key), value) = (extension.key(), extension.value_bytes()) else {
            continue;
        };
        let text = std::str::from_utf8(value).unwrap_or_default();
        match key {
            "uid" => attributes.uid = text.parse().unwrap_or(attributes.uid),
            "gid" => attributes.gid = text.parse().unwrap_or(attributes.gid),
            "mtime" => {
                let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
                attributes.mtime = seconds.parse().unwrap_or(attributes.mtime);
                attributes.mtime_ns = format!("{fraction:0<9.9}").parse().unwrap_or(0);
            }
            _ => {
                let name = key
                    .strip_prefix("SCHILY.xattr.")
                    .filter(|name| may_carry(name));
                if let Some(name) = name
                    && value.len() <= XATTR_BYTES_MAX
                {
                    attributes.xattrs.push((name.to_owned(), value.to_vec()));
                }
            }
        }
    }
    Ok(attributes)
}

/// Never what steers overlayfs or a security module of this host.
fn may_carry(xattr: &str) -> bool {
    xattr == "security.capability"
        || (xattr.starts_with("user.") && !xattr.starts_with("user.overlay."))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> UnpackError {
    let path = path.to_owned();
    move |source| UnpackError::Write { path, source }
}

/// Makes what overlayfs reads as "not here".
fn make_whiteout(host: &Path) -> Result<(), UnpackError> {
    match mknod(host, SFlag::S_IFCHR, Mode::empty(), 0) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(failed(host)(errno.into())),
    }
}

fn remove(host: &Path) -> io::Result<()> {
    match fs::symlink_metadata(host) {
        Ok(found) if found.is_dir() => crate::tree::remove(host),
        Ok(_) => fs::remove_file(host),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
