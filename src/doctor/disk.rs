//! Room on the disk, and how long a write takes until it is on it: what every change of the cluster
//! waits for.

use super::existing;
use super::finding::Finding;
use coracle_client::clock::Clock;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

const SPACE: &str = "disk space";
const SPEED: &str = "disk speed";
/// The bound of a store's history and a snapshot beside it, and some images.
const FREE_WANTED: u64 = 1 << 30;
/// Below this a server's next snapshot may not fit.
const FREE_NEEDED: u64 = 64 << 20;
const WRITES: usize = 20;
const WRITE_BYTES: usize = 4096;
/// A good flash card takes a tenth of it.
const SLOW: Duration = Duration::from_millis(100);
/// Leases of nodes and leaders are renewed every ten seconds.
const TOO_SLOW: Duration = Duration::from_secs(2);

pub fn check(data_dir: &Path) -> Vec<Finding> {
    let at = existing(data_dir);
    let mut findings = vec![space(at)];
    // A directory that cannot be written to was told of already.
    if let Ok(mut times) = measure(at) {
        times.sort_unstable();
        findings.push(speed(&times));
    }
    findings
}

#[allow(clippy::useless_conversion)] // The counts are smaller on machines of 32 bits.
fn space(at: &Path) -> Finding {
    let stat = match nix::sys::statvfs::statvfs(at) {
        Ok(stat) => stat,
        Err(error) => {
            let found = format!("{}: {error}", at.display());
            return Finding::warn(SPACE, found, "Look at `df` yourself");
        }
    };
    let unit = u64::from(stat.fragment_size());
    let (free, all) = (
        u64::from(stat.blocks_available()) * unit,
        u64::from(stat.blocks()) * unit,
    );
    // Some file systems make their inodes as they are needed, and count none.
    let (inodes, all_inodes) = (u64::from(stat.files_available()), u64::from(stat.files()));
    judge_space(free, all, (all_inodes > 0).then_some(inodes))
}

fn judge_space(free: u64, all: u64, inodes: Option<u64>) -> Finding {
    let megabytes = |bytes: u64| bytes / 1_000_000;
    let found = format!("{} of {} MB free", megabytes(free), megabytes(all));
    let remedy =
        "Make room, or choose a --data-dir on another disk: images and logs of pods need it too";
    match inodes {
        Some(0) => Finding::fail(SPACE, format!("{found}, but no inodes"), remedy),
        _ if free < FREE_NEEDED => Finding::fail(SPACE, found, remedy),
        _ if free < FREE_WANTED => Finding::warn(SPACE, found, remedy),
        _ => Finding::ok(SPACE, found),
    }
}

fn measure(at: &Path) -> io::Result<Vec<Duration>> {
    let mut file = tempfile::tempfile_in(at)?;
    let clock = Clock::system();
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let before = clock.monotonic();
        file.write_all(&[0; WRITE_BYTES])?;
        file.sync_data()?;
        times.push(before.elapsed());
    }
    Ok(times)
}

/// `times` rise.
fn speed(times: &[Duration]) -> Finding {
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let most = times.last().copied().unwrap_or_default();
    let found = format!(
        "{WRITE_BYTES} bytes are on the disk after {:.1} ms, the slowest of {} after {:.1} ms",
        median.as_secs_f64() * 1000.0,
        times.len(),
        most.as_secs_f64() * 1000.0
    );
    let remedy = "Every change waits for this: use an SSD or a card of endurance grade, and nothing \
                  else that writes much to it";
    if median >= TOO_SLOW {
        return Finding::fail(SPEED, found, remedy);
    }
    if median >= SLOW || most >= TOO_SLOW {
        return Finding::warn(SPEED, found, remedy);
    }
    Finding::ok(SPEED, found)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_disk_is_as_full_as_its_last_room_or_inode() {
        let verdict = |free, inodes| judge_space(free, 8 << 30, inodes).verdict;
        assert_eq!(verdict(2 << 30, Some(10)), Verdict::Ok);
        assert_eq!(verdict(2 << 30, None), Verdict::Ok);
        assert_eq!(verdict(2 << 30, Some(0)), Verdict::Fail);
        assert_eq!(verdict(500 << 20, Some(10)), Verdict::Warn);
        assert_eq!(verdict(1 << 20, Some(10)), Verdict::Fail);
    }

    #[test]
    fn a_disk_is_as_slow_as_most_of_its_writes() {
        let of = |millis: &[u64]| {
            let times: Vec<_> = millis.iter().copied().map(Duration::from_millis).collect();
            speed(&times)
        };
        assert_eq!(of(&[1, 2, 90]).verdict, Verdict::Ok);
        assert_eq!(of(&[1, 150, 200]).verdict, Verdict::Warn);
        assert_eq!(of(&[1, 2, 3000]).verdict, Verdict::Warn);
        assert_eq!(of(&[2000, 2500, 3000]).verdict, Verdict::Fail);
        expect_test::expect![
            "4096 bytes are on the disk after 2.0 ms, the slowest of 3 after 90.0 ms"
        ]
        .assert_eq(&of(&[1, 2, 90]).found);
    }

    #[test]
    fn this_disk_is_measured_and_left_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let found = check(directory.path());
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
