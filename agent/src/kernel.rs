//! What the running kernel can do, by its version where there is no other way to ask.

use std::sync::LazyLock;

static VERSION: LazyLock<(u32, u32)> = LazyLock::new(|| {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    parse(&release)
});

/// Major and minor; 0.0 when it cannot be told.
pub fn version() -> (u32, u32) {
    *VERSION
}

/// `mount_setattr(2)`, and with it mounts that are read-only all the way down.
pub fn has_recursive_read_only() -> bool {
    version() >= (5, 12)
}

pub fn has_app_armor() -> bool {
    let enabled = std::fs::read_to_string("/sys/module/apparmor/parameters/enabled");
    enabled.is_ok_and(|text| text.starts_with('Y'))
}

fn parse(release: &str) -> (u32, u32) {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || parts.next()?.parse().ok();
    match (next(), next()) {
        (Some(major), Some(minor)) => (major, minor),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_read_as_distributions_write_them() {
        assert_eq!(super::parse("6.18.44-fc-v595\n"), (6, 18));
        assert_eq!(super::parse("5.4-rc1"), (5, 4));
        assert_eq!(super::parse(""), (0, 0));
    }
}
