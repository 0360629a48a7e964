//! `/var/lib/kubelet`: where drivers' manifests look for a node's pods, sockets and volumes. Here
//! it is a link to the agent's own directory, so that what is below it has one place.

use crate::AgentError;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const USUAL: &str = "/var/lib/kubelet";
/// Of the agent's own directory: the path of the link that was made.
const RECORD: &str = "kubelet-dir";

/// Where the link is wanted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum KubeletDir {
    /// Nowhere: drivers are told the agent's own directory.
    #[default]
    Own,
    /// At the usual path, when nothing else is there.
    Usual,
    /// There, or the agent does not start.
    Asked(PathBuf),
}

/// Makes the link, and answers with the directory as drivers are told of it.
pub fn link(root: &Path, wanted: &KubeletDir) -> Result<PathBuf, AgentError> {
    let path = match wanted {
        KubeletDir::Own => return Ok(root.to_owned()),
        KubeletDir::Usual => Path::new(USUAL),
        KubeletDir::Asked(path) if path == root => return Ok(root.to_owned()),
        KubeletDir::Asked(path) => path,
    };
    match (make(root, path), wanted) {
        (Ok(()), _) => Ok(path.to_owned()),
        (Err(error), KubeletDir::Usual) => {
            let (path, own) = (path.display(), root.display());
            tracing::info!(%error, "{path} is not this agent's: drivers are told {own}");
            Ok(root.to_owned())
        }
        (Err(source), _) => Err(AgentError::KubeletDir {
            path: path.to_owned(),
            source,
        }),
    }
}

fn make(root: &Path, path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() && fs::read_link(path)? == root => return Ok(()),
        // Only one that is empty can be removed so.
        Ok(meta) if meta.is_dir() => fs::remove_dir(path)?,
        Ok(_) => {
            let why = "something else is there";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::create_dir_all(root)?;
    // Written first: what is known of can be taken away.
    fs::write(root.join(RECORD), path.as_os_str().as_encoded_bytes())?;
    symlink(root, path)
}

/// Takes the link away, unless it leads elsewhere by now.
pub fn unlink(root: &Path) -> io::Result<()> {
    let record = root.join(RECORD);
    let path = match fs::read_to_string(&record) {
        Ok(path) => PathBuf::from(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let is_ours = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink())
        && fs::canonicalize(&path)
            .is_ok_and(|to| fs::canonicalize(root).is_ok_and(|root| to == root));
    if is_ours {
        fs::remove_file(&path)?;
    }
    fs::remove_file(record)
}

#[cfg(test)]
mod tests;
