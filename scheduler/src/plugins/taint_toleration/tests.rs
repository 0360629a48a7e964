use super::*;

fn check(toleration: &str, taint: &str) -> bool {
    // key=value:effect, or key:effect for Exists; `<n` and `>n` for numbers.
    let split = |text: &str| {
        let (pair, effect) = text.rsplit_once(':').unwrap();
        (pair.to_owned(), effect.to_owned())
    };
    let (pair, effect) = split(toleration);
    let (key, operator, value) = if let Some((key, value)) = pair.split_once('<') {
        (key.to_owned(), "Lt", value.to_owned())
    } else if let Some((key, value)) = pair.split_once('>') {
        (key.to_owned(), "Gt", value.to_owned())
    } else if let Some((key, value)) = pair.split_once('=') {
        (key.to_owned(), "Equal", value.to_owned())
    } else {
        (pair, "Exists", String::new())
    };
    let toleration = Toleration {
        key: Some(key),
        operator: Some(operator.into()),
        value: Some(value),
        effect: Some(effect),
        toleration_seconds: None,
    };
    let (pair, effect) = split(taint);
    let (key, value) = pair.split_once('=').unwrap_or((&pair, ""));
    let taint = Taint {
        key: key.into(),
        value: Some(value.into()),
        effect,
        ..Taint::default()
    };
    tolerates(&toleration, &taint)
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
