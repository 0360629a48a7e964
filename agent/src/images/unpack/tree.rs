//! The directory a layer grows in, over the layers below it.
//!
//! Paths are relative to the root and already free of links: `enter` resolves them step by step,
//! inside the root, so that no later call follows one.

use super::room::Room;
use super::{UnpackError, failed, make_whiteout, remove};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Component, Path, PathBuf};

/// As the kernel's MAXSYMLINKS.
const LINKS_MAX: usize = 40;
const OPAQUE: &str = "trusted.overlay.opaque";

#[derive(Debug, Default)]
pub struct Attributes {
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    pub mtime: i64,
    pub mtime_ns: i64,
    pub xattrs: Vec<(String, Vec<u8>)>,
}

impl Attributes {
    /// Owner first: a change of owner drops set-id bits and file capabilities.
    pub fn set(&self, host: &Path, is_link: bool) -> Result<(), UnpackError> {
        self.set_owner_and_mode(host, is_link)?;
        self.set_time(host)
    }

    fn set_owner_and_mode(&self, host: &Path, is_link: bool) -> Result<(), UnpackError> {
        let id = |id: u64| u32::try_from(id).map_err(|_| io::Error::other("no such owner"));
        let (uid, gid) = (
            id(self.uid).map_err(failed(host))?,
            id(self.gid).map_err(failed(host))?,
        );
        lchown(host, Some(uid), Some(gid)).map_err(failed(host))?;
        if !is_link {
            fs::set_permissions(host, Permissions::from_mode(self.mode)).map_err(failed(host))?;
        }
        for (name, value) in &self.xattrs {
            match rustix::fs::lsetxattr(host, name.as_str(), value, XattrFlags::empty()) {
                // A file system or a kind of file that carries none.
                Ok(()) | Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::PERM) => {}
                Err(errno) => return Err(failed(host)(errno.into())),
            }
        }
        Ok(())
    }

    fn set_time(&self, host: &Path) -> Result<(), UnpackError> {
        let time = Timespec {
            tv_sec: self.mtime,
            tv_nsec: self.mtime_ns,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(CWD, host, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(io::Error::from)
            .map_err(failed(host))
    }

    fn of(found: &Metadata) -> Self {
        Self {
            mode: found.mode() & 0o7777,
            uid: found.uid().into(),
            gid: found.gid().into(),
            mtime: found.mtime(),
            mtime_ns: found.mtime_nsec(),
            xattrs: Vec::new(),
        }
    }
}

pub struct Tree<'a> {
    root: &'a Path,
    lowers: &'a [PathBuf],
    /// Their times are set last: writing into a directory changes its own.
    directories: Vec<(PathBuf, Attributes)>,
    room: Room,
}

enum Lower {
    Directory(Attributes),
    Link(PathBuf),
    File(PathBuf),
    Nothing,
}

impl<'a> Tree<'a> {
    pub fn new(root: &'a Path, lowers: &'a [PathBuf]) -> Self {
        Self {
            root,
            lowers,
            directories: Vec::new(),
            room: Room::default(),
        }
    }

