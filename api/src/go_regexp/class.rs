//! Characters and sets of them: escapes, classes in brackets, and those with a name.

use super::{CODE_POINTS, FOLDED_MAX, Problem, TOO_LARGE, Translator, UNICODE_CLASSES_MAX};

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";

/// Between `[:` and `:]`, with or without `^`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Names of Unicode's general categories that are longer than two letters, without what is not
/// looked at in them.
const CATEGORIES: [&str; 44] = [
    "any",
    "ascii",
    "assigned",
    "casedletter",
    "closepunctuation",
    "cntrl",
    "combiningmark",
    "connectorpunctuation",
    "control",
    "currencysymbol",
    "dashpunctuation",
    "decimalnumber",
    "digit",
    "enclosingmark",
    "finalpunctuation",
    "format",
    "initialpunctuation",
    "letter",
    "letternumber",
    "lineseparator",
    "lowercaseletter",
    "mark",
    "mathsymbol",
    "modifierletter",
    "modifiersymbol",
    "nonspacingmark",
    "number",
    "openpunctuation",
    "other",
    "otherletter",
    "othernumber",
    "otherpunctuation",
    "othersymbol",
    "paragraphseparator",
    "privateuse",
    "punct",
    "punctuation",
    "separator",
    "spaceseparator",
    "spacingmark",
    "symbol",
    "titlecaseletter",
    "unassigned",
    "uppercaseletter",
];

