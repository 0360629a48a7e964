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
