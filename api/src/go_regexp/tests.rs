//! What Go takes and what it matches.

use super::{Memo, compile};

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
        (r"\Bx", "yx", "\u{e9}x"),
        (r"^\101\60$", "A0", "101"),
        (r"^\08$", "\08", "8"),
        (r"^[\060-\x{39}]$", "5", "a"),
        (r"^\_\-\/\ $", "_-/ ", "_"),
        (r"^(?P<1a>a)(?<1a_>b)$", "ab", "a"),
        (r"^(?)a(?ii-s:b)(?i-i)c$", "aBc", "aBC"),
        (r"^a(?i:b)(?-i:c)$", "aBc", "aBC"),
        (r"(?U)^a{2}$", "aa", "a"),
        (r"^a{02}$", "a{02}", "aa"),
        (r"^(?:a{10}){0}(?:b{0,}){1000}$", "b", "a"),
        (r"^()*$", "", "a"),
        (
            r"^\p{^Lu}\P{^Greek}\p{greek}\p{Letter}$",
            "a\u{3b1}\u{3b1}b",
            "A\u{3b1}\u{3b1}b",
        ),
        (r"^[\p{L}\p{N}_-]{1,63}$", "\u{e9}1", " "),
        (r"^[[:^alpha:][:word:]]$", "a", ""),
        (r"^[[:]$", "[", "a"),
        (r"^[^\n\t]$", "a", "\t"),
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
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?:a{100}b){11}c", "invalid repeat count: `{11}`"),
        ("((a{10}|b){10}){11}", "invalid repeat count: `{11}`"),
        ("ab|*?", "missing argument to repetition operator: `*?`"),
        ("(+)", "missing argument to repetition operator: `+`"),
        ("a{2}??{3}", "invalid nested repetition operator: `{2}??`"),
        ("b[a", "missing closing ]: `[a`"),
        ("[]", "missing closing ]: `[]`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        (
            r"\p{Alphabetic}",
            r"invalid character class range: `\p{Alphabetic}`",
        ),
        (
            r"[\p{sc=Greek}]",
            r"invalid character class range: `\p{sc=Greek}`",
        ),
        (r"\p{Greek", r"invalid character class range: `\p{Greek`"),
        (r"a\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\u1234", r"invalid escape sequence: `\u`"),
        (r"[\Q]", r"invalid escape sequence: `\Q`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"\xg1", r"invalid escape sequence: `\xg1`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
        ("(?P=a)", "invalid or unsupported Perl syntax: `(?P`"),
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

/// Not even read: what is too long, and what would be read into too much.
#[test]
fn what_takes_too_much_to_read_is_refused() {
    let refused = |pattern: &str| compile(pattern).unwrap_err();
    let why = refused(&"a{".repeat(10_000));
    let shown = "a{".repeat(32);
    assert_eq!(
        why,
        format!("error parsing regexp: expression too large: `{shown}`")
    );
    for class in ["\\pL", "(?i)\\P{Lu}", "[^\\pL]"] {
        assert!(compile(class).is_ok());
        assert!(compile(&class.repeat(129)).is_err(), "{class}");
        let why = refused(&class.repeat(1000));
        assert!(
            why.starts_with("error parsing regexp: expression too large: `\\"),
            "{why}"
        );
    }
    assert!(compile(&"\\p{Nd}".repeat(128)).is_ok());
    for class in [r"[\x{0}-\x{10FFFF}]", r"[\D]", "[[:^alpha:]]", r"[\PL]"] {
        let why = refused(&format!("(?i){}", class.repeat(17)));
        let of = format!(
            "error parsing regexp: expression too large: `{}",
            &class[..3]
        );
        assert!(why.starts_with(&of), "{why}");
        assert!(compile(&class.repeat(17)).is_ok(), "{class}");
        assert!(super::sized(&format!("(?i){class}")).0 > 1 << 20);
    }
    assert!(compile(&"a".repeat(16 * 1024)).is_ok());
    assert!(compile(&"a".repeat(16 * 1024 + 1)).is_err());
}

#[test]
fn patterns_of_one_evaluation_end_and_equal_ones_count_once() {
    let mut memo = Memo::default();
    for _ in 0..1000 {
        assert_eq!(memo.matches("abc", "^[a-z]+$"), Ok(true));
    }
    assert_eq!(memo.matches("ab1", "^[a-z]+$"), Ok(false));
    assert_eq!(
        memo.matches("a", "["),
        Err("error parsing regexp: missing closing ]: `[`".to_owned())
    );
    let large = |count: usize| format!("[\\p{{L}}\\p{{N}}-]{{1,63}}a{{{count}}}");
    let count = (0..).find(|count| memo.matches("a", &large(*count)).is_err());
    assert!((2..20).contains(&count.unwrap()), "{count:?}");
    assert!(memo.matches("a", "b").is_err());
    assert_eq!(memo.matches("a", "^[a-z]+$"), Ok(true));
}

#[test]
fn patterns_have_a_size() {
    let of = |pattern: &str| super::sized(pattern).0 / 1024;
    assert_eq!(of("^[a-z]$"), 64 + 7);
    assert!(of(r"^[\p{L}\p{N}-]{1,63}$") > 1024);
    assert!(of("[") < 64);
    let (size, problem) = super::sized("(?:a{1000}){1000}");
    assert!(size < 64 * 1024 && problem.is_err());
}
