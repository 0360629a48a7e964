//! The directory with the files of static pods.

use super::super::manifest;
use crate::file_watch::FileWatch;
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of one file, as upstream's.
const FILE_BYTES_MAX: u64 = 10 << 20;
/// A node runs some hundred pods at most.
const FILES_MAX: usize = 500;
/// What is written in several steps is looked at once.
const SETTLE: Duration = Duration::from_millis(200);

/// Changes when the file does: where, when and how long it is.
type Stamp = (u64, i64, i64, u64);

#[derive(Debug)]
struct Known {
    stamp: Stamp,
    /// The last that could be used.
    pod: Option<Pod>,
}

#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    node_name: String,
    files: BTreeMap<PathBuf, Known>,
    /// None where the kernel does not tell; then the interval has to do.
    watch: Option<FileWatch>,
    is_missing: bool,
}

impl Directory {
    /// Needs a tokio runtime.
    pub fn new(path: &Path, node_name: &str) -> Self {
        Self {
            path: path.to_owned(),
            node_name: node_name.to_owned(),
            files: BTreeMap::new(),
            watch: None,
            is_missing: false,
        }
    }

    /// Ends when something in the directory has changed, and has come to rest.
    pub async fn changed(&mut self) {
        if self.watch.is_none() {
            self.watch = FileWatch::of_directory(&self.path).ok();
        }
        match &self.watch {
            Some(watch) => drop(watch.changed().await),
            None => std::future::pending().await,
        }
        tokio::time::sleep(SETTLE).await;
        // The directory may be another one by now.
        self.watch = FileWatch::of_directory(&self.path).ok();
    }

    /// All pods that are described, by name of file; None when the directory cannot be read now.
    pub fn read(&mut self) -> Option<Vec<Pod>> {
        let paths = match list(&self.path) {
            Ok(paths) => paths,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !self.is_missing {
                    let path = self.path.display();
                    tracing::warn!(%path, "there is no directory of static pods");
                }
                self.is_missing = true;
                self.files.clear();
                return Some(Vec::new());
            }
            Err(error) => {
                let path = self.path.display();
                tracing::error!(%path, %error, "static pods stay as they are: cannot read");
                return None;
            }
        };
        self.is_missing = false;
        self.files.retain(|path, _| paths.contains(path));
        for path in paths {
            self.read_one(path);
        }
        let pods = self.files.values().filter_map(|known| known.pod.clone());
        Some(pods.collect())
    }

    fn read_one(&mut self, path: PathBuf) {
        let Ok(found) = fs::metadata(&path) else {
            return;
        };
        let stamp = (found.ino(), found.mtime(), found.mtime_nsec(), found.len());
        if self
            .files
            .get(&path)
            .is_some_and(|known| known.stamp == stamp)
        {
            return;
        }
        let pod = match read_text(&path) {
            Ok(text) => manifest::parse(&text, &path, &self.node_name),
            Err(error) => Err(error.to_string()),
        };
        let before = self.files.remove(&path).and_then(|known| known.pod);
        let pod = match pod {
            Ok(pod) => Some(pod),
            Err(error) => {
                let what = match &before {
                    Some(_) => "its pod goes on as it was",
                    None => "it is passed over",
                };
                tracing::error!(file = %path.display(), error, "a static pod's file is bad: {what}");
                before
            }
        };
        self.files.insert(path, Known { stamp, pod });
    }
}

/// The plain files whose names do not begin with a dot.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && fs::metadata(entry.path()).is_ok_and(|found| found.is_file()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    if paths.len() > FILES_MAX {
        tracing::error!(
            files = paths.len(),
            "too many static pods: the first {FILES_MAX} run"
        );
        paths.truncate(FILES_MAX);
    }
    Ok(paths)
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is larger than 10 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
