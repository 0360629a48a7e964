//! The files with manifests, and when they change.

use coracle_agent::FileWatch;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of one file; what it says must also fit a ConfigMap as a list of names.
const FILE_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: usize = 500;
/// While names come and go.
const READS_MAX: usize = 5;
/// What is written in several steps is looked at once.
const SETTLE: Duration = Duration::from_millis(200);
/// A file that was written nearer to now may still be being written.
const YOUNG: Duration = Duration::from_millis(500);
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Changes when the file does: where, when and how long it is.
pub type Stamp = (u64, i64, i64, u64);

/// One file, as it was read.
#[derive(Clone, Debug)]
pub struct File {
    pub name: String,
    pub stamp: Stamp,
    pub text: Result<String, String>,
    pub is_young: bool,
}

/// What there is to see of the directory.
#[derive(Debug)]
pub enum Seen {
    Missing,
    /// For a while, it is to be hoped.
    Unreadable,
    /// By name.
    Files(Vec<File>),
}

#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// None where the kernel does not tell of anything.
    watch: Option<FileWatch>,
    is_told: bool,
}

impl Directory {
    /// Needs a tokio runtime.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            watch: None,
            is_told: false,
        }
    }

    /// From now on changes are noticed: of the directory, or of its parent until there is one.
    pub fn watch(&mut self) {
        let own = || FileWatch::of_directory(&self.path);
        let parent = || FileWatch::of_directory(self.path.parent().unwrap_or(&self.path));
        // It may come between the two.
        let late = |parent| own().unwrap_or(parent);
        self.watch = own().or_else(|_| parent().map(late)).ok();
    }

    /// Ends when something has changed, and has come to rest.
    pub async fn changed(&self) {
        match &self.watch {
            Some(watch) => drop(watch.changed().await),
            None => std::future::pending().await,
        }
        tokio::time::sleep(SETTLE).await;
    }

    pub fn read(&mut self) -> Seen {
        match read(&self.path) {
            Ok(files) => {
                self.is_told = false;
                Seen::Files(files)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Seen::Missing,
            Err(error) => {
                if !self.is_told {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "manifests stay as they are: cannot read");
                }
                self.is_told = true;
                Seen::Unreadable
            }
        }
    }
}

/// A file that is renamed meanwhile may be in a list under neither name, or gone when it is read:
/// only what is listed the same before and after counts.
fn read(directory: &Path) -> io::Result<Vec<File>> {
    let mut paths = list(directory)?;
    for _ in 0..READS_MAX {
        let files: Vec<File> = paths.iter().filter_map(|path| file(path)).collect();
        let after = list(directory)?;
        if after == paths && files.len() == paths.len() {
            return Ok(files);
        }
        paths = after;
    }
    Err(io::Error::other("it does not come to rest"))
}

/// The plain files with one of the endings whose names do not begin with a dot, and what may be
/// such files but cannot be looked at, like a link to a disk that is not mounted.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_ours = ending.is_some_and(|ending| ENDINGS.contains(&ending));
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        let may_be_plain = || fs::metadata(&path).map_or(true, |found| found.is_file());
        if is_ours && !is_hidden && may_be_plain() {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.len() > FILES_MAX {
        return Err(io::Error::other(format!(
            "there are {} manifests; {FILES_MAX} are the most",
            paths.len()
        )));
    }
    Ok(paths)
}

/// None for one that went meanwhile.
fn file(path: &Path) -> Option<File> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) => {
            fs::symlink_metadata(path).ok()?;
            return Some(File {
                name,
                stamp: Stamp::default(),
                text: Err(format!("cannot be read: {error}")),
                is_young: false,
            });
        }
    };
    let stamp = (found.ino(), found.mtime(), found.mtime_nsec(), found.len());
    let age = found.modified().ok()?.elapsed();
    Some(File {
        name,
        stamp,
        text: text(path).map_err(|error| format!("cannot be read: {error}")),
        // One from the future says nothing.
        is_young: age.is_ok_and(|age| age < YOUNG),
    })
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
