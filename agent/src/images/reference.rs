//! Image names, made whole as docker and containerd make them: `busybox` is
//! `docker.io/library/busybox:latest`. Error texts are those of distribution's reference package.

use std::fmt;

/// Of the whole name without tag and digest.
const NAME_CHARS_MAX: usize = 255;
const TAG_CHARS_MAX: usize = 128;

#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReferenceError {
    #[error("invalid reference format")]
    Format,
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Lowercase(String),
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    LooksLikeId(String),
    #[error("repository name must have at least one component")]
    Empty,
}

/// A name with a tag, a digest or both. Without either the tag is `latest`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    pub domain: String,
    pub path: String,
    pub tag: Option<String>,
    pub digest: Option<String>,
}

impl Reference {
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if text.len() == 64 && text.bytes().all(is_lower_hex) {
            return Err(ReferenceError::LooksLikeId(text.to_owned()));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) if is_digest(digest) => (rest, Some(digest.to_owned())),
            Some(_) => return Err(ReferenceError::Format),
            None => (text, None),
        };
        let (domain, remainder) = split_domain(rest);
        let (path, tag) = match remainder.split_once(':') {
            Some((path, tag)) if is_tag(tag) => (path, Some(tag.to_owned())),
            Some(_) => return Err(ReferenceError::Format),
            None => (remainder.as_str(), None),
        };
        check_path(path)?;
        if !is_domain(&domain) {
            return Err(ReferenceError::Format);
        }
        if domain.len() + 1 + path.len() > NAME_CHARS_MAX {
            return Err(ReferenceError::TooLong);
        }
        let tag = match (&tag, &digest) {
            (None, None) => Some("latest".to_owned()),
            _ => tag,
        };
        Ok(Self {
            domain,
            path: path.to_owned(),
            tag,
            digest,
        })
    }

    /// `docker.io/library/busybox`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.domain, self.path)
    }

    /// With the digest, else with the tag.
    pub fn canonical(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => format!("{}@{digest}", self.name()),
            (None, Some(tag)) => format!("{}:{tag}", self.name()),
            (None, None) => self.name(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// `sha256:` and 64 hexadecimal digits: the one algorithm the store keeps.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_lower_hex))
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

fn split_domain(name: &str) -> (String, String) {
    let (domain, remainder) = match name.split_once('/') {
        Some((first, rest)) if is_domain_like(first) => (first, rest),
        _ => ("docker.io", name),
    };
    let domain = if domain == "index.docker.io" {
        "docker.io"
    } else {
        domain
    };
    if domain == "docker.io" && !remainder.contains('/') {
        return (domain.to_owned(), format!("library/{remainder}"));
    }
    (domain.to_owned(), remainder.to_owned())
}

fn is_domain_like(first: &str) -> bool {
    first.contains(['.', ':'])
        || first == "localhost"
        || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let port_fits =
        port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let address = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let host_fits = match address {
        Some(address) => address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'),
        None => host.split('.').all(|label| {
            let alphanumeric = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
            alphanumeric(label.as_bytes().first())
                && alphanumeric(label.as_bytes().last())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        }),
    };
    port_fits && host_fits
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_CHARS_MAX
        && tag.bytes().next().is_some_and(word)
        && tag
            .bytes()
            .all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

fn check_path(path: &str) -> Result<(), ReferenceError> {
    if path.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(ReferenceError::Lowercase(path.to_owned()));
    }
    match path.split('/').all(is_path_component) {
        true => Ok(()),
        false => Err(ReferenceError::Format),
    }
}

/// Lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_path_component(component: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends_plain = |byte: Option<&u8>| byte.is_some_and(|byte| plain(*byte));
    if !ends_plain(bytes.first()) || !ends_plain(bytes.last()) {
        return false;
    }
    component
        .split(|c: char| c.is_ascii() && plain(c as u8))
        .all(|joint| {
            matches!(joint, "" | "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-')
        })
}

#[cfg(test)]
mod tests;
