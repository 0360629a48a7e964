//! The clock: certificates, leases and tokens all rest on it, and small boards have no battery.
#![allow(unsafe_code)] // adjtimex(2) fills what it is given.

use super::finding::Finding;
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::path::Path;

const CHECK: &str = "clock";
/// Written to while the clock was right. The store's mark says when a server last started or stopped.
const WITNESSES: [&str; 3] = ["server/store/mark", "server/store/database/db", "agent/pki"];
/// What a file system may round.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

pub fn check(data_dir: &Path, now: Timestamp) -> Vec<Finding> {
    let written = WITNESSES.iter().filter_map(|name| {
        let modified = fs::metadata(data_dir.join(name)).ok()?.modified().ok()?;
        Timestamp::try_from(modified).ok()
    });
    vec![judge(now, written.max(), in_step())]
}

/// Whether something keeps the kernel's clock in step with others; none where it cannot be asked.
fn in_step() -> Option<bool> {
    // SAFETY: numbers, of which all zero asks and sets nothing.
    let mut asked: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: it is writable and as long as the call expects.
    match unsafe { libc::adjtimex(&raw mut asked) } {
        -1 => None,
        libc::TIME_ERROR => Some(false),
        _ => Some(true),
    }
}

fn judge(now: Timestamp, last_written: Option<Timestamp>, in_step: Option<bool>) -> Finding {
    let set = "Set the clock, or let an NTP client do it (systemd-timesyncd, chrony)";
    if let Some(last) = last_written.filter(|last| now + TOLERANCE < *last) {
        let found = format!("{now}, yet files of the cluster are of {last}");
        return Finding::fail(CHECK, found, set);
    }
    match in_step {
        Some(true) => Finding::ok(CHECK, format!("{now}, kept in step")),
        Some(false) => Finding::warn(CHECK, format!("{now}, kept in step by nothing"), set),
        None => Finding::ok(CHECK, now.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn verdict(now: &str, last: Option<&str>, in_step: Option<bool>) -> Verdict {
        let last = last.map(|text| text.parse().unwrap());
        judge(now.parse().unwrap(), last, in_step).verdict
    }

    #[test]
    fn a_clock_behind_its_own_files_is_wrong() {
        let (early, late) = ("2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
        assert_eq!(verdict(late, Some(early), Some(true)), Verdict::Ok);
        assert_eq!(verdict(late, None, None), Verdict::Ok);
        assert_eq!(verdict(late, None, Some(false)), Verdict::Warn);
        assert_eq!(verdict(early, Some(late), Some(true)), Verdict::Fail);
    }
}
