//! Checks of paths inside volumes.

use crate::field::{ErrorList, FieldError, Path};

pub const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// A file mode that is given must be one.
pub fn mode(errors: &mut ErrorList, mode: Option<i64>, path: &Path) {
    if let Some(mode) = mode
        && !(0..=0o777).contains(&mode)
    {
        errors.push(FieldError::invalid(path, mode, FILE_MODE));
    }
}

pub fn no_backsteps(text: &str, path: &Path) -> ErrorList {
    if text.split('/').any(|step| step == "..") {
        vec![FieldError::invalid(path, text, "must not contain '..'")]
    } else {
        ErrorList::new()
    }
}

/// Relative, and never upwards.
pub fn descending(text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if text.starts_with('/') {
        errors.push(FieldError::invalid(path, text, "must be a relative path"));
    }
    errors.extend(no_backsteps(text, path));
    errors
}

/// As `descending`, and out of the way of names that the volume's own files have.
pub fn not_reserved(text: &str, path: &Path) -> ErrorList {
    let mut errors = descending(text, path);
    if text.starts_with("..") && text != ".." && !text.starts_with("../") {
        errors.push(FieldError::invalid(path, text, "must not start with '..'"));
    }
    errors
}
