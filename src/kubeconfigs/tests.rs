//! Kubeconfigs are issued from the data directory alone, and read back to be taken back.

use super::*;
use coracle_apiserver::pki::Pki;
use coracle_apiserver::pki::names::ServerNames;

fn site() -> (tempfile::TempDir, Authority) {
    let directory = tempfile::tempdir().unwrap();
    let pki = directory.path().join("server/pki");
    Pki::open(&pki, ServerNames::default(), now()).unwrap();
    let authority = authority(directory.path()).unwrap();
    (directory, authority)
}

fn args(user: Option<&str>, groups: &[&str]) -> IssueArgs {
    IssueArgs {
        user: user.map(str::to_owned),
        group: groups.iter().map(|one| (*one).to_owned()).collect(),
        ..IssueArgs::default()
    }
}

fn failure(result: Result<(), Failure>) -> String {
    match result.unwrap_err() {
        Failure::Usage(bad) => bad.to_string(),
        Failure::Failed(error) => format!("{error:#}"),
    }
}

#[test]
fn the_admin_is_who_is_meant_without_a_user() {
    let admin = args(None, &[]);
    let wanted = Wanted::check(&admin).unwrap();
    assert_eq!((wanted.user, wanted.groups), (ADMIN_USER, vec![MASTERS]));
    let jane = args(Some("jane"), &["dev", "ops"]);
    let wanted = Wanted::check(&jane).unwrap();
    assert_eq!((wanted.user, wanted.groups), ("jane", vec!["dev", "ops"]));
    let refused = |args: IssueArgs| Wanted::check(&args).err().unwrap().to_string();
    assert_eq!(
        refused(args(None, &["dev"])),
        "--group \"dev\": needs --user: whose groups these are"
    );
    let short = IssueArgs {
        lifetime: Some("10s".to_owned()),
        ..args(None, &[])
    };
    assert_eq!(refused(short), "--lifetime \"10s\": must be at least 1m");
}

#[test]
fn a_file_is_written_and_its_certificate_found_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, own) = site();
    let file = directory.path().join("jane.kubeconfig");
    let args = IssueArgs {
        output: Some(file.display().to_string()),
        ..args(Some("jane"), &["dev"])
    };
    let server = Some("https://gateway:6443".to_owned());
    issue(&args, directory.path(), server).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        server_url(directory.path(), None).unwrap_err().to_string(),
        format!(
            "{} does not tell the server's address: name it with --server",
            directory.path().join("admin.kubeconfig").display()
        )
    );
    let found = certificates_in(&file, &own).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].user, "jane");
    assert_eq!(found[0].serial.len(), 32);
    let (_elsewhere, other) = site();
    let error = certificates_in(&file, &other).unwrap_err().to_string();
    assert!(error.contains("is not one of this cluster"), "{error}");
}

#[test]
fn what_is_missing_is_told_in_the_users_terms() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    assert_eq!(
        failure(issue(&args(None, &[]), directory.path(), None)),
        format!(
            "there is no server's CA in {path}: run this on the server's machine, with its \
             --data-dir: cannot read {path}/server/pki/ca.crt: No such file or directory (os \
             error 2)"
        )
    );
    let revoke = |args: RevokeArgs| failure(super::revoke(&args, directory.path(), None));
    let nobody = RevokeArgs {
        user: vec![String::new()],
        ..RevokeArgs::default()
    };
    assert_eq!(revoke(nobody), "--user \"\": must not be empty");
    let odd = RevokeArgs {
        serial: vec!["xyz".to_owned()],
        ..RevokeArgs::default()
    };
    assert_eq!(
        revoke(odd),
        "--serial \"xyz\": must be a serial number in hexadecimal digits, two for each byte"
    );
}

#[test]
fn a_user_is_not_taken_back_by_a_clock_that_is_not_set() {
    let check = |second| check_clock("jane", Timestamp::from_second(second).unwrap());
    assert_eq!(
        check(60).unwrap_err().to_string(),
        "--user \"jane\": cannot be revoked while this machine's clock is not set: it shows \
         1970-01-01T00:01:00Z"
    );
    assert!(check(1_767_225_600).is_ok());
}

#[test]
fn serial_numbers_are_taken_as_openssl_shows_them() {
    assert_eq!(serial("43:00:6B:0c").unwrap(), "43006b0c");
    assert_eq!(serial("43006B0C").unwrap(), "43006b0c");
    assert_eq!(serial("00:F1:AA").unwrap(), "f1aa");
    for bad in ["", ":", "4", "4300:6", "0x43"] {
        serial(bad).unwrap_err();
    }
}

#[test]
fn what_is_for_a_new_kubeconfig_is_named_where_something_is_taken_back() {
    let args = IssueArgs {
        lifetime: Some("1h".to_owned()),
        ..IssueArgs::default()
    };
    assert_eq!(
        misplaced(&args).to_string(),
        "--lifetime \"1h\": is for a new kubeconfig: what is taken back is named after `revoke`"
    );
}

#[test]
fn nobody_gets_a_kubeconfig_that_outlives_the_authority() {
    let (directory, own) = site();
    let ends = timestamp::format_time(own.not_after());
    for text in ["90000h", "2562047788015h"] {
        let args = IssueArgs {
            lifetime: Some(text.to_owned()),
            ..args(Some("jane"), &[])
        };
        let server = Some("https://gateway:6443".to_owned());
        assert_eq!(
            failure(issue(&args, directory.path(), server)),
            format!("--lifetime {text:?}: must end before the cluster's CA does, at {ends}")
        );
    }
}

#[tokio::test]
async fn a_server_that_is_not_reached_is_told_once() {
    // Nobody listens on a port that was just let go.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    drop(listener);
    let (_directory, own) = site();
    let error = read(&client(&own, &url).unwrap()).await.unwrap_err();
    let address = url.trim_start_matches("https://");
    assert_eq!(
        format!("{error:#}"),
        format!(
            "the running server did not show the revoked certificates: cannot connect to \
             {address}: Connection refused (os error 111)"
        )
    );
}
