//! Paths below `proxy`, decoded, cleaned and encoded as Go does it. Pure.

use crate::request_info::RequestInfo;

/// What follows `proxy` in the request's path, with its leading slash; empty for nothing at all.
pub fn below(info: &RequestInfo) -> String {
    // The resource, its name and `proxy` itself.
    let below = info.place.parts.saturating_sub(3);
    let parts: Vec<&str> = info.path.trim_matches('/').split('/').collect();
    let parts = &parts[parts.len() - below..];
    let mut path: String = parts.iter().flat_map(|part| ["/", *part]).collect();
    if info.path.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    clean(&path)
}

/// What stands before the path in the request's own.
pub fn prefix(whole: &str, path: &str) -> String {
    whole.strip_suffix(path).unwrap_or(whole).to_owned()
}

/// Without empty, `.` and `..` parts; a slash at the end stays.
pub fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut clean: String = parts.iter().flat_map(|part| ["/", part]).collect();
    if path.ends_with('/') && !clean.ends_with('/') {
        clean.push('/');
    }
    clean
}

/// Escapes what a path may not have.
pub fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