impl Translator<'_> {
    /// A backslash outside of a class.
    pub(super) fn escape(&mut self) -> Result<(), Problem> {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let (text, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            self.out.push_str(&regex::escape(text));
            self.rest = rest;
            if !text.is_empty() {
                self.may_repeat(1);
            }
            return Ok(());
        }
        let place = match self.rest.as_bytes().get(1) {
            Some(b'A') => "\\A",
            Some(b'z') => "\\z",
            Some(b'b') => "(?-u:\\b)",
            Some(b'B') => "(?-u:\\B)",
            _ => "",
        };
        if !place.is_empty() {
            self.out.push_str(place);
            self.rest = &self.rest[2..];
        } else if !self.unicode()? && !self.letter(true) {
            let one = self.escaped()?;
            self.literal(one);
        }
        self.may_repeat(1);
        Ok(())
    }

    /// A class, from bracket to bracket.
    pub(super) fn class(&mut self) -> Result<(), Problem> {
        let whole = self.rest;
        self.copy(1);
        if self.rest.starts_with('^') {
            self.copy(1);
        }
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if self.posix()? || self.unicode()? || self.letter(false) {
                // Most that there are, where it is a negative one.
                self.fold(CODE_POINTS, whole)?;
                continue;
            }
            let of_range = self.rest;
            let low = self.in_class(whole)?;
            self.literal(low);
            if !self.rest.starts_with('-') || self.rest.starts_with("-]") || self.rest.len() == 1 {
                continue;
            }
            self.copy(1);
            let high = self.in_class(whole)?;
            if high < low {
                let length = of_range.len() - self.rest.len();
                return Err(Problem::new(BAD_RANGE, &of_range[..length]));
            }
            self.fold(1 + high as usize - low as usize, whole)?;
            self.literal(high);
        }
        self.copy(1);
        self.may_repeat(1);
        Ok(())
    }

    /// Counts code points of a class for which other cases may be looked up.
    fn fold(&mut self, count: usize, whole: &str) -> Result<(), Problem> {
        if self.folds {
            self.folded += count;
        }
        if self.folded > FOLDED_MAX {
            let end = whole.len() - self.rest.len();
            return Err(Problem::new(TOO_LARGE, &whole[..end]));
        }
        Ok(())
    }

    fn in_class(&mut self, whole: &str) -> Result<char, Problem> {
        let Some(one) = self.rest.chars().next() else {
            return Err(Problem::new("missing closing ]", whole));
        };
        if one == '\\' {
            return self.escaped();
        }
        self.rest = &self.rest[one.len_utf8()..];
        Ok(one)
    }

    /// `[:alpha:]` and its like.
    fn posix(&mut self) -> Result<bool, Problem> {
        let Some(inner) = self.rest.strip_prefix("[:") else {
            return Ok(false);
        };
        let Some(end) = inner.find(":]") else {
            return Ok(false);
        };
        let (name, length) = (&inner[..end], 2 + end + 2);
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(Problem::new(BAD_RANGE, &self.rest[..length]));
        }
        self.copy(length);
        Ok(true)
    }

    /// `\pL`, `\p{Greek}`, `\P{^Greek}`: a category or a script.
    fn unicode(&mut self) -> Result<bool, Problem> {
        let text = self.rest;
        let mut is_negative = match text.as_bytes() {
            [b'\\', b'p', ..] => false,
            [b'\\', b'P', ..] => true,
            _ => return Ok(false),
        };
        let Some(first) = text[2..].chars().next() else {
            return Ok(false);
        };
        let (name, length) = if first == '{' {
            let end = text
                .find('}')
                .ok_or_else(|| Problem::new(BAD_RANGE, text))?;
            (&text[3..end], end + 1)
        } else {
            let end = 2 + first.len_utf8();
            (&text[2..end], end)
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                is_negative = !is_negative;
                name
            }
            None => name,
        };
        let plain = |c: &char| !matches!(c, '_' | '-' | ' ');
        let plain: String = name.to_ascii_lowercase().chars().filter(plain).collect();
        if plain.is_empty() || !plain.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Problem::new(BAD_RANGE, &text[..length]));
        }
        self.unicode_classes += 1;
        if self.unicode_classes > UNICODE_CLASSES_MAX {
            return Err(Problem::new(TOO_LARGE, &text[..length]));
        }
        let is_category = plain.len() <= 2 || CATEGORIES.contains(&&*plain);
        let kind = if is_category { "gc" } else { "sc" };
        let sign = if is_negative { 'P' } else { 'p' };
        self.out.push_str(&format!("\\{sign}{{{kind}={plain}}}"));
        self.rest = &text[length..];
        Ok(true)
    }

    /// `\d` and the like. Within a class a set needs brackets only where it is a negative one.
    fn letter(&mut self, is_alone: bool) -> bool {
        let named = self
            .rest
            .strip_prefix('\\')
            .and_then(|rest| rest.chars().next());
        let set = match named.map(|one| one.to_ascii_lowercase()) {
            Some('d') => "0-9",
            Some('w') => "0-9A-Za-z_",
            Some('s') => "\\t\\n\\x0C\\r ",
            _ => return false,
        };
        let is_negative = named.is_some_and(|one| one.is_ascii_uppercase());
        let text = match (is_negative, is_alone) {
            (true, _) => format!("[^{set}]"),
            (false, true) => format!("[{set}]"),
            (false, false) => set.to_owned(),
        };
        self.out.push_str(&text);
        self.rest = &self.rest[2..];
        true
    }

    /// Takes the character that an escape stands for.
    fn escaped(&mut self) -> Result<char, Problem> {
        let text = self.rest;
        let mut chars = text[1..].chars();
        let Some(named) = chars.next() else {
            let why = "trailing backslash at end of expression";
            return Err(Problem::new(why, ""));
        };
        let octal = |c: &char| ('0'..='7').contains(c);
        let found = match named {
            'a' => Some('\x07'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            'x' => hexadecimal(&mut chars),
            // One digit alone would be what a group has matched, which no such engine knows.
            '0'..='7' if named == '0' || chars.clone().next().is_some_and(|next| octal(&next)) => {
                let mut code = named.to_digit(8).unwrap_or(0);
                for digit in chars.clone().take_while(octal).take(2) {
                    code = code * 8 + digit.to_digit(8).unwrap_or(0);
                    chars.next();
                }
                char::from_u32(code)
            }
            one if one.is_ascii() && !one.is_ascii_alphanumeric() => Some(one),
            _ => None,
        };
        self.rest = chars.as_str();
        found.ok_or_else(|| Problem::new(BAD_ESCAPE, &text[..text.len() - self.rest.len()]))
    }
}

/// `41` or `{1F600}`. What is none is taken up to where that is seen.
fn hexadecimal(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let first = chars.next()?;
    if first != '{' {
        let second = chars.next();
        return char::from_u32(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut code = 0;
    let mut has_digits = false;
    loop {
        match chars.next()? {
            '}' if has_digits => return char::from_u32(code),
            digit => code = code * 16 + digit.to_digit(16)?,
        }
        has_digits = true;
        if code > u32::from(char::MAX) {
            return None;
        }
    }
}
