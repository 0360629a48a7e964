//! Lines and pieces of lines.

use super::*;

const NOW: &str = "2026-01-02T03:04:05.000000006Z";

fn check(pieces: &[&str], expected: &[&str]) {
    let now: Timestamp = NOW.parse().unwrap();
    let mut lines = Lines::of("stdout");
    let mut out = Vec::new();
    for piece in pieces {
        lines.push(piece.as_bytes(), now, &mut out);
    }
    lines.finish(now, &mut out);
    let text = String::from_utf8(out).unwrap();
    let prefix = format!("{NOW} stdout ");
    let found: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix(&prefix).unwrap())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn lines_come_out_whole() {
    check(&["a\nb\n"], &["F a", "F b"]);
    check(&["a", "b\n\nc"], &["F ab", "F ", "P c"]);
    check(&[""], &[]);
}

#[test]
fn long_lines_come_out_in_pieces() {
    let full = "x".repeat(LINE_BYTES_MAX);
    check(&[&full, "\n"], &[&format!("F {full}")]);
    check(&[&full, "y\n"], &[&format!("P {full}"), "F y"]);
    check(
        &[&full, &full, "\nz\n"],
        &[&format!("P {full}"), &format!("F {full}"), "F z"],
    );
    check(&[&format!("{full}yy")], &[&format!("P {full}"), "P yy"]);
}
