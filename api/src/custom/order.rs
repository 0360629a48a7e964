//! The order of versions: stable ones first, then betas, then alphas, each the newest first; what
//! is named otherwise comes last.

use std::cmp::Reverse;

/// Greater for a version that comes first.
pub fn priority(version: &str) -> (u8, u64, u64, Reverse<&str>) {
    match parsed(version) {
        Some((stage, major, minor)) => (stage, major, minor, Reverse("")),
        None => (0, 0, 0, Reverse(version)),
    }
}

/// `v2beta1` is the first beta of the second version.
fn parsed(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|one: char| !one.is_ascii_digit());
    let (major, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let number = |text: &str| {
        let is_number = !text.is_empty() && !text.starts_with('0');
        is_number.then(|| text.parse().ok()).flatten()
    };
    let major = number(major)?;
    for (stage, name) in [(1, "alpha"), (2, "beta")] {
        if let Some(minor) = rest.strip_prefix(name) {
            return Some((stage, major, number(minor)?));
        }
    }
    rest.is_empty().then_some((3, major, 0))
}

/// Versions in their order, the one to be preferred first.
pub fn sort(versions: &mut [String]) {
    versions.sort_by(|a, b| priority(b).cmp(&priority(a)));
}

#[cfg(test)]
mod tests;
