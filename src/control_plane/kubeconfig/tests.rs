use super::*;
use std::cell::Cell;

const DAY: Duration = Duration::from_hours(24);
const LIFE: Duration = Duration::from_hours(24 * 9);
/// A server is started then.
const START: &str = "2030-01-01T00:00:00Z";

fn start() -> Timestamp {
    START.parse().expect("a timestamp")
}

/// The kubeconfigs that are issued say their number.
fn issued(number: u32, now: Timestamp) -> Kubeconfig {
    Kubeconfig {
        text: number.to_string(),
        serial: vec![1],
        not_after: now + LIFE,
        renew_at: now + LIFE * 2 / 3,
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    clock: Clock,
    count: Cell<u32>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let fixture = Self {
            directory,
            clock: Clock::starting_at(start()),
            count: Cell::new(0),
        };
        write(&fixture.path(), "0").expect("written");
        fixture
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("admin.kubeconfig")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).expect("a kubeconfig")
    }

    /// What the file is after so long.
    async fn after(&self, time: Duration) -> String {
        let issue = || {
            self.count.set(self.count.get() + 1);
            Ok(issued(self.count.get(), self.clock.now()))
        };
        let first = issued(0, start());
        let keeping = keep(issue, self.path(), first.renew_at, self.clock.clone());
        let ended = tokio::time::timeout(time, keeping).await;
        assert!(ended.is_err(), "it goes on for as long as the server does");
        self.text()
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_stays_for_two_thirds_of_its_life() {
    assert_eq!(Fixture::new().after(5 * DAY).await, "0");
}

#[tokio::test(start_paused = true)]
async fn it_is_renewed_a_third_of_its_life_before_its_end_and_again() {
    let fixture = Fixture::new();
    assert_eq!(fixture.after(7 * DAY).await, "1");
    let fixture = Fixture::new();
    assert_eq!(fixture.after(27 * DAY).await, "4");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_takes_nothing_is_tried_again() {
    let fixture = Fixture::new();
    // A directory is in the place of the file.
    std::fs::remove_file(fixture.path()).expect("removed");
    std::fs::create_dir(fixture.path()).expect("a directory");
    let issue = || {
        fixture.count.set(fixture.count.get() + 1);
        if fixture.count.get() == 3 {
            std::fs::remove_dir(fixture.path()).expect("removed");
        }
        Ok(issued(fixture.count.get(), fixture.clock.now()))
    };
    let keeping = keep(issue, fixture.path(), start(), fixture.clock.clone());
    let _ended = tokio::time::timeout(DAY, keeping).await;
    assert_eq!(fixture.text(), "3");
    assert_eq!(fixture.count.get(), 3);
}
