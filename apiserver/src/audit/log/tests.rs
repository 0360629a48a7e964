//! Files are rotated, kept and taken away; a full queue drops.

use super::*;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

fn settings(path: &Path) -> LogSettings {
    LogSettings {
        path: Some(path.to_owned()),
        age_days_max: 0,
        backups_max: 0,
        megabytes_max: 1,
    }
}

fn clock_at(text: &str) -> (Clock, Arc<Mutex<Timestamp>>) {
    let now = Arc::new(Mutex::new(text.parse().unwrap()));
    let shown = Arc::clone(&now);
    (Arc::new(move || *shown.lock()), now)
}

fn names(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn lines_are_appended_and_written_at_the_latest_when_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/audit.log");
    for round in ["a\n", "b\n"] {
        let (clock, _) = clock_at("2026-06-01T00:00:00Z");
        let log = Log::open(settings(&path), clock).unwrap();
        log.write(round.into());
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\n");
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_full_file_is_moved_aside_and_old_ones_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let (clock, now) = clock_at("2026-06-01T00:00:00Z");
    let kept = LogSettings {
        backups_max: 2,
        age_days_max: 1,
        ..settings(&path)
    };
    std::fs::write(directory.path().join("audit-notes.log"), "not ours").unwrap();
    let mut output = Output::open(kept, clock).unwrap();
    let half = vec![b'x'; 600 * 1024];
    for _ in 0..5 {
        output.write(&half).unwrap();
        *now.lock() += SignedDuration::from_secs(60);
    }
    let expected = [
        "audit-2026-06-01T00-03-00.000.log",
        "audit-2026-06-01T00-04-00.000.log",
        "audit-notes.log",
        "audit.log",
    ];
    assert_eq!(names(directory.path()), expected);
    *now.lock() += SignedDuration::from_hours(30);
    output.write(&half).unwrap();
    assert_eq!(
        names(directory.path()),
        [
            "audit-2026-06-02T06-05-00.000.log",
            "audit-notes.log",
            "audit.log"
        ]
    );
}

#[test]
fn what_does_not_fit_the_queue_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (clock, _) = clock_at("2026-06-01T00:00:00Z");
    let log = Log::open(settings(&directory.path().join("audit.log")), clock).unwrap();
    log.write(vec![b'x'; BYTES_MAX + 1]);
    assert_eq!(log.counts().dropped.load(Ordering::Relaxed), 1);
    assert_eq!(log.counts().queued_bytes.load(Ordering::Relaxed), 0);
}
