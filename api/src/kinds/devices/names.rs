//! Names of pools, devices, attributes and capacities.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::storage::driver_name;
use crate::meta_validate::invalid_each;
use crate::names;

const POOL_BYTES_MAX: usize = 253;
const IDENTIFIER_BYTES_MAX: usize = 32;

/// A pool: subdomains with slashes between.
pub fn pool(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if name.len() > POOL_BYTES_MAX {
        errors.push(FieldError::too_long(path, POOL_BYTES_MAX));
    }
    for part in name.split('/') {
        invalid_each(&mut errors, path, part, names::dns_subdomain(part));
    }
    errors
}

/// A device, a request, a counter: a DNS label.
pub fn label(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, name, names::dns_label(name));
    errors
}

/// An attribute or a capacity: an identifier, with the domain of its owner or without.
pub fn qualified(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => errors.extend(identifier(id, path)),
        [domain, id] => {
            if domain.is_empty() {
                let detail = "the domain must not be empty";
                errors.push(FieldError::invalid(path, "", detail));
            } else {
                errors.extend(driver_name(domain, path));
            }
            if id.is_empty() {
                errors.push(FieldError::invalid(path, "", "the name must not be empty"));
            } else {
                errors.extend(identifier(id, path));
            }
        }
        // Upstream lets more than one slash pass.
        _ => {}
    }
    errors
}

/// As `qualified`, and there is a domain.
pub fn fully_qualified(name: &str, path: &Path) -> ErrorList {
    let mut errors = qualified(name, path);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

fn identifier(id: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if id.len() > IDENTIFIER_BYTES_MAX {
        errors.push(FieldError::too_long(path, IDENTIFIER_BYTES_MAX));
    }
    invalid_each(&mut errors, path, id, names::c_identifier(id));
    errors
}

/// The identity of a share: a UUID in its normal form.
pub fn uid(uid: &str, path: &Path) -> ErrorList {
    const NORMAL: &str = "uid must be in RFC 4122 normalized form, \
                          `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal \
                          characters";
    let detail = if uid.len() != 36 {
        format!("error validating uid: invalid UUID length: {}", uid.len())
    } else if !has_form(uid) {
        "error validating uid: invalid UUID format".to_owned()
    } else if uid.bytes().any(|byte| byte.is_ascii_uppercase()) {
        NORMAL.to_owned()
    } else {
        return ErrorList::new();
    };
    vec![FieldError::invalid(path, uid, detail)]
}

fn has_form(uid: &str) -> bool {
    uid.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// True for a version in the form of semver.org, 2.0.0.
pub fn is_semantic_version(text: &str) -> bool {
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (core, pre) = match text.split_once('-') {
        Some((core, pre)) => (core, Some(pre)),
        None => (text, None),
    };
    let is_number =
        |part: &str| part == "0" || !part.starts_with('0') && !part.is_empty() && is_digits(part);
    let is_word = |part: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(good)
    };
    let in_pre = |part: &str| is_word(part) && (!is_digits(part) || is_number(part));
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.into_iter().all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(in_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
