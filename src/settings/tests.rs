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
    let year = Duration::from_hours(365 * 24);
    assert_eq!(settings.legacy_token_clean_up_period, year);
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
fn a_period_for_unused_tokens_is_more_than_nothing() {
    let read = |text: &str| {
        let mut args = ServerArgs::default();
        args.loops.legacy_service_account_token_clean_up_period = Some(text.to_owned());
        server(&common(), &args).map(|settings| settings.legacy_token_clean_up_period)
    };
    assert_eq!(read("720h"), Ok(Duration::from_hours(720)));
    let error = read("0").unwrap_err().to_string();
    let flag = "--legacy-service-account-token-clean-up-period";
    assert_eq!(error, format!("{flag} \"0\": must be more than nothing"));
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
fn nodes_and_pods_may_have_both_families() {
    let networks = |cluster: &str, services: &str| {
        let args = ServerArgs {
            loops: LoopArgs {
                cluster_cidr: Some(cluster.to_owned()),
                ..LoopArgs::default()
            },
            service_cidr: Some(services.to_owned()),
            ..ServerArgs::default()
        };
        let settings = server(&common(), &args).map_err(|error| error.to_string())?;
        Ok::<_, String>(settings.cluster_cidr)
    };
    let services = "10.5.0.0/16,fd00:5::/108";
    let both = networks("fd00:4::/48, 10.4.0.0/16", services);
    assert_eq!(both, Ok("fd00:4::/48,10.4.0.0/16".to_owned()));
    let overlap = networks("10.4.0.0/16,fd00:5::/48", services);
    let said = "--service-cidr \"fd00:5::/108\": must not overlap --cluster-cidr fd00:5::/48";
    assert_eq!(overlap, Err(said.to_owned()));
    assert!(networks("10.4.0.0/16,10.6.0.0/16", services).is_err());
    let addresses = |text| parse::addresses("node-ip", text).map_err(|error| error.to_string());
    assert_eq!(addresses(None), Ok(vec![]));
    let both = addresses(Some("fd99::2, 10.99.0.2")).unwrap();
    let both: Vec<_> = both.iter().map(ToString::to_string).collect();
    assert_eq!(both, ["fd99::2", "10.99.0.2"]);
    for bad in [
        "10.99.0.2,10.99.0.3",
        "fd99::1,10.99.0.2,fd99::2",
        "10.99.0.2,",
        "::,10.99.0.2",
    ] {
        let said = addresses(Some(bad)).unwrap_err();
        assert!(said.starts_with("--node-ip"), "{said}");
    }
}

#[test]
fn only_the_agent_with_the_usual_directory_has_the_usual_link() {
    let asked = |data_dir: Option<&str>, kubelet_dir: Option<&str>| {
        let common = CommonArgs {
            data_dir: data_dir.map(str::to_owned),
            ..CommonArgs::default()
        };
        let args = AgentArgs {
            kubelet_dir: kubelet_dir.map(str::to_owned),
            ..AgentArgs::default()
        };
        super::agent(&common, &args, "here", false).map(|settings| settings.kubelet_dir)
    };
    assert_eq!(asked(None, None).unwrap(), KubeletDir::Usual);
    assert_eq!(asked(Some("/other"), None).unwrap(), KubeletDir::Own);
    let there = KubeletDir::Asked("/there".into());
    assert_eq!(asked(Some("/other"), Some("/there")).unwrap(), there);
    assert!(asked(None, Some("")).is_err());
}

#[test]
fn a_node_has_a_place_for_volumes_unless_it_is_told_not_to() {
    let asked = |directory: Option<&str>| {
        let common = CommonArgs {
            data_dir: Some("/data".to_owned()),
            ..CommonArgs::default()
        };
        let args = AgentArgs {
            local_path_dir: directory.map(str::to_owned),
            ..AgentArgs::default()
        };
        super::agent(&common, &args, "here", false).map(|settings| settings.local_path_dir)
    };
    assert_eq!(asked(None).unwrap(), Some("/data/local-path".into()));
    assert_eq!(asked(Some("/disk")).unwrap(), Some("/disk".into()));
    assert_eq!(asked(Some("")).unwrap(), None);
    assert!(asked(Some("/")).is_err());
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
    assert_eq!(parse::sysctl_pattern("kernel.msg*").unwrap(), "kernel.msg*");
    assert!(parse::sysctl_pattern("net.core.*").is_ok());
    assert!(parse::sysctl_pattern("vm.swappiness").is_err());
    assert!(parse::sysctl_pattern("net.*.x").is_err());
}

#[test]
fn pods_have_a_number_of_processes_or_no_bound() {
    assert_eq!(parse::pids("1").unwrap(), 1);
    assert_eq!(parse::pids("4096").unwrap(), 4096);
    assert_eq!(parse::pids("-1").unwrap(), 0, "no bound");
    for bad in ["", "0", "-2", "1k", "many", " 5", "9223372036854775808"] {
        let error = parse::pids(bad).unwrap_err().to_string();
        assert!(
            error.contains("pod-max-pids") && error.contains("-1 for no bound"),
            "{error}"
        );
    }
    let read = |given: &[&str]| {
        let words = [&["coracle", "agent"], given].concat();
        let Command::Agent(command) = Cli::try_parse_from(words).unwrap().command else {
            unreachable!()
        };
        command.agent.pod_max_pids
    };
    assert_eq!(read(&[]), None);
    let below_zero = read(&["--pod-max-pids", "-1"]);
    assert_eq!(below_zero.as_deref(), Some("-1"));
    assert_eq!(read(&["--pod-max-pids=77"]).as_deref(), Some("77"));
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
        dns: None,
    })
    .unwrap();
    let settings = server(&args.common, &args.server).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:2");
    assert_eq!(settings.service_cidr, "10.5.0.0/16");
    assert_eq!(settings.tls_sans, ["a", "b"]);
    assert_eq!(settings.cluster_cidr, "10.42.0.0/16");
}

