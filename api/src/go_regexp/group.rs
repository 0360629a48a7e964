//! Parentheses: groups, their names, and flags.

use super::{Problem, Translator};

const FLAGS: &str = "imsU";

impl Translator<'_> {
    /// A parenthesis, with what a question mark behind it says.
    pub(super) fn open(&mut self) -> Result<(), Problem> {
        let named = ["(?P<", "(?<"]
            .iter()
            .find(|start| self.rest.starts_with(**start));
        match named {
            Some(start) => self.name(start.len())?,
            None if self.rest.starts_with("(?") => return self.flags(),
            None => self.copy(1),
        }
        self.enter();
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Problem> {
        let inner = self.repeated.pop().unwrap_or(1);
        if self.repeated.is_empty() {
            return Err(Problem::new("unexpected )", self.whole));
        }
        self.copy(1);
        self.may_repeat(inner);
        Ok(())
    }

    fn enter(&mut self) {
        self.repeated.push(1);
        self.last = None;
    }

    /// Nobody asks for a group by its name, which may begin with a digit: it is left out.
    fn name(&mut self, start: usize) -> Result<(), Problem> {
        let why = "invalid named capture";
        let Some(end) = self.rest.find('>') else {
            return Err(Problem::new(why, self.rest));
        };
        let name = self.rest.get(start..end).unwrap_or("");
        let in_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if name.is_empty() || !name.bytes().all(in_name) {
            return Err(Problem::new(why, &self.rest[..=end]));
        }
        self.out.push('(');
        self.rest = &self.rest[end + 1..];
        Ok(())
    }

    /// `(?i)`, `(?i-s:` and the like. The crate takes no flag twice; in Go the last one counts.
    fn flags(&mut self) -> Result<(), Problem> {
        let text = self.rest;
        let [mut on, mut off] = [String::new(), String::new()];
        let mut is_off = false;
        let mut saw = false;
        for (index, one) in text.char_indices().skip(2) {
            let until = index + one.len_utf8();
            let of = &text[..until];
            match one {
                flag if FLAGS.contains(flag) => {
                    on.retain(|other| other != flag);
                    off.retain(|other| other != flag);
                    let set = if is_off { &mut off } else { &mut on };
                    set.push(flag);
                    saw = true;
                }
                '-' if !is_off => (is_off, saw) = (true, false),
                ':' | ')' if !is_off || saw => {
                    self.rest = &text[until..];
                    self.folds |= on.contains('i');
                    if one == ':' || !(on.is_empty() && off.is_empty()) {
                        let sign = if off.is_empty() { "" } else { "-" };
                        self.out.push_str(&format!("(?{on}{sign}{off}{one}"));
                    }
                    if one == ':' {
                        self.enter();
                    }
                    return Ok(());
                }
                _ => return Err(Problem::new("invalid or unsupported Perl syntax", of)),
            }
        }
        Err(Problem::new("invalid or unsupported Perl syntax", text))
    }
}
