//! In upstream's words.

use super::*;

fn checks() -> [Check; 2] {
    [
        Check::new("shutdown", || Ok(())),
        Check::new("sched-handler-sync", || Err("why".to_owned())),
    ]
}

#[test]
fn all_is_well_in_one_word_unless_more_is_asked_for() {
    let well = [Check::ping()];
    let ok = |query| all("livez", &well, query, &Results::default());
    assert_eq!(ok(""), (StatusCode::OK, "ok".to_owned()));
    let verbose = "[+]ping ok\nlivez check passed\n".to_owned();
    assert_eq!(ok("verbose"), (StatusCode::OK, verbose));
    let excluded = "[+]ping excluded: ok\nlivez check passed\n".to_owned();
    assert_eq!(ok("verbose=1&exclude=ping"), (StatusCode::OK, excluded));
}

#[test]
fn a_failure_is_told_without_its_reason() {
    let (status, text) = all("readyz", &checks(), "", &Results::default());
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let expected = "[+]shutdown ok\n\
                    [-]sched-handler-sync failed: reason withheld\n\
                    readyz check failed\n";
    assert_eq!(text, expected);
}

#[test]
fn what_is_left_out_does_not_count_and_what_is_not_there_is_told() {
    let query = "exclude=sched-handler-sync&verbose&exclude=b&exclude=a%22";
    let (status, text) = all("readyz", &checks(), query, &Results::default());
    assert_eq!(status, StatusCode::OK);
    let expected = "[+]shutdown ok\n\
                    [+]sched-handler-sync excluded: ok\n\
                    warn: some health checks cannot be excluded: no matches for \"a\\\"\",\"b\"\n\
                    readyz check passed\n";
    assert_eq!(text, expected);
}

#[test]
fn one_check_tells_its_reason() {
    let of = |name| one(&checks(), name);
    assert_eq!(of("shutdown").unwrap(), (StatusCode::OK, "ok".to_owned()));
    let (status, text) = of("sched-handler-sync").unwrap();
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(text, "internal server error: why\n");
    assert!(of("etcd").is_none());
}
