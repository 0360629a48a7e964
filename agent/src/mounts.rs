//! What is mounted, as the kernel's table of this process's mount namespace tells it.

use libcontainer::syscall::linux::{AT_EMPTY_PATH, AT_RECURSIVE, MOUNT_ATTR_RDONLY, MountAttr};
use libcontainer::syscall::syscall::create_syscall;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// What mount_setattr(2) changes of a mount: libcontainer's constants, and how what is mounted below
/// it spreads; 0 for no change.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Attributes {
    pub set: u64,
    pub clear: u64,
    pub propagation: u64,
    /// With `MOUNT_ATTR_IDMAP`: a user namespace, open.
    pub user_namespace: RawFd,
}

impl Attributes {
    pub const READ_ONLY: Self = Self {
        set: MOUNT_ATTR_RDONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
}

/// Changes the mount that an open file is on, and all below it when it is recursive. Linux 5.12.
pub fn set_attributes(
    mount: &impl AsFd,
    attributes: &Attributes,
    is_recursive: bool,
) -> io::Result<()> {
    let system = MountAttr {
        attr_set: attributes.set,
        attr_clr: attributes.clear,
        propagation: attributes.propagation,
        userns_fd: u64::from(attributes.user_namespace.cast_unsigned()),
    };
    let flags = AT_EMPTY_PATH | if is_recursive { AT_RECURSIVE } else { 0 };
    let (itself, size) = (Path::new(""), size_of::<MountAttr>());
    let done = create_syscall().mount_setattr(mount.as_fd(), itself, flags, &system, size);
    done.map_err(io::Error::other)
}

/// A copy of the mount at a path, or of all below it too, that is not attached anywhere. Linux 5.2.
pub fn copy(path: &Path, is_recursive: bool) -> io::Result<OwnedFd> {
    let recursive = if is_recursive { AT_RECURSIVE } else { 0 };
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive;
    let copied = create_syscall().open_tree(libc::AT_FDCWD, path.to_str(), flags);
    copied.map_err(io::Error::other)
}

/// One mount: where it is, and with whom it shares what is mounted below it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mounted {
    id: u64,
    pub point: PathBuf,
    /// What is mounted below it shows at its peers, and the other way.
    pub is_shared: bool,
    /// What is mounted below its master shows here.
    pub is_slave: bool,
    /// Of the file system: `ext4`, `cgroup2`.
    pub kind: String,
    pub options: String,
}

/// All of them, in the order they are stacked.
pub fn table() -> io::Result<Vec<Mounted>> {
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// A table as the kernel writes it.
pub fn parse(table: &str) -> Vec<Mounted> {
    table.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mounted> {
    let (own, of_file_system) = line.split_once(" - ")?;
    let fields: Vec<&str> = own.split(' ').collect();
    let [id, _parent, _device, _root, point, _options, optional @ ..] = fields.as_slice() else {
        return None;
    };
    let mut of_file_system = of_file_system.split(' ');
    let kind = of_file_system.next()?.to_owned();
    let _device = of_file_system.next()?;
    let has = |tag: &str| optional.iter().any(|field| field.starts_with(tag));
    Some(Mounted {
        id: id.parse().ok()?,
        point: PathBuf::from(unescape(point)),
        is_shared: has("shared:"),
        is_slave: has("master:"),
        kind,
        options: of_file_system.next().unwrap_or_default().to_owned(),
    })
}

/// The mount that an open file is on.
pub fn of(file: &impl AsRawFd) -> io::Result<Mounted> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let id = id.and_then(|id| id.trim().parse::<u64>().ok());
    let mut all = table()?.into_iter();
    let found = all.find(|mounted| Some(mounted.id) == id);
    found.ok_or_else(|| io::Error::other("its mount is not in the table"))
}

/// Whether something is mounted right there. The way there may have links; nothing is nowhere.
pub fn is_point(path: &Path) -> io::Result<bool> {
    let Some(real) = real(path)? else {
        return Ok(false);
    };
    Ok(table()?.iter().any(|mounted| mounted.point == real))
}

/// Mounts at a directory and below it, in the order they are stacked.
pub fn below(directory: &Path) -> io::Result<Vec<Mounted>> {
    let Some(real) = real(directory)? else {
        return Ok(Vec::new());
    };
    let mut all = table()?;
    all.retain(|mounted| mounted.point.starts_with(&real));
    Ok(all)
}

/// As the mount table has it.
fn real(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Detaches every mount at a directory and below it, the last one first.
pub fn unmount_below(directory: &Path) -> io::Result<()> {
    for mounted in below(directory)?.iter().rev() {
        umount2(&mounted.point, MntFlags::MNT_DETACH)?;
    }
    Ok(())
}

/// Sees to it that what is mounted below a directory shows in other mount namespaces that have it
/// shared. Where something is mounted below already nothing is changed.
pub fn make_shared(directory: &Path) -> io::Result<()> {
    let is_shared = of(&File::open(directory)?)?.is_shared;
    if is_shared || !below(directory)?.is_empty() {
        return Ok(());
    }
    let none = None::<&str>;
    mount(Some(directory), directory, none, MsFlags::MS_BIND, none)?;
    mount(none, directory, none, MsFlags::MS_SHARED, none)?;
    Ok(())
}

/// The mount table writes white space as `\040`.
fn unescape(field: &str) -> String {
    let mut out = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail
            .get(..3)
            .and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 8).ok());
        match code.filter(|_| *first == b'\\') {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
