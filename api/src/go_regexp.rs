//! Regular expressions in Go's syntax, compiled by the crate `regex`.
//!
//! Both are of RE2's family and differ in details: in Go `\d`, `\w`, `\s` and `\b` are of ASCII, a
//! class has no operators and no class in it, `\Q` quotes, and a brace that is no repetition is
//! one of the text. A pattern is brought into the crate's form, and then compiled.

use regex::{Regex, RegexBuilder};

/// A pattern that compiles to more is refused: it is written by whoever may define resources, and
/// kept as long as its validator.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// As Go: nothing is repeated more often.
const REPETITIONS_MAX: u32 = 1000;

/// The error is worded as Go's, for what often goes wrong.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let failed = |why: &str, of: &str| format!("error parsing regexp: {why}: `{of}`");
    let translated = Translator::new(pattern)
        .translated()
        .map_err(|Problem { why, of }| failed(why, &of))?;
    let mut builder = RegexBuilder::new(&translated);
    let compiled = builder.size_limit(PATTERN_BYTES_MAX).build();
    compiled.map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or("");
        let why = match last.strip_prefix("error: ").unwrap_or(last) {
            "unclosed character class" => "missing closing ]",
            "unclosed group" => "missing closing )",
            "unopened group" => "unexpected )",
            "repetition operator missing expression" => "missing argument to repetition operator",
            other => other,
        };
        failed(why, pattern)
    })
}

/// What the crate would take and Go does not.
struct Problem {
    why: &'static str,
    of: String,
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            rest: pattern,
            out: String::with_capacity(pattern.len()),
        }
    }

    fn translated(mut self) -> Result<String, Problem> {
        // The repetition that has just been read.
        let mut repeated: Option<&'p str> = None;
        while let Some(first) = self.rest.chars().next() {
            let before = self.rest;
            let repeats = self.repetition()?;
            if let Some(repeats) = repeats {
                if let Some(last) = repeated {
                    let of = format!("{last}{repeats}");
                    let why = "invalid nested repetition operator";
                    return Err(Problem { why, of });
                }
                self.out.push_str(repeats);
            } else {
                match first {
                    '[' => self.class(),
                    '\\' => self.escape(),
                    '{' => self.literal(),
                    _ => self.copy(first.len_utf8()),
                }
            }
            repeated = repeats.map(|_| &before[..before.len() - self.rest.len()]);
        }
        Ok(self.out)
    }

    fn copy(&mut self, bytes: usize) {
        let (text, rest) = self.rest.split_at(bytes);
        self.out.push_str(text);
        self.rest = rest;
    }

    /// The next character, which means itself.
    fn literal(&mut self) {
        let mut chars = self.rest.chars();
        if let Some(one) = chars.next() {
            self.out
                .push_str(&regex::escape(one.encode_utf8(&mut [0; 4])));
        }
        self.rest = chars.as_str();
    }

    /// Takes `*`, `+`, `?` or `{1,2}`, with what makes it lazy, if that is what comes.
    fn repetition(&mut self) -> Result<Option<&'p str>, Problem> {
        let length = match self.rest.as_bytes().first() {
            Some(b'*' | b'+' | b'?') => 1,
            Some(b'{') => match counted(self.rest) {
                Some((length, most)) if most <= REPETITIONS_MAX => length,
                Some((length, _)) => {
                    let of = self.rest[..length].to_owned();
                    let why = "invalid repeat count";
                    return Err(Problem { why, of });
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let is_lazy = self.rest[length..].starts_with('?');
        let (text, rest) = self.rest.split_at(length + usize::from(is_lazy));
        self.rest = rest;
        Ok(Some(text))
    }

    /// A backslash outside of a class.
    fn escape(&mut self) {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let (text, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            self.out.push_str(&regex::escape(text));
            self.rest = rest;
            return;
        }
        let Some(named) = self.rest[1..].chars().next() else {
            return self.copy(1);
        };
        let of_class = of_ascii(named);
        match (named, of_class) {
            (_, Some((set, is_negative))) => {
                let sign = if is_negative { "^" } else { "" };
                self.out.push_str(&format!("[{sign}{set}]"));
                self.rest = &self.rest[2..];
            }
            ('b', _) => {
                self.out.push_str("(?-u:\\b)");
                self.rest = &self.rest[2..];
            }
            // To the crate these are the start and the end of a word.
            ('<' | '>', _) => {
                self.out.push(named);
                self.rest = &self.rest[2..];
            }
            _ => self.character(),
        }
    }

    /// A class, from bracket to bracket; or what there is of it.
    fn class(&mut self) {
        self.copy(1);
        if self.rest.starts_with('^') {
            self.copy(1);
        }
        let mut is_first = true;
        while !self.rest.is_empty() {
            if self.rest.starts_with(']') && !is_first {
                return self.copy(1);
            }
            is_first = false;
            if self.named_class() {
                continue;
            }
            self.character();
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if is_range && self.rest.len() > 1 {
                self.copy(1);
                self.character();
            }
        }
    }

    /// `[:alpha:]`, `\d` and the like.
    fn named_class(&mut self) -> bool {
        if let Some(named) = self.rest.strip_prefix("[:")
            && let Some(end) = named.find(":]")
        {
            self.copy(2 + end + 2);
            return true;
        }
        let named = self
            .rest
            .strip_prefix('\\')
            .and_then(|rest| rest.chars().next());
        match named.and_then(of_ascii) {
            Some((set, is_negative)) => {
                let text = if is_negative {
                    format!("[^{set}]")
                } else {
                    set.to_owned()
                };
                self.out.push_str(&text);
                self.rest = &self.rest[2..];
                true
            }
            None => false,
        }
    }

    /// A character that stands for itself, in a class or after a backslash.
    fn character(&mut self) {
        let Some(escaped) = self.rest.strip_prefix('\\') else {
            return self.literal();
        };
        let length = match escaped.chars().next() {
            // A code in braces, or the name of a script.
            Some('x' | 'p' | 'P') if escaped[1..].starts_with('{') => {
                escaped.find('}').map_or(escaped.len(), |end| end + 1)
            }
            Some('x') => escaped.len().min(3),
            Some('p' | 'P') => escaped.len().min(2),
            Some(one) => one.len_utf8(),
            None => 0,
        };
        let length = (1..=1 + length)
            .rev()
            .find(|end| self.rest.is_char_boundary(*end));
        self.copy(length.unwrap_or(1));
    }
}

/// The set that a letter behind a backslash stands for, and whether for what is not in it.
fn of_ascii(letter: char) -> Option<(&'static str, bool)> {
    let set = match letter.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0C\\r ",
        _ => return None,
    };
    Some((set, letter.is_ascii_uppercase()))
}

/// The length of `{2}`, `{2,}` or `{2,3}`, and how often at most.
fn counted(text: &str) -> Option<(usize, u32)> {
    let inner = text.strip_prefix('{')?;
    let inner = &inner[..inner.find('}')?];
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if least.is_empty() || !is_number(least) || !is_number(most) {
        return None;
    }
    let number = |text: &str| text.parse().unwrap_or(u32::MAX);
    let most = if most.is_empty() { 0 } else { number(most) };
    Some((inner.len() + 2, most.max(number(least))))
}

#[cfg(test)]
mod tests;
