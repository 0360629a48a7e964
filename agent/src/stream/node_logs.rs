//! `/logs/`: the files of `/var/log`, as the kubelet serves them.
//!
//! Pods that mount that directory may write to it: nothing outside of it is opened, whatever
//! links there are, and nothing but directories and plain files is read.

use super::answer::{Body, channel, full, refuse};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Response, StatusCode};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::sync::mpsc;

const ROOT: &str = "/var/log";
/// Read from a file at one time.
const BLOCK_BYTES: usize = 64 * 1024;
/// Names of one directory; the rest is left out.
const NAMES_MAX: usize = 10_000;

enum Found {
    File(File, u64),
    Directory(Vec<String>),
}

/// `path` is decoded, with what follows `/logs/`.
pub async fn answer(path: String) -> Response<Body> {
    answer_below(Path::new(ROOT), path).await
}

async fn answer_below(root: &Path, path: String) -> Response<Body> {
    let (root, wanted) = (root.to_owned(), path.clone());
    let opened = tokio::task::spawn_blocking(move || open(&root, &wanted)).await;
    let is_directory_path = path.is_empty() || path.ends_with('/');
    match opened.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(Found::Directory(_)) if !is_directory_path => moved(&format!("{}/", last(&path))),
        Ok(Found::Directory(names)) => listing(&names),
        Ok(Found::File(..)) if is_directory_path => moved(&format!("../{}", last(&path))),
        Ok(Found::File(file, length)) => send(file, length),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => refuse(StatusCode::NOT_FOUND, "404 page not found\n"),
            io::ErrorKind::PermissionDenied | io::ErrorKind::CrossesDevices => {
                refuse(StatusCode::FORBIDDEN, "403 Forbidden\n")
            }
            _ => refuse(
                StatusCode::INTERNAL_SERVER_ERROR,
                "500 Internal Server Error\n",
            ),
        },
    }
}

fn open(root: &Path, path: &str) -> io::Result<Found> {
    let root = rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let path = match path.trim_matches('/') {
        "" => ".",
        path => path,
    };
    // A pipe is not waited for, and a terminal not taken.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve)?;
    let stat = rustix::fs::fstat(&opened)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => names(opened).map(Found::Directory),
        FileType::RegularFile => {
            let length = u64::try_from(stat.st_size).unwrap_or(0);
            Ok(Found::File(File::from(opened), length))
        }
        _ => Err(Errno::ACCESS.into()),
    }
}

/// Sorted; those of directories end in a slash.
fn names(opened: OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::new(opened)?.take(NAMES_MAX) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            _ if name == "." || name == ".." => {}
            FileType::Directory => names.push(format!("{name}/")),
            _ => names.push(name),
        }
    }
    names.sort();
    Ok(names)
}

fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

fn moved(to: &str) -> Response<Body> {
    let mut response = refuse(StatusCode::MOVED_PERMANENTLY, "");
    if let Ok(value) = HeaderValue::from_str(&encoded(to)) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

fn listing(names: &[String]) -> Response<Body> {
    let mut page = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n\
                    <pre>\n"
        .to_owned();
    for name in names {
        let (link, shown) = (encoded(name), escaped(name));
        page.push_str(&format!("<a href=\"{link}\">{shown}</a>\n"));
    }
    page.push_str("</pre>\n");
    let mut response = Response::new(full(page));
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn escaped(name: &str) -> String {
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    name.replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}

/// A colon in the first part would be read as a scheme.
fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// As much as there was when it was opened: a log that grows would never end.
fn send(file: File, length: u64) -> Response<Body> {
    let (chunks, body) = channel();
    tokio::task::spawn_blocking(move || read(file.take(length), &chunks));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn read(mut file: impl Read, chunks: &mpsc::Sender<Bytes>) {
    loop {
        let mut block = vec![0; BLOCK_BYTES];
        // One that was cut short meanwhile ends early, and whoever reads sees that by its length.
        let Ok(count @ 1..) = file.read(&mut block) else {
            return;
        };
        block.truncate(count);
        if chunks.blocking_send(block.into()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
