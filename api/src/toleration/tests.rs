//! Which tolerations bear which taints.

use super::*;

/// `key=value:effect`, `key:effect` for Exists, `key<n:effect` and `key>n:effect` for numbers.
fn check(toleration: &str, taint: &str) -> bool {
    let (pair, effect) = toleration.rsplit_once(':').unwrap();
    let operators = [('<', "Lt"), ('>', "Gt"), ('=', "Equal")];
    let split = operators.iter().find_map(|(sign, operator)| {
        let (key, value) = pair.split_once(*sign)?;
        Some((key, *operator, value))
    });
    let (key, operator, value) = split.unwrap_or((pair, "Exists", ""));
    let toleration = Toleration {
        key,
        operator,
        value,
        effect,
    };
    let (pair, effect) = taint.rsplit_once(':').unwrap();
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    toleration.bears(Taint { key, value, effect })
}

#[test]
fn tolerations_match_by_key_operator_value_and_effect() {
    assert!(check("a=b:NoSchedule", "a=b:NoSchedule"));
    assert!(!check("a=b:NoSchedule", "a=c:NoSchedule"));
    assert!(!check("a=b:NoSchedule", "a=b:NoExecute"));
    assert!(check("a=b:", "a=b:NoExecute"));
    assert!(check("a:NoSchedule", "a=anything:NoSchedule"));
    assert!(check(":", "whatever=x:NoExecute"));
    assert!(!check("b:", "a:NoSchedule"));
}

#[test]
fn numbers_are_compared() {
    assert!(check("load<10:NoSchedule", "load=9:NoSchedule"));
    assert!(!check("load<10:NoSchedule", "load=10:NoSchedule"));
    assert!(check("load>10:NoSchedule", "load=11:NoSchedule"));
    assert!(!check("load>10:NoSchedule", "load=many:NoSchedule"));
}
