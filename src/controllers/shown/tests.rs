//! What `/configz` tells of controllers.

use super::*;
use crate::cli::{Cli, Command};
use crate::settings::controllers::controllers;
use clap::Parser;

fn shown(flags: &[&str], election: Option<&Election>) -> Value {
    let line = ["coracle", "controllers", "--kubeconfig", "/k"];
    let Command::Controllers(args) = Cli::parse_from(line.iter().chain(flags)).command else {
        panic!("these are controllers");
    };
    let settings = controllers(&args).unwrap();
    let text = configuration(&settings, election);
    let all: Value = serde_json::from_str(&text).unwrap();
    all["kubecontrollermanager.config.k8s.io"].clone()
}

#[test]
fn what_flags_say_is_told_under_upstreams_names() {
    let flags = [
        "--cluster-cidr",
        "10.9.0.0/16",
        "--root-ca-file",
        "/ca",
        "--use-service-account-credentials",
        "--disable",
        "job",
    ];
    let shown = shown(&flags, Some(&Election::new("lease", "me")));
    assert_eq!(shown["kind"], "KubeControllerManagerConfiguration");
    assert_eq!(shown["KubeCloudShared"]["ClusterCIDR"], "10.9.0.0/16");
    assert_eq!(
        shown["KubeCloudShared"]["UseServiceAccountCredentials"],
        true
    );
    assert_eq!(shown["SAController"]["RootCAFile"], "/ca");
    assert_eq!(
        shown["Generic"]["Controllers"],
        json!(["*", "-csr-sign", "-job"])
    );
    let period = &shown["LegacySATokenCleaner"]["CleanUpPeriod"];
    assert_eq!(period, "8760h0m0s");
    let election = &shown["Generic"]["LeaderElection"];
    assert_eq!(election["resourceName"], "lease");
    assert_eq!(election["leaseDuration"], "15s");
}

#[test]
fn who_runs_without_an_election_says_so() {
    let shown = shown(&[], None);
    assert_eq!(
        shown["Generic"]["LeaderElection"],
        json!({"leaderElect": false})
    );
}
