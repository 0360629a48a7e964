//! Users and groups of pod and image.

use super::*;

const PASSWD: &str =
    "root:x:0:0:root:/root:/bin/sh\nbad line\napp:x:1000:1001::/home/app:/bin/sh\n";
const GROUP: &str = "root:x:0:\nweb:x:50:app,other\nlogs:x:51:app\n";

fn check(security: Security, image: &str, expected: &str) {
    let text = match resolve(&security, image, PASSWD, GROUP) {
        Ok(user) => format!("{}:{} {:?} {}", user.uid, user.gid, user.groups, user.home),
        Err(error) => error.to_string(),
    };
    assert_eq!(text, expected);
}

#[test]
fn the_images_user_is_a_name_or_a_number() {
    let none = Security::default;
    check(none(), "", "0:0 [0] /root");
    check(none(), "app", "1000:1001 [50, 51, 1001] /home/app");
    check(none(), "1000", "1000:1001 [50, 51, 1001] /home/app");
    check(none(), "2000", "2000:0 [0] /");
    check(none(), "app:web", "1000:50 [50] /home/app");
    check(none(), "7:8", "7:8 [8] /");
    check(
        none(),
        "who",
        "unable to find user who: no matching entries in passwd file",
    );
    check(
        none(),
        "app:who",
        "unable to find group who: no matching entries in group file",
    );
    check(
        none(),
        "4294967295",
        "uids and gids must be in range 0-2147483647",
    );
}

#[test]
fn the_pod_stands_over_the_image() {
    let security = |user, group, extra: &[i64]| Security {
        run_as_user: user,
        run_as_group: group,
        supplemental_groups: extra.to_vec(),
        ..Security::default()
    };
    check(security(Some(0), None, &[]), "app", "0:0 [0] /root");
    check(
        security(Some(1000), Some(9), &[77]),
        "",
        "1000:9 [9, 50, 51, 77] /home/app",
    );
    check(
        security(None, Some(9), &[]),
        "app",
        "1000:9 [9, 50, 51] /home/app",
    );
    check(security(Some(5), None, &[6]), "", "5:0 [0, 6] /");
}

#[test]
fn strict_groups_leave_out_those_of_the_image() {
    let strict = Security {
        strict_groups: true,
        supplemental_groups: vec![60],
        ..Security::default()
    };
    check(strict, "app", "1000:1001 [60, 1001] /home/app");
}