#[test]
fn services_take_one_network_of_each_family() {
    let with = |text: &str| {
        let args = ServerArgs {
            service_cidr: Some(text.into()),
            ..ServerArgs::default()
        };
        server(&common(), &args)
            .map(|settings| settings.service_cidr)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        with("10.5.0.0/16, fd00:5::/108"),
        Ok("10.5.0.0/16,fd00:5::/108".to_owned())
    );
    assert_eq!(
        with("10.5.0.0/16,10.6.0.0/16"),
        Err(
            "--service-cidr \"10.5.0.0/16,10.6.0.0/16\": must be one network, or one of IPv4 and \
             one of IPv6 with a comma between them"
                .to_owned()
        )
    );
    assert_eq!(
        with("fd00:5::/108,10.42.8.0/24"),
        Err(
            "--service-cidr \"10.42.8.0/24\": must not overlap --cluster-cidr 10.42.0.0/16"
                .to_owned()
        )
    );
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

#[test]
fn an_audit_log_needs_a_policy_and_a_place_and_limits_are_counts() {
    let refused = |args: ServerArgs| server(&common(), &args).unwrap_err().to_string();
    let policy = ServerArgs {
        audit_policy_file: Some("/policy.yaml".into()),
        ..ServerArgs::default()
    };
    assert_eq!(
        refused(policy.clone()),
        "--audit-policy-file \"/policy.yaml\": needs --audit-log-path: where the log goes, - for \
         standard output"
    );
    let path = ServerArgs {
        audit_log_path: Some("-".into()),
        ..ServerArgs::default()
    };
    assert_eq!(
        refused(path),
        "--audit-log-path \"-\": needs --audit-policy-file: without a policy nothing is recorded"
    );
    let both = ServerArgs {
        audit_log_path: Some("-".into()),
        max_requests_inflight: Some("7".into()),
        ..policy
    };
    let settings = server(&common(), &both).unwrap();
    assert_eq!(settings.limits.reading, 7);
    let log = settings.audit.unwrap().log;
    assert_eq!(
        (log.path, log.backups_max, log.megabytes_max),
        (None, 4, 20)
    );
    assert!(settings.limits.connections <= 4096);
    let many = ServerArgs {
        max_connections: Some("4000000000".into()),
        ..ServerArgs::default()
    };
    let why = refused(many);
    assert!(
        why.starts_with("--max-connections \"4000000000\": must be ")
            && why.ends_with(
                " at most: half of the files that the process may have open (ulimit -n)"
            ),
        "{why}"
    );
    let none = ServerArgs {
        max_mutating_requests_inflight: Some("0".into()),
        ..ServerArgs::default()
    };
    assert_eq!(
        refused(none),
        "--max-mutating-requests-inflight \"0\": must be a number of at least 1"
    );
}

#[test]
fn keys_of_secrets_are_beside_the_others_unless_told_otherwise() {
    let settings = server(&common(), &ServerArgs::default()).unwrap().at_rest;
    let file = Path::new("/no/such/dir/server/pki/secrets.key");
    assert_eq!(
        (settings.key_file.as_path(), settings.configuration),
        (file, None)
    );
    let elsewhere = ServerArgs {
        secrets_key_file: Some("/mnt/keys/secrets.key".into()),
        encryption_provider_config: Some("/etc/encryption.yaml".into()),
        ..ServerArgs::default()
    };
    let settings = server(&common(), &elsewhere).unwrap().at_rest;
    assert_eq!(settings.key_file, Path::new("/mnt/keys/secrets.key"));
    assert_eq!(
        settings.configuration.unwrap(),
        Path::new("/etc/encryption.yaml")
    );
    let bad = ServerArgs {
        secrets_key_file: Some("/tmp".into()),
        ..ServerArgs::default()
    };
    assert_eq!(
        server(&common(), &bad).unwrap_err().to_string(),
        "--secrets-key-file \"/tmp\": must be the path of a file"
    );
}
