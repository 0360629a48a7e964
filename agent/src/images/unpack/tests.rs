//! Layers as lines of text: what goes in, and what a directory shows of it.
#![allow(clippy::print_stderr)] // A skipped test says why.

use super::*;
use std::fmt::Write as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Builds a tar stream of lines such as `dir a 755`, `file a/b text`, `link a/l target`,
/// `hard a/h a/b`, `node a/n 1 3`. Names are written as they are, whatever they say.
fn layer(script: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let words: Vec<&str> = line.split(' ').collect();
        let mut header = tar::Header::new_gnu();
        let (mut data, mut mode) = (Vec::new(), 0o644);
        let target = |header: &mut tar::Header, target: &str| {
            let bytes = target.as_bytes();
            header.as_gnu_mut().unwrap().linkname[..bytes.len()].copy_from_slice(bytes);
        };
        let kind = match words[0] {
            "dir" => {
                mode = words
                    .get(2)
                    .map_or(0o755, |m| u32::from_str_radix(m, 8).unwrap());
                tar::EntryType::Directory
            }
            "file" => {
                data = words
                    .get(2)
                    .map_or(Vec::new(), |text| text.as_bytes().to_vec());
                tar::EntryType::Regular
            }
            "link" => {
                target(&mut header, words[2]);
                tar::EntryType::Symlink
            }
            "hard" => {
                target(&mut header, words[2]);
                tar::EntryType::Link
            }
            "node" => {
                header.set_device_major(words[2].parse().unwrap()).unwrap();
                header.set_device_minor(words[3].parse().unwrap()).unwrap();
                tar::EntryType::Char
            }
            other => panic!("{other}"),
        };
        header.set_entry_type(kind);
        let name = words[1].as_bytes();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name);
        header.set_mode(mode);
        header.set_uid(if words[0] == "file" { 7 } else { 0 });
        header.set_gid(0);
        header.set_mtime(1_000_000);
        header.set_size(data.len() as u64);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        data.resize(data.len().next_multiple_of(512), 0);
        out.extend_from_slice(&data);
    }
    out.resize(out.len() + 1024, 0);
    out
}

struct Stack {
    directory: tempfile::TempDir,
    /// Topmost first.
    layers: Vec<PathBuf>,
}

impl Stack {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            layers: Vec::new(),
        }
    }

    fn add(&mut self, script: &str) -> Result<PathBuf, String> {
        let root = self.directory.path().join(self.layers.len().to_string());
        fs::create_dir(&root).unwrap();
        unpack(layer(script).as_slice(), &root, &self.layers)
            .map_err(|error| crate::error::chain(&error))?;
        self.layers.insert(0, root.clone());
        Ok(root)
    }
}

/// One line a path: kind, mode, owner, and what is in it.
fn show(root: &Path) -> String {
    let mut text = String::new();
    let mut pending = vec![root.to_owned()];
    let mut paths = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                pending.push(path.clone());
            }
            paths.push(path);
        }
    }
    paths.sort();
    for path in paths {
        let found = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().display();
        let mode = found.mode() & 0o7777;
        let _ = match found.file_type() {
            kind if kind.is_dir() => writeln!(text, "dir {name} {mode:o} {}", found.uid()),
            kind if kind.is_symlink() => {
                writeln!(
                    text,
                    "link {name} {}",
                    fs::read_link(&path).unwrap().display()
                )
            }
            kind if kind.is_char_device() => writeln!(text, "node {name} {}", found.rdev()),
            _ => {
                let content = fs::read_to_string(&path).unwrap();
                writeln!(text, "file {name} {mode:o} {} {content}", found.uid())
            }
        };
    }
    text
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: owners and devices need root");
    }
    root
}

fn check(script: &str, expected: &expect_test::Expect) {
    let mut stack = Stack::new();
    let shown = match stack.add(script) {
        Ok(root) => show(&root),
        Err(text) => text,
    };
    expected.assert_eq(&shown);
    // Whatever it was, nothing came to be beside the layer.
    assert_eq!(fs::read_dir(stack.directory.path()).unwrap().count(), 1);
}