    pub fn host(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Before something of that size is written.
    pub fn make_room(&mut self, path: &Path, size_bytes: u64) -> Result<(), UnpackError> {
        let taken = self.room.take(self.root, size_bytes);
        taken.map_err(failed(&self.host(path)))
    }

    pub fn set_root(&mut self, attributes: Attributes) -> Result<(), UnpackError> {
        attributes.set_owner_and_mode(self.root, false)?;
        self.directories.push((PathBuf::new(), attributes));
        Ok(())
    }

    /// The real directory behind these parts; makes what is missing, as the layers below have it.
    pub fn enter(&mut self, parts: &[&OsStr]) -> Result<PathBuf, UnpackError> {
        let mut pending: VecDeque<OsString> = parts.iter().map(|&part| part.to_owned()).collect();
        let mut at = PathBuf::new();
        let mut links = 0;
        while let Some(part) = pending.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            let host = self.host(&next);
            let link = match fs::symlink_metadata(&host) {
                Ok(found) if found.is_dir() => None,
                Ok(found) if found.is_symlink() => {
                    Some(fs::read_link(&host).map_err(failed(&host))?)
                }
                Ok(found) => {
                    remove(&host).map_err(failed(&host))?;
                    self.make_directory(&next, is_whiteout(&found))?;
                    None
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.imply(&next)?,
                Err(error) => return Err(failed(&host)(error)),
            };
            let Some(link) = link else {
                at = next;
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Err(UnpackError::Escapes(next));
            }
            follow(&link, &mut at, &mut pending);
        }
        Ok(at)
    }

    /// Makes a directory no entry spoke of, or tells the link that a layer below has there.
    fn imply(&mut self, path: &Path) -> Result<Option<PathBuf>, UnpackError> {
        let attributes = match self.below(path) {
            Lower::Link(target) => return Ok(Some(target)),
            Lower::Directory(attributes) => Some(attributes),
            Lower::File(_) | Lower::Nothing => None,
        };
        self.make_directory(path, false)?;
        if let Some(attributes) = attributes {
            attributes.set_owner_and_mode(&self.host(path), false)?;
            self.directories.push((path.to_owned(), attributes));
        }
        Ok(None)
    }

    fn make_directory(&self, path: &Path, opaque: bool) -> Result<(), UnpackError> {
        let host = self.host(path);
        fs::create_dir(&host).map_err(failed(&host))?;
        fs::set_permissions(&host, Permissions::from_mode(0o755)).map_err(failed(&host))?;
        match opaque {
            true => self.set_opaque(path),
            false => Ok(()),
        }
    }

    /// What the layers below show at a path.
    fn below(&self, path: &Path) -> Lower {
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent
            .ancestors()
            .any(|ancestor| is_opaque(&self.host(ancestor)))
        {
            return Lower::Nothing;
        }
        for lower in self.lowers {
            let mut covers = false;
            let mut at = lower.clone();
            let mut found = None;
            for part in path.components() {
                covers |= is_opaque(&at);
                at.push(part);
                found = fs::symlink_metadata(&at).ok();
                match &found {
                    Some(metadata) if is_whiteout(metadata) => return Lower::Nothing,
                    Some(_) => {}
                    None => break,
                }
            }
            match found {
                Some(found) if found.is_dir() => return Lower::Directory(Attributes::of(&found)),
                Some(found) if found.is_symlink() => {
                    return fs::read_link(&at).map_or(Lower::Nothing, Lower::Link);
                }
                Some(_) => return Lower::File(at),
                None if covers => return Lower::Nothing,
                None => {}
            }
        }
        Lower::Nothing
    }

    /// Removes what an earlier entry of this layer put there.
    pub fn clear(&self, path: &Path) -> Result<(), UnpackError> {
        let host = self.host(path);
        remove(&host).map_err(failed(&host))
    }

    pub fn directory(&mut self, path: &Path, attributes: Attributes) -> Result<(), UnpackError> {
        let host = self.host(path);
        match fs::symlink_metadata(&host) {
            Ok(found) if found.is_dir() => {}
            Ok(found) => {
                self.clear(path)?;
                self.make_directory(path, is_whiteout(&found))?;
            }
            Err(_) => self.make_directory(path, false)?,
        }
        attributes.set_owner_and_mode(&host, false)?;
        self.directories.push((path.to_owned(), attributes));
        Ok(())
    }

    /// Within the layer, or a copy of a lower layer's file: a link cannot cross layers.
    pub fn hard_link(
        &mut self,
        path: &Path,
        target: &[&OsStr],
        name: &Path,
        said: &Path,
    ) -> Result<(), UnpackError> {
        let missing = || UnpackError::NoTarget {
            path: name.to_owned(),
            target: said.to_owned(),
        };
        let (last, parents) = target.split_last().ok_or_else(missing)?;
        let target = self.enter(parents)?.join(last);
        if target == path {
            return Ok(());
        }
        let (host, source) = (self.host(path), self.host(&target));
        match fs::symlink_metadata(&source) {
            Ok(found) if found.is_dir() || is_whiteout(&found) => return Err(missing()),
            Ok(_) => {
                self.clear(path)?;
                return fs::hard_link(&source, &host).map_err(failed(&host));
            }
            Err(_) => {}
        }
        let Lower::File(source) = self.below(&target) else {
            return Err(missing());
        };
        let found = fs::symlink_metadata(&source).map_err(failed(&source))?;
        if !found.is_file() {
            return Err(missing());
        }
        self.make_room(path, found.len())?;
        self.clear(path)?;
        fs::copy(&source, &host).map_err(failed(&host))?;
        Attributes::of(&found).set(&host, false)
    }

    /// A whiteout speaks of the layers below only: what this layer has there stays.
    pub fn hide(&self, path: &Path) -> Result<(), UnpackError> {
        let host = self.host(path);
        match fs::symlink_metadata(&host) {
            Ok(found) if found.is_dir() => self.set_opaque(path),
            Ok(_) => Ok(()),
            Err(_) => make_whiteout(&host),
        }
    }

    pub fn set_opaque(&self, path: &Path) -> Result<(), UnpackError> {
        let host = self.host(path);
        rustix::fs::lsetxattr(&host, OPAQUE, b"y", XattrFlags::empty())
            .map_err(io::Error::from)
            .map_err(failed(&host))
    }

    pub fn finish(self) -> Result<(), UnpackError> {
        for (path, attributes) in self.directories.iter().rev() {
            let host = self.root.join(path);
            // A later entry may have put something else in its place.
            if fs::symlink_metadata(&host).is_ok_and(|found| found.is_dir()) {
                attributes.set_time(&host)?;
            }
        }
        Ok(())
    }
}

/// Goes on at a link's target, still inside the root: `enter` ends `..` at the root.
fn follow(link: &Path, at: &mut PathBuf, pending: &mut VecDeque<OsString>) {
    if link.is_absolute() {
        at.clear();
    }
    for component in link.components().rev() {
        match component {
            Component::ParentDir => pending.push_front("..".into()),
            Component::Normal(part) => pending.push_front(part.to_owned()),
            _ => {}
        }
    }
}

fn is_whiteout(found: &Metadata) -> bool {
    found.file_type().is_char_device() && found.rdev() == 0
}

fn is_opaque(host: &Path) -> bool {
    let mut value = [0u8; 2];
    rustix::fs::lgetxattr(host, OPAQUE, &mut value).is_ok_and(|length| value[..length] == *b"y")
}
