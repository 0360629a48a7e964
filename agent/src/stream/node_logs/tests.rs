//! Files, directories, and links that lead out.

use super::*;
use http_body_util::BodyExt;
use std::fs;
use std::os::unix::fs::symlink;

async fn get(root: &Path, path: &str) -> (u16, String, String) {
    let response = answer_below(root, path.to_owned()).await;
    let status = response.status().as_u16();
    let location = response.headers().get(LOCATION);
    let location = location
        .map_or("", |value| value.to_str().unwrap())
        .to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, location, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn only_what_is_below_is_shown() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("log");
    fs::create_dir_all(root.join("apt")).unwrap();
    let text = "line\n".repeat(100_000);
    fs::write(root.join("apt/history.log"), &text).unwrap();
    fs::write(scratch.path().join("secret"), "secret").unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("apt/history.log", root.join("a&b: c")).unwrap();
    rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();

    let (status, _, page) = get(&root, "").await;
    assert_eq!(status, 200);
    let links: Vec<&str> = page.lines().filter(|line| line.starts_with("<a")).collect();
    assert_eq!(
        links,
        [
            "<a href=\"a&b%3A%20c\">a&amp;b: c</a>",
            "<a href=\"absolute\">absolute</a>",
            "<a href=\"apt/\">apt/</a>",
            "<a href=\"out\">out</a>",
            "<a href=\"pipe\">pipe</a>",
        ]
    );
    assert_eq!(
        get(&root, "apt/history.log").await,
        (200, String::new(), text.clone())
    );
    assert_eq!(get(&root, "a&b: c").await.2, text);
    assert_eq!(get(&root, "apt").await.1, "apt/");
    assert_eq!(get(&root, "apt/history.log/").await.1, "../history.log");
    for (path, status) in [
        ("out", 403),
        ("absolute", 403),
        ("../secret", 403),
        ("pipe", 403),
        ("none", 404),
        ("apt/none", 404),
    ] {
        assert_eq!(get(&root, path).await.0, status, "{path}");
    }
}