#[test]
fn entries_come_out_as_they_went_in() {
    if !is_root() {
        return;
    }
    check(
        "dir ./ 755
         dir etc 750
         file etc/a text
         link etc/l ../a/b
         hard etc/h etc/a
         node null 1 3
         file /abs/olute x
         file etc/a newer",
        &expect_test::expect![[r#"
            dir abs 755 0
            file abs/olute 644 7 x
            dir etc 750 0
            file etc/a 644 7 newer
            file etc/h 644 7 text
            link etc/l ../a/b
            node null 259
        "#]],
    );
    let mut stack = Stack::new();
    let root = stack.add("dir d 700\nfile d/f x").unwrap();
    assert_eq!(fs::metadata(root.join("d")).unwrap().mtime(), 1_000_000);
    assert_eq!(fs::metadata(root.join("d/f")).unwrap().mtime(), 1_000_000);
}

#[test]
fn nothing_leaves_the_layer() {
    if !is_root() {
        return;
    }
    for (script, refused) in [
        ("file ../out x", "points outside"),
        ("file a/../../out x", "points outside"),
        ("dir a\nhard h ../../etc/passwd", "points outside"),
        ("hard h nowhere", "has no target"),
        ("file .wh... x", "names nothing"),
        ("link a b\nlink b a\nfile a/x y", "points outside"),
    ] {
        let text = Stack::new().add(script).unwrap_err();
        assert!(text.contains(refused), "{script}: {text}");
    }
    // Links are followed inside the layer, as a container would see them.
    check(
        "link up ../../..
         file up/a x
         link abs /etc
         file abs/b y
         link deep abs/../abs
         file deep/c z
         hard h /up/a
         node hidden 0 0",
        &expect_test::expect![[r#"
            file a 644 7 x
            link abs /etc
            link deep abs/../abs
            dir etc 755 0
            file etc/b 644 7 y
            file etc/c 644 7 z
            file h 644 7 x
            link up ../../..
        "#]],
    );
    // A link in the place of a file is replaced, not written through.
    check(
        "link victim /etc/passwd
         file victim mine",
        &expect_test::expect![[r#"
            file victim 644 7 mine
        "#]],
    );
}

fn opaque(path: &Path) -> bool {
    let mut value = [0u8; 8];
    rustix::fs::lgetxattr(path, "trusted.overlay.opaque", &mut value).is_ok()
}

#[test]
fn whiteouts_become_those_of_overlayfs() {
    if !is_root() {
        return;
    }
    let mut stack = Stack::new();
    stack
        .add("dir d\nfile d/a x\nfile d/b x\ndir e\nfile gone x")
        .unwrap();
    let top = stack
        .add("file .wh.gone\nfile d/.wh.a\nfile e/.wh..wh..opq\nfile e/new x\nfile .wh..wh.plnk x")
        .unwrap();
    expect_test::expect![[r#"
        dir d 755 0
        node d/a 0
        dir e 755 0
        file e/new 644 7 x
        node gone 0
    "#]]
    .assert_eq(&show(&top));
    assert!(opaque(&top.join("e")) && !opaque(&top.join("d")));
    // Hidden and made anew in one layer: what lay below stays hidden, in either order.
    let mut stack = Stack::new();
    stack
        .add("dir d\nfile d/old x\ndir e\nfile e/old x")
        .unwrap();
    let top = stack
        .add("file .wh.d\ndir d\nfile d/new x\ndir e\nfile .wh.e")
        .unwrap();
    assert!(opaque(&top.join("d")) && opaque(&top.join("e")));
}

#[test]
fn what_a_layer_only_implies_is_as_below() {
    if !is_root() {
        return;
    }
    let mut stack = Stack::new();
    stack
        .add("dir tmp 1777\nlink lib usr/lib\ndir usr\ndir usr/lib 711\nfile usr/lib/f low")
        .unwrap();
    let top = stack
        .add("file tmp/x a\nfile lib/y b\nhard copy usr/lib/f")
        .unwrap();
    expect_test::expect![[r#"
        file copy 644 7 low
        dir tmp 1777 0
        file tmp/x 644 7 a
        dir usr 755 0
        dir usr/lib 711 0
        file usr/lib/y 644 7 b
    "#]]
    .assert_eq(&show(&top));
    // Not what an intermediate layer took away.
    stack.add("file .wh.tmp").unwrap();
    let top = stack.add("file tmp/z a").unwrap();
    assert!(show(&top).contains("dir tmp 755 0"));
}

#[test]
fn extended_attributes_are_kept_but_for_those_of_the_host() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut builder = tar::Builder::new(Vec::new());
    let attributes: [(&str, &[u8]); 3] = [
        ("SCHILY.xattr.user.note", b"kept"),
        ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
        ("mtime", b"5.25"),
    ];
    builder.append_pax_extensions(attributes).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(0);
    header.set_mode(0o4755);
    header.set_entry_type(tar::EntryType::Regular);
    builder.append_data(&mut header, "f", &b""[..]).unwrap();
    unpack(
        builder.into_inner().unwrap().as_slice(),
        directory.path(),
        &[],
    )
    .unwrap();
    let file = directory.path().join("f");
    let mut value = [0u8; 16];
    match rustix::fs::lgetxattr(&file, "user.note", &mut value) {
        Ok(length) => assert_eq!(&value[..length], b"kept"),
        // A file system without user attributes; they are not worth an error then either.
        Err(errno) => assert_eq!(errno, rustix::io::Errno::OPNOTSUPP),
    }
    assert!(rustix::fs::lgetxattr(&file, "trusted.overlay.redirect", &mut value).is_err());
    let found = fs::metadata(&file).unwrap();
    assert_eq!(
        (found.mtime(), found.mtime_nsec(), found.mode() & 0o7777),
        (5, 250_000_000, 0o4755)
    );
}

proptest::proptest! {
    /// Any bytes: an error or a layer, no panic, nothing beside it.
    #[test]
    fn any_stream_is_survived(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..4096)) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("layer");
        fs::create_dir(&root).unwrap();
        let _ = unpack(bytes.as_slice(), &root, &[]);
        proptest::prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_file_that_the_disk_has_no_room_for_is_refused_before_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("bomb").unwrap();
    header.set_mode(0o644);
    header.set_size(1 << 60);
    header.set_cksum();
    // As much as comes: an unpacker that only counts would write until the disk is full.
    let stream = header.as_bytes().chain(io::repeat(0));
    let error = unpack(stream, directory.path(), &[]).unwrap_err();
    let text = crate::error::chain(&error);
    assert!(text.contains("No space left on device"), "{text}");
    assert!(!directory.path().join("bomb").exists());
}

/// A disk of 8 MiB and 1000 inodes, for as long as it is used.
fn on_small_disk(test: impl FnOnce(&Path)) {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (at, flags) = (directory.path(), nix::mount::MsFlags::empty());
    let size = Some("size=8m,nr_inodes=1000");
    nix::mount::mount(Some("tmpfs"), at, Some("tmpfs"), flags, size).unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(at)));
    nix::mount::umount(at).unwrap();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn files(count: usize, size_bytes: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let bytes = vec![0; size_bytes];
    for number in 0..count {
        let mut header = tar::Header::new_gnu();
        header.set_size(size_bytes as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        let name = format!("f{number}");
        builder
            .append_data(&mut header, name, bytes.as_slice())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

/// Each is held in memory before its entry is known.
#[test]
fn names_and_attributes_have_an_end() {
    for kind in [b'L', b'K', b'x'] {
        let directory = tempfile::tempdir().unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_path("long").unwrap();
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(64 << 20);
        header.set_cksum();
        let stream = header.as_bytes().chain(io::repeat(b'a').take(65 << 20));
        let error = unpack(stream, directory.path(), &[]).unwrap_err();
        let text = crate::error::chain(&error);
        assert!(text.contains("a header of more than"), "{text}");
    }
}

#[test]
fn neither_small_files_nor_copies_take_all_of_a_disk() {
    let refused = |bytes: &[u8], root: &Path, lowers: &[PathBuf]| {
        fs::create_dir(root).unwrap();
        let error = unpack(bytes, root, lowers).unwrap_err();
        let text = crate::error::chain(&error);
        assert!(text.contains("No space left on device"), "{text}");
        let disk = rustix::fs::statvfs(root).unwrap();
        assert!(disk.f_bavail > 0 && disk.f_favail > 0, "no room is left");
    };
    on_small_disk(|disk| refused(&files(40, 512 << 10), &disk.join("small"), &[]));
    on_small_disk(|disk| refused(&files(2000, 0), &disk.join("empty"), &[]));
    on_small_disk(|disk| {
        let below = disk.join("below");
        fs::create_dir(&below).unwrap();
        unpack(files(1, 1 << 20).as_slice(), &below, &[]).unwrap();
        let copies: String = (0..20).map(|n| format!("hard h{n} f0\n")).collect();
        refused(&layer(&copies), &disk.join("copies"), &[below]);
    });
}
