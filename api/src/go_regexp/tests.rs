//! What Go takes and what it matches.

use super::compile;

#[test]
fn patterns_match_what_they_match_in_go() {
    for (pattern, matches, others) in [
        (r"^[^[]+$", "a]b", "a[b"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\Qa.b", "a.bc", "axb"),
        (r"^\w{1,128}$", "a_9", "\u{e9}"),
        (r"^[\w.-]{1,253}$", "a.b-c", "a b"),
        (r"^\d+$", "12", "\u{663}"),
        (r"^[\d]+$", "12", "\u{663}"),
        (r"^[\D]+$", "ab", "a1"),
        (r"^\S+$", "a\u{a0}", "a b"),
        (r"^[a-z&&b]+$", "a&z", "A"),
        (r"^[a~~b]+$", "a~b", "c"),
        (r"^[+--]+$", "+,-", "."),
        (r"^[]a]+$", "a]", "b"),
        (r"^[[:alpha:]_]+$", "a_", "1"),
        (r"^[\x{41}-\x43\]]+$", "AB]", "D"),
        (r"^a{,2}$", "a{,2}", "aa"),
        (r"^{a}$", "{a}", "a"),
        (r"^a{2,3}?$", "aa", "a"),
        (r"^\<a\>$", "<a>", "a"),
        (r"x\b", "x\u{e9}", "xy"),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", "-a"),
        (r"^(?i)[a-c]+$", "aB", "d"),
        (r"^\p{Lu}+\x{41}\pN$", "\u{c9}A1", "aA1"),
    ] {
        let regex = compile(pattern).unwrap();
        assert!(regex.is_match(matches), "{pattern} {matches}");
        assert!(!regex.is_match(others), "{pattern} {others}");
    }
}

#[test]
fn what_is_no_pattern_is_told_in_gos_words() {
    for (pattern, why) in [
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1,1001}", "invalid repeat count: `{1,1001}`"),
    ] {
        let error = compile(pattern).unwrap_err();
        assert_eq!(error, format!("error parsing regexp: {why}"));
    }
    for pattern in [
        "\\",
        "[\\",
        "[a-",
        "[\\x",
        "[\\p{",
        "\\Q",
        "[\\x\u{e9}",
        "[[:a",
    ] {
        let _ = compile(pattern); // Whatever it says, it says it.
    }
}
