use super::*;

#[test]
fn the_times_are_found_behind_any_name() {
    let stat = "77 (a) 3 (b) S 1 77 77 0 -1 4194560 9 0 0 0 21 34 5 6 20 0 1 0 99 1 2 3";
    assert_eq!(ticks(stat), Some(55));
    assert_eq!(ticks("77 (a) S 1 77"), None);
    assert_eq!(ticks(""), None);
}

#[test]
fn a_process_is_asked_for_what_it_took() {
    let own = std::process::id();
    let before = processor_time(own).unwrap();
    assert!(processor_time(own).unwrap() >= before);
    assert!(processor_time(0).is_err());
}
