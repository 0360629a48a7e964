use super::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn read(conf: Option<&str>, bin: &[&str], timeout: Option<&str>) -> Result<CniSettings, String> {
    let args = AgentArgs {
        cni_conf_dir: conf.map(str::to_owned),
        cni_bin_dir: bin.iter().map(|text| (*text).to_owned()).collect(),
        cni_timeout: timeout.map(str::to_owned),
        ..AgentArgs::default()
    };
    cni(&args).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_those_of_the_help() {
    let usual = read(None, &[], None).unwrap();
    assert_eq!(usual.configurations, Path::new("/etc/cni/net.d"));
    let plugins = ["/opt/cni/bin", "/usr/lib/cni"].map(PathBuf::from);
    assert_eq!(usual.plugins, plugins);
    assert_eq!(usual.time_max, Duration::from_secs(60));
}

#[test]
fn other_places_are_taken_and_wrong_ones_refused() {
    let told = read(Some("/x/net.d"), &["/x/a", "/x/b"], Some("5s")).unwrap();
    assert_eq!(told.configurations, Path::new("/x/net.d"));
    assert_eq!(told.plugins, ["/x/a", "/x/b"].map(PathBuf::from));
    assert_eq!(told.time_max, Duration::from_secs(5));
    for (conf, bin, timeout, flag) in [
        (Some(""), &[][..], None, "--cni-conf-dir"),
        (Some("/etc/hostname"), &[], None, "--cni-conf-dir"),
        (None, &[""], None, "--cni-bin-dir"),
        (None, &["/a:/b"], None, "--cni-bin-dir"),
        (None, &[], Some("0"), "--cni-timeout"),
        (None, &[], Some("soon"), "--cni-timeout"),
    ] {
        let refused = read(conf, bin, timeout).unwrap_err();
        assert!(refused.starts_with(flag), "{refused}");
    }
}
