//! What is told, and how much of it.

use super::*;

fn told(texts: &[&str]) -> Vec<String> {
    let warnings = Warnings::default();
    warnings.add(texts.iter().map(|text| (*text).to_owned()));
    warnings.texts()
}

#[test]
fn nothing_is_told_twice_and_all_in_order() {
    assert_eq!(told(&["b", "", "a", "b", "c", "a"]), ["b", "a", "c"]);
    let warnings = Warnings::default();
    let other = warnings.clone();
    warnings.add(["a".to_owned()]);
    other.add(["b".to_owned(), "a".to_owned()]);
    assert_eq!(warnings.texts(), ["a", "b"]);
}

#[test]
fn too_much_is_cut_and_then_dropped() {
    let long = "é".repeat(4000);
    assert_eq!(told(&[&long, "short"]), [&*long, "short"]);
    let longer = "é".repeat(4096);
    assert_eq!(told(&[&longer]), [&*longer]);
    let cut = "é".repeat(256);
    assert_eq!(told(&["short", &longer, "last"]), ["short", &*cut, "last"]);
    let many: Vec<String> = (0..1000).map(|one| format!("{one:0300}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let all = told(&many);
    assert_eq!(all.len(), 4096 / 256);
    assert!(all.iter().all(|text| text.len() == 256));
}

#[test]
fn headers_carry_what_they_can() {
    let warnings = Warnings::default();
    let texts = ["plain", "a \"b\" \\ c", "tab\tand\nline", "größer"];
    warnings.add(texts.map(str::to_owned));
    let mut headers = HeaderMap::new();
    warnings.put(&mut headers);
    let values: Vec<&str> = headers
        .get_all(WARNING)
        .iter()
        .map(|value| std::str::from_utf8(value.as_bytes()).unwrap())
        .collect();
    assert_eq!(
        values,
        [
            "299 - \"plain\"",
            "299 - \"a \\\"b\\\" \\\\ c\"",
            "299 - \"tab?and?line\"",
            "299 - \"größer\"",
        ]
    );
}
