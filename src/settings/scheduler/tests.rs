//! Files that are good, bad or absent.

use super::*;

fn with(file: Option<&str>, leader_elect: Option<&str>) -> Result<SchedulerSettings, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scheduler.yaml");
    if let Some(text) = file {
        std::fs::write(&path, text).unwrap();
    }
    let command = SchedulerCommand {
        kubeconfig: Some("/k".to_owned()),
        config: file.map(|_| path.display().to_string()),
        leader_elect: leader_elect.map(str::to_owned),
        ..SchedulerCommand::default()
    };
    let shown = path.display().to_string();
    scheduler(&command).map_err(|bad| bad.to_string().replace(&shown, "FILE"))
}

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[test]
fn the_flag_counts_more_than_the_file() {
    let off = format!("{HEAD}leaderElection: {{leaderElect: false}}");
    let is_on = |file, flag| with(file, flag).unwrap().configuration.election.is_on;
    assert!(is_on(None, None) && !is_on(Some(&off), None));
    assert!(is_on(Some(&off), Some("true")) && !is_on(None, Some("false")));
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let bad = format!("{HEAD}profiles: [{{name: a}}]");
    assert_eq!(
        with(Some(&bad), None).unwrap_err(),
        "--config \"FILE\": strict decoding error: unknown field \"profiles[0].name\""
    );
    assert!(with(None, Some("perhaps")).is_err());
    let without = scheduler(&SchedulerCommand::default()).unwrap_err();
    let expected = "--kubeconfig \"\": must be the path of a file";
    assert_eq!(without.to_string(), expected);
    let missing = read("scheduler-config", Some("/does/not/exist"));
    let missing = missing.unwrap_err().to_string();
    assert!(missing.starts_with("--scheduler-config \"/does/not/exist\": cannot be read: "));
}
