//! Defaults, checks, and which source wins.

use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;

fn common() -> CommonArgs {
    CommonArgs {
        config: None,
        data_dir: Some("/no/such/dir".into()),
        log: None,
    }
}

#[test]
fn defaults_are_those_of_the_help() {
    let settings = server(&common(), &ServerArgs::default()).unwrap();
    assert_eq!(settings.listen.to_string(), "0.0.0.0:6443");
    assert_eq!(settings.cluster_cidr, "10.42.0.0/16");
    assert_eq!(settings.service_cidr, "10.43.0.0/16");
    assert_eq!(settings.node_monitor_grace_period, Duration::from_secs(40));
    assert_eq!(
        settings.write_kubeconfig,
        Path::new("/no/such/dir/admin.kubeconfig")
    );
}

#[test]
fn durations_are_read_as_go_writes_them() {
    let read = |text| parse::duration("ttl", text).map(|duration| duration.as_millis());
    assert_eq!(read("1h2m3s4ms"), Ok(3_723_004));
    assert_eq!(read("0"), Ok(0));
    for bad in [
        "",
        "5",
        "s",
        "1d",
        "-1s",
        "1.5s",
        "99999999999999999999h",
        "5124095576030431h",
    ] {
        assert!(read(bad).is_err(), "{bad:?} is no duration");
    }
}

#[test]
fn networks_are_checked() {
    let read = |text| parse::cidr("cluster-cidr", Some(text), "10.42.0.0/16");
    assert!(read("10.0.0.0/8").is_ok() && read("fd00::/48").is_ok());
    for bad in [
        "10.42.0.0",
        "10.42.0.0/33",
        "10.42.0.1/16",
        "10.42.0.0/30",
        "x/16",
        "fd00::/129",
    ] {
        assert!(read(bad).is_err(), "{bad:?} is no network for a cluster");
    }
    assert!(parse::overlap(
        &read("10.0.0.0/8").unwrap(),
        &read("10.42.0.0/16").unwrap()
    ));
    assert!(!parse::overlap(
        &read("10.0.0.0/8").unwrap(),
        &read("fd00::/48").unwrap()
    ));
}

#[test]
fn labels_and_taints_are_checked() {
    assert_eq!(
        parse::label("site=north").unwrap(),
        ("site".into(), "north".into())
    );
    assert!(parse::label("site").is_err() && parse::label("a b=c").is_err());
    let taint = parse::taint("dedicated=db:NoExecute").unwrap();
    assert_eq!(
        (taint.key.as_str(), taint.value.as_str()),
        ("dedicated", "db")
    );
    assert_eq!(parse::taint("dedicated:NoSchedule").unwrap().value, "");
    assert!(parse::taint("dedicated").is_err() && parse::taint("x:y").is_err());
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.yaml");
    std::fs::write(
        &path,
        "listen: 127.0.0.1:1\nservice-cidr: 10.5.0.0/16\ntls-san: [a, b]\n",
    )
    .unwrap();
    let file = path.display().to_string();
    let arguments = [
        "coracle",
        "server",
        "--config",
        &file,
        "--listen",
        "127.0.0.1:2",
    ];
    let Command::Server(mut args) = Cli::parse_from(arguments).command else {
        unreachable!()
    };
    file::merge(file::Targets {
        common: &mut args.common,
        server: Some(&mut args.server),
        agent: None,
    })
    .unwrap();
    let settings = server(&args.common, &args.server).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:2");
    assert_eq!(settings.service_cidr, "10.5.0.0/16");
    assert_eq!(settings.tls_sans, ["a", "b"]);
    assert_eq!(settings.cluster_cidr, "10.42.0.0/16");
}

#[test]
fn a_bad_value_names_flag_value_and_what_is_right() {
    let args = ServerArgs {
        listen: Some("nowhere".into()),
        ..ServerArgs::default()
    };
    let error = server(&common(), &args).unwrap_err().to_string();
    assert_eq!(
        error,
        "--listen \"nowhere\": must be an address and a port, such as 0.0.0.0:6443"
    );
}
