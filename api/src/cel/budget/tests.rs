//! How much one object may take.

use super::*;
use crate::cel::compile;
use crate::cel::environment::Environment;

#[test]
fn expressions_of_one_object_end() {
    let environment = Environment::default().within(&Budget::default());
    let text = format!("'{}' == ''", "x".repeat(10_000));
    let count = (0..)
        .find(|_| compile(&text, &environment).is_err())
        .unwrap();
    assert!((10..40).contains(&count), "{count}");
    let why = compile("true", &environment.clone()).unwrap_err();
    assert_eq!(why, format!("ERROR: <input>:-1:0: {SPENT}"));
    assert!(compile(&text, &Environment::default()).is_ok());
    let list = format!("[{}].size() > 0", "1,".repeat(40_000));
    assert!(
        compile(&list, &Environment::default())
            .unwrap_err()
            .ends_with(SPENT)
    );
}

#[test]
fn patterns_of_one_object_end_and_equal_ones_count_once() {
    let budget = Budget::default();
    let good = "^[a-z]+$";
    for _ in 0..10_000 {
        assert_eq!(budget.pattern(good), Ok(()));
    }
    let large = |count: usize| format!("[\\p{{L}}\\p{{N}}-]{{1,63}}a{{{count}}}");
    let count = (0..)
        .find(|count| budget.pattern(&large(*count)).is_err())
        .unwrap();
    assert!((10..100).contains(&count), "{count}");
    assert_eq!(budget.pattern("b").unwrap_err(), PATTERNS_SPENT);
    assert_eq!(budget.pattern(good), Ok(()));
    let environment = Environment::default().within(&budget);
    let why = compile("'a'.matches('^c')", &environment).unwrap_err();
    assert!(why.contains(PATTERNS_SPENT), "{why}");
    assert!(compile("'a'.matches('^[a-z]+$')", &environment).is_ok());
}
