//! Writes the files of a volume all at once: readers see either all of the old or all of the new.
//!
//! The files are in a directory of their own, `..<time>`, which the symbolic link `..data` points
//! to; each file's own name is a link through `..data`. Changing that one link changes all. The
//! layout is the kubelet's, which programs that watch their configuration rely on.

use super::{VolumeError, disk};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Component, Path, PathBuf};

const DATA: &str = "..data";
const DATA_NEXT: &str = "..data_tmp";
const DIRECTORY_MODE: u32 = 0o755;
/// What a group that owns the volume gets beside: to read, and in directories to look around.
const GROUP_FILE_MODE: u32 = 0o440;
const GROUP_DIRECTORY_MODE: u32 = 0o2550;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    pub mode: u32,
    pub owner: Option<u32>,
}

impl File {
    pub fn new(bytes: impl Into<Vec<u8>>, mode: i32) -> Self {
        Self {
            bytes: bytes.into(),
            mode: u32::try_from(mode).unwrap_or(0) & 0o777,
            owner: None,
        }
    }
}

/// By their paths in the volume, which may have directories in them.
pub type Files = BTreeMap<String, File>;

/// Makes the volume hold these files and no others. False when it does already.
pub fn write(
    root: &Path,
    files: &Files,
    group: Option<u32>,
    now: Timestamp,
) -> Result<bool, VolumeError> {
    for path in files.keys() {
        check_path(path)?;
    }
    let old = fs::read_link(root.join(DATA)).ok();
    let is_same = old
        .as_ref()
        .is_some_and(|old| holds(&root.join(old), files, group));
    if !is_same {
        let next = next_name(root, now);
        let directory = root.join(&next);
        let written = write_all(&directory, files, group)
            .map_err(disk("write", &directory))
            .and_then(|()| turn(root, &next).map_err(disk("change", root)));
        if written.is_err() {
            // It is tried again, and again: nothing may pile up. The first error is what counts.
            let _ = fs::remove_dir_all(&directory);
        }
        written?;
    }
    show(root, files).map_err(disk("change", root))?;
    if let Some(group) = group {
        give(root, group, GROUP_DIRECTORY_MODE).map_err(disk("change", root))?;
    }
    clear(root).map_err(disk("clear", root))?;
    Ok(!is_same)
}

fn check_path(path: &str) -> Result<(), VolumeError> {
    let mut parts = Path::new(path).components();
    let is_inside = !path.is_empty()
        && !path.starts_with("..")
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    is_inside
        .then_some(())
        .ok_or_else(|| VolumeError::FilePath(path.to_owned()))
}

/// A name that no directory here has had: two writes may come within one second.
fn next_name(root: &Path, now: Timestamp) -> PathBuf {
    let time = now.strftime("..%Y_%m_%d_%H_%M_%S");
    (0_u64..)
        .map(|number| {
            let number = u64::from(now.subsec_nanosecond().unsigned_abs()) + number;
            PathBuf::from(format!("{time}.{number}"))
        })
        .find(|name| !root.join(name).exists())
        .expect("some number is free")
}

fn write_all(directory: &Path, files: &Files, group: Option<u32>) -> io::Result<()> {
    make_directory(directory)?;
    for (path, file) in files {
        let mut parent = directory.to_owned();
        let inner = Path::new(path).parent().unwrap_or(Path::new(""));
        for part in inner.components() {
            parent.push(part);
            make_directory(&parent)?;
            if let Some(group) = group {
                give(&parent, group, GROUP_DIRECTORY_MODE)?;
            }
        }
        let full = directory.join(path);
        create(&full, file.mode)?.write_all(&file.bytes)?;
        // Not left to the umask.
        fs::set_permissions(&full, fs::Permissions::from_mode(file.mode))?;
        if let Some(owner) = file.owner {
            chown(&full, Some(owner), None)?;
        }
        if let Some(group) = group {
            give(&full, group, GROUP_FILE_MODE)?;
        }
    }
    match group {
        Some(group) => give(directory, group, GROUP_DIRECTORY_MODE),
        None => Ok(()),
    }
}

/// At no time may more users read it than in the end. What is there already was written just now:
/// paths such as `a` and `./a` are the same file.
fn create(path: &Path, mode: u32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    options.open(path)
}

fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(DIRECTORY_MODE))
}

/// To the group, with more bits of the mode.
fn give(path: &Path, group: u32, bits: u32) -> io::Result<()> {
    lchown(path, None, Some(group))?;
    let mode = fs::symlink_metadata(path)?.mode() & 0o7777;
    fs::set_permissions(path, fs::Permissions::from_mode(mode | bits))
}

/// From here on readers see the new directory.
fn turn(root: &Path, next: &Path) -> io::Result<()> {
    let link = root.join(DATA_NEXT);
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(next, &link)?;
    fs::rename(link, root.join(DATA))
}

/// The first part of a path: what is seen at the root of the volume.
fn first(path: &str) -> Option<PathBuf> {
    let mut parts = Path::new(path).components();
    let part = parts.find(|part| matches!(part, Component::Normal(_)))?;
    Some(PathBuf::from(part.as_os_str()))
}

/// Links what is there and takes away the links to what is not.
fn show(root: &Path, files: &Files) -> io::Result<()> {
    let wanted: BTreeSet<PathBuf> = files.keys().filter_map(|path| first(path)).collect();
    for name in &wanted {
        let link = root.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(name), &link)?;
        }
    }
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        let is_own = entry.file_name().to_string_lossy().starts_with("..");
        // What is no link was not made here: a mount point below the volume.
        if !is_own && !wanted.contains(&name) && entry.file_type()?.is_symlink() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what an older write left, or one that broke off.
fn clear(root: &Path) -> io::Result<()> {
    let current = fs::read_link(root.join(DATA))?;
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_string_lossy().starts_with("..");
        if is_ours && entry.file_type()?.is_dir() && *entry.file_name() != *current.as_os_str() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// True when a directory holds exactly these files.
fn holds(directory: &Path, files: &Files, group: Option<u32>) -> bool {
    let mut found = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(one) = open.pop() {
        let Ok(entries) = fs::read_dir(&one) else {
            return false;
        };
        for entry in entries.flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                found += 1;
            }
        }
    }
    let is_same = |(path, file): (&String, &File)| {
        let full = directory.join(path);
        let extra = group.map_or(0, |_| GROUP_FILE_MODE);
        let meta = fs::metadata(&full);
        let has_mode = meta.is_ok_and(|meta| meta.mode() & 0o777 == file.mode | extra);
        has_mode && fs::read(&full).is_ok_and(|bytes| bytes == file.bytes)
    };
    found == files.len() && files.iter().all(is_same)
}

#[cfg(test)]
mod tests;
