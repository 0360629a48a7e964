//! Guards what pages of docs/ say of the tree: where it is unsafe and why, which test stands behind
//! each claim about security, and where crates come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The forms in which the word opens something.
const FORMS: [&str; 4] = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
/// Lines above a block in which its reason stands.
const REASON_WITHIN: usize = 4;
const UNSAFE_LIST: &str = "docs/unsafe.md";
const SECURITY: &str = "docs/security.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file of the tree by its path in it, and what is in it.
fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories: Vec<PathBuf> = vec![root().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("it has a name").to_string_lossy();
            let is_made = name == "target" || name.starts_with('.');
            if path.is_dir() && !is_made {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let shown = path
                    .strip_prefix(root())
                    .expect("it is below")
                    .display()
                    .to_string();
                found.insert(shown, read(&path));
            }
        }
    }
    assert!(found.len() > 1000, "the tree is larger: {}", found.len());
    found
}

/// The cells of each row of each table of a page, without heads.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = page.lines().collect();
    let is_row = |line: &str| line.starts_with("| ");
    let is_head = |index: usize| {
        lines
            .get(index + 1)
            .is_some_and(|next| next.starts_with("| ---"))
    };
    let body = (0..lines.len()).filter(|&index| {
        is_row(lines[index]) && !lines[index].starts_with("| ---") && !is_head(index)
    });
    body.map(|index| {
        let cells = lines[index].trim_matches('|').split(" | ");
        cells.map(str::trim).collect()
    })
    .collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The lines of a file on which something unsafe begins, from 0.
fn unsafe_lines(source: &str) -> Vec<usize> {
    let lines = source.lines().enumerate();
    let opens = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        FORMS.iter().any(|form| code.contains(form)) && !code.contains('"')
    };
    lines
        .filter(|(_, line)| opens(line))
        .map(|(index, _)| index)
        .collect()
}

#[test]
fn what_is_unsafe_is_listed_and_says_why() {
    let page = read(&root().join(UNSAFE_LIST));
    let listed: BTreeMap<String, usize> = rows(&page)
        .into_iter()
        .map(|cells| {
            let (path, count) = (quoted(cells[0])[0], cells[1].parse());
            assert!(cells[2].len() > 20, "{path} is listed without a reason");
            (path.to_owned(), count.expect("a number"))
        })
        .collect();
    let mut found = BTreeMap::new();
    for (path, source) in sources() {
        let unsafe_lines = unsafe_lines(&source);
        if unsafe_lines.is_empty() {
            continue;
        }
        let lines: Vec<&str> = source.lines().collect();
        for &index in &unsafe_lines {
            // Methods of an unsafe trait promise what the trait says.
            let above = &lines[index.saturating_sub(REASON_WITHIN)..index];
            let has_reason = above.iter().any(|line| line.contains("// SAFETY: "));
            let is_method = lines[index].trim_start().starts_with("unsafe fn");
            let line = index + 1;
            assert!(
                has_reason || is_method,
                "{path}:{line} does not say why it is safe"
            );
        }
        found.insert(path, unsafe_lines.len());
    }
    assert_eq!(
        found, listed,
        "found on the left, {UNSAFE_LIST} on the right"
    );
}

/// Names of functions under a test attribute.
fn tests(sources: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for source in sources.values() {
        let mut is_next = false;
        for line in source.lines().map(str::trim_start) {
            is_next |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let line = line.strip_prefix("async ").unwrap_or(line);
            if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_next) {
                found.extend(rest.split('(').next());
                is_next = false;
            }
        }
    }
    found
}

#[test]
fn each_claim_about_security_has_its_test() {
    let page = read(&root().join(SECURITY));
    let sources = sources();
    let tests = tests(&sources);
    let rows = rows(&page);
    assert!(rows.len() > 20, "the page has claims: {}", rows.len());
    for cells in rows {
        let [claim, behind] = cells.as_slice() else {
            panic!("a row of a claim and its tests: {cells:?}");
        };
        let names = quoted(behind);
        assert!(!names.is_empty(), "no test: {claim}");
        for name in names {
            assert!(tests.contains(name), "there is no test {name}, of: {claim}");
        }
    }
}

#[test]
fn all_crates_come_from_crates_io() {
    for file in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let lock = read(&root().join(file));
        let sources = lock
            .lines()
            .filter_map(|line| line.strip_prefix("source = "));
        let sources: BTreeSet<&str> = sources.collect();
        let only = r#""registry+https://github.com/rust-lang/crates.io-index""#;
        assert_eq!(sources, BTreeSet::from([only]), "{file}");
    }
}
