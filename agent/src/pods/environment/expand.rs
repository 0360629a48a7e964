//! `$(NAME)` in values, commands and arguments. `$$` is a dollar sign; what is unknown stays.

pub fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            rest = escaped;
            continue;
        }
        let name = after
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        match name {
            Some((name, tail)) => {
                match lookup(name) {
                    Some(value) => out.push_str(&value),
                    None => {
                        out.push_str("$(");
                        out.push_str(name);
                        out.push(')');
                    }
                }
                rest = tail;
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
