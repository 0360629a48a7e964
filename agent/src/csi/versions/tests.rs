//! Drivers of the first version are taken, others told why not.

use super::{Version, check, highest};

fn of(versions: &[&str]) -> Result<String, String> {
    let versions: Vec<String> = versions.iter().map(|one| (*one).to_owned()).collect();
    highest(&versions).map(|version| version.to_string())
}

#[test]
fn the_highest_of_the_first_version_counts() {
    assert_eq!(of(&["1.0.0"]).as_deref(), Ok("1.0.0"));
    assert_eq!(
        of(&["0.3.0", "v1.2.0", "1.10.0-rc1"]).as_deref(),
        Ok("1.10.0")
    );
    assert_eq!(of(&["1.0.0", "2.0.0", "x"]).as_deref(), Ok("1.0.0"));
    assert_eq!(
        of(&["0.3.0"]).unwrap_err(),
        "highest supported version reported is 0.3.0, must be v1.x"
    );
    assert_eq!(
        of(&["2.0.0", "1"]).unwrap_err(),
        "could not find a highest supported version from versions ([2.0.0 1]) reported: could not \
         parse \"1\" as version"
    );
}

#[test]
fn only_a_higher_version_takes_the_place_of_a_driver() {
    let known = Version(vec![1, 1, 0]);
    let asks = |version: &str| check("ValidatePlugin", "d", &[version.to_owned()], Some(&known));
    assert_eq!(asks("1.2.0").unwrap().to_string(), "1.2.0");
    assert_eq!(
        asks("1.1.0").unwrap_err(),
        "kubernetes.io/csi: ValidatePlugin for CSI driver \"d\" failed. Another driver with the \
         same name is already registered with a higher supported version: \"1.1.0\""
    );
    assert!(check("ValidatePlugin", "d", &[], None).is_err());
}
