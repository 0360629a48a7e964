//! Conditions change when there is something new to say.

use super::*;
use jiff::Timestamp;

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn shown(conditions: &[NamespaceCondition]) -> Vec<String> {
    let line = |one: &NamespaceCondition| {
        format!(
            "{} {} {} {}",
            one.type_,
            one.status,
            one.reason.as_deref().unwrap(),
            one.last_transition_time.as_ref().unwrap().0.as_second()
        )
    };
    conditions.iter().map(line).collect()
}

#[test]
fn conditions_change_when_something_is_said_anew() {
    let mut conditions = Vec::new();
    let remains = |count: usize| Trouble {
        condition: REMAINING,
        reason: "SomeResourcesRemain",
        message: format!("{count} remain"),
    };
    assert!(update(&mut conditions, &[remains(2)], &at(1)));
    assert_eq!(
        shown(&conditions),
        [
            "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered 1",
            "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions 1",
            "NamespaceDeletionContentFailure False ContentDeleted 1",
            "NamespaceContentRemaining True SomeResourcesRemain 1",
            "NamespaceFinalizersRemaining False ContentHasNoFinalizers 1",
        ]
    );
    assert!(!update(&mut conditions, &[remains(2)], &at(2)));
    assert!(update(&mut conditions, &[remains(1)], &at(3)));
    assert_eq!(conditions[3].message.as_deref(), Some("1 remain"));
    assert_eq!(conditions[3].last_transition_time, Some(at(1)));
    assert!(update(&mut conditions, &[], &at(4)));
    assert_eq!(
        shown(&conditions)[3],
        "NamespaceContentRemaining False ContentRemoved 4"
    );
}
