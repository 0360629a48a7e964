use super::*;

fn decided(app_armor: AppArmor, privileged: bool, is_enabled: bool) -> String {
    let security = Security {
        app_armor,
        privileged,
        ..Security::default()
    };
    match decide(&security, is_enabled) {
        Ok(wanted) => format!("{wanted:?}"),
        Err(error) => error,
    }
}

#[test]
fn who_asks_gets_it_or_is_refused() {
    let named = || AppArmor::Localhost("localhost/strict".into());
    assert_eq!(decided(AppArmor::Unsaid, false, false), "Nothing");
    assert_eq!(decided(AppArmor::Unconfined, false, true), "Nothing");
    assert_eq!(
        decided(AppArmor::Unsaid, false, true),
        "Own { is_asked: false }"
    );
    assert_eq!(
        decided(AppArmor::RuntimeDefault, false, true),
        "Own { is_asked: true }"
    );
    assert_eq!(decided(AppArmor::RuntimeDefault, true, true), "Nothing");
    assert_eq!(decided(named(), true, true), "Loaded(\"strict\")");
    for asked in [AppArmor::RuntimeDefault, named()] {
        assert_eq!(decided(asked, false, false), "apparmor is not supported");
    }
}

#[test]
fn profiles_are_listed_by_their_whole_name() {
    let profiles = "coracle-default (enforce)\n/usr/bin/man (complain)\nodd (name) (enforce)\n";
    assert!(is_listed(profiles, "coracle-default"));
    assert!(is_listed(profiles, "odd (name)"));
    assert!(!is_listed(profiles, "coracle"));
}

#[test]
fn the_policy_declares_the_variables_it_uses() {
    let uses = POLICY.split("@{").skip(1);
    let mut names: Vec<&str> = uses.map(|rest| rest.split('}').next().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(!names.is_empty());
    for name in names {
        let declaration = format!("@{{{name}}}=");
        let is_declared = POLICY.lines().any(|line| line.starts_with(&declaration));
        assert!(is_declared, "{name}");
    }
}

#[test]
fn what_was_asked_for_is_never_left_out() {
    let own = |is_asked, is_loaded| entered(&Wanted::Own { is_asked }, || is_loaded);
    assert_eq!(own(true, false).as_deref(), Some(OWN));
    assert_eq!(own(true, true).as_deref(), Some(OWN));
    assert_eq!(own(false, true).as_deref(), Some(OWN));
    assert_eq!(own(false, false), None);
    assert_eq!(
        entered(&Wanted::Loaded("x"), || false).as_deref(),
        Some("x")
    );
    assert_eq!(entered(&Wanted::Nothing, || true), None);
}
