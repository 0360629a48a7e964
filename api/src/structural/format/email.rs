//! Addresses of mail as Go's `net/mail` reads them: `a@b`, `A Name <a@b>`, comments, groups of one.

use std::net::IpAddr;

/// Whether it is the address of one.
pub fn is_address(text: &str) -> bool {
    let mut reader = Reader(text);
    reader.address(true) == Some(1) && reader.comments().is_some() && reader.0.is_empty()
}

/// What is left to read. What fails takes nothing where something else may be tried.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    /// How many addresses it has; only a group may have another number than one.
    fn address(&mut self, may_be_group: bool) -> Option<usize> {
        self.spaces();
        let start = self.0;
        if self.plain().is_some() {
            self.spaces();
            if self.take('(') {
                self.comment()?;
            }
            return Some(1);
        }
        self.0 = start;
        if !start.starts_with('<') {
            self.phrase()?;
        }
        self.spaces();
        if may_be_group && self.take(':') {
            return self.group();
        }
        let is_whole = self.take('<') && self.plain().is_some() && self.take('>');
        is_whole.then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.spaces();
        let mut count = 0;
        let mut is_over = self.take(';');
        while !is_over {
            count += self.address(false)?;
            self.comments()?;
            is_over = self.take(';');
            if !is_over && !self.take(',') {
                return None;
            }
        }
        self.comments()?;
        Some(count)
    }

    /// `local@domain`.
    fn plain(&mut self) -> Option<()> {
        self.spaces();
        if self.0.starts_with('"') {
            self.quoted().filter(|length| *length > 0)?;
        } else {
            self.atom().filter(|atom| is_dotted(atom))?;
        }
        if !self.take('@') {
            return None;
        }
        self.spaces();
        if self.take('[') {
            let (literal, rest) = self.0.split_once(']')?;
            self.0 = rest;
            return is_literal(literal).then_some(());
        }
        self.atom().filter(|atom| is_dotted(atom)).map(|_| ())
    }

    /// Words before an address.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.comments()?;
            }
            self.spaces();
            if self.0.is_empty() {
                return Some(());
            }
            let before = self.0;
            let is_word = if before.starts_with('"') {
                self.quoted().is_some()
            } else {
                self.atom().is_some()
            };
            if !is_word {
                self.0 = before;
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    /// The length of a quoted text.
    fn quoted(&mut self) -> Option<usize> {
        let mut length = 0;
        let mut is_escaped = false;
        for (index, one) in self.0.char_indices().skip(1) {
            match one {
                _ if is_escaped => {
                    is_escaped = false;
                    length += 1;
                }
                '"' => {
                    self.0 = &self.0[index + 1..];
                    return Some(length);
                }
                '\\' => {
                    is_escaped = true;
                    continue;
                }
                _ => length += 1,
            }
            if !is_visible(one) && !matches!(one, ' ' | '\t') {
                return None;
            }
        }
        None
    }

    /// With dots in it, wherever they are.
    fn atom(&mut self) -> Option<&str> {
        let in_atom = |c: char| is_visible(c) && !"()<>[]:;@\\,\"".contains(c);
        let end = self.0.find(|c| !in_atom(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        self.0 = rest;
        (!atom.is_empty()).then_some(atom)
    }

    fn comments(&mut self) -> Option<()> {
        self.spaces();
        while self.take('(') {
            self.comment()?;
            self.spaces();
        }
        Some(())
    }

    /// What comes after its first parenthesis, to its last.
    fn comment(&mut self) -> Option<()> {
        let mut depth = 1;
        let mut chars = self.0.chars();
        while depth > 0 {
            match chars.next()? {
                '\\' => {
                    chars.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
        }
        self.0 = chars.as_str();
        Some(())
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, one: char) -> bool {
        let rest = self.0.strip_prefix(one);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

fn is_visible(one: char) -> bool {
    ('!'..='~').contains(&one) || !one.is_ascii()
}

fn is_dotted(atom: &str) -> bool {
    atom.split('.').all(|part| !part.is_empty())
}

/// What stands in brackets for a domain: an address of IPv4, or one of either kind that says so.
fn is_literal(text: &str) -> bool {
    let (wanted_any, address) = match text.strip_prefix("IPv6:") {
        Some(address) => (true, address),
        None => (false, text),
    };
    let parsed = address.parse::<IpAddr>();
    parsed.is_ok_and(|address| wanted_any || address.to_canonical().is_ipv4())
}
