//! Images in a line each, and what goes.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn image(id: &str, size_bytes: u64) -> ImageInfo {
    ImageInfo {
        id: id.into(),
        size_bytes,
        ..ImageInfo::default()
    }
}

fn used(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn ids(idle: &[Idle]) -> Vec<&str> {
    idle.iter().map(|image| image.id.as_str()).collect()
}

fn disk(free_bytes: u64) -> Disk {
    Disk {
        total_bytes: 1000,
        free_bytes,
    }
}

/// `a` was used last, `b` before it, `c` never, `d` is in use; `hand` and `pin` are to stay.
fn idle() -> Vec<Idle> {
    let images = [
        image("a", 100),
        image("b", 100),
        image("c", 50),
        image("d", 500),
        ImageInfo {
            imported: true,
            ..image("hand", 500)
        },
        ImageInfo {
            pinned: true,
            ..image("pin", 500)
        },
    ];
    let mut memory = Memory::default();
    memory.look(&images, &used(&["b", "d"]), MINUTE);
    memory.look(&images, &used(&["a", "d"]), MINUTE * 5);
    memory.look(&images, &used(&["d"]), MINUTE * 10)
}

#[test]
fn the_least_recently_used_comes_first_and_some_never() {
    assert_eq!(ids(&idle()), ["c", "b", "a"]);
}

#[test]
fn images_go_from_the_high_mark_down_to_the_low_one() {
    let policy = ImagePolicy::default();
    let removed = |free| plan(&policy, &idle(), disk(free)).remove;
    assert_eq!(removed(160), Vec::<String>::new(), "84% in use");
    assert_eq!(removed(150), ["c"], "85%: 50 more make 80%");
    assert_eq!(removed(100), ["c", "b"]);
    assert_eq!(removed(40), ["c", "b", "a"]);
}

#[test]
fn a_disk_that_is_full_of_other_things_costs_no_image() {
    let policy = ImagePolicy::default();
    let lost = Plan {
        remove: Vec::new(),
        is_lost: true,
    };
    // All of 250 come to 75%.
    assert!(!plan(&policy, &idle(), disk(0)).is_lost);
    let small = [idle()[0].clone()];
    assert_eq!(plan(&policy, &small, disk(0)), lost);
    assert_eq!(plan(&policy, &[], disk(100)), lost);
    let never = ImagePolicy {
        high_percent: 100,
        ..policy
    };
    assert_eq!(plan(&never, &idle(), disk(0)), Plan::default());
    assert_eq!(
        lost_message(
            Disk {
                total_bytes: 3 << 29,
                free_bytes: 1 << 27
            },
            0
        ),
        "Insufficient free disk space on the node's image filesystem (92% of 1.5 GiB used). Failed \
         to free sufficient space by deleting unused images (freed 0 bytes). Investigate disk \
         usage, as it could be used by active images, logs, volumes, or other data."
    );
}

#[test]
fn young_images_stay_and_old_ones_go_without_need() {
    let mut memory = Memory::default();
    let young = memory.look(&[image("a", 500)], &used(&[]), MINUTE);
    let policy = ImagePolicy {
        unused_max: MINUTE * 6,
        ..ImagePolicy::default()
    };
    assert!(plan(&policy, &young, disk(0)).is_lost);
    assert_eq!(all(&policy, &young), Vec::<String>::new());
    // c was seen 9 minutes ago and never used; b not for 9, a for 5.
    assert_eq!(plan(&policy, &idle(), disk(900)).remove, ["c", "b"]);
    assert_eq!(all(&policy, &idle()), ["c", "b", "a"]);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut memory = Memory::default();
    memory.look(&[image("a", 1)], &used(&[]), MINUTE);
    memory.look(&[], &used(&[]), MINUTE * 2);
    let again = memory.look(&[image("a", 1)], &used(&[]), MINUTE * 9);
    assert_eq!(again[0].age, Duration::ZERO);
}
