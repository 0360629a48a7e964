//! Numbers of books and of credit cards, whose digits have a sum that must come out.

use super::Pattern;

/// Ten digits, of which the last may be `X`, with dashes and white space anywhere.
pub fn is_isbn10(text: &str) -> bool {
    static PATTERN: Pattern = Pattern::new("^[0-9]{9}[0-9X]$");
    let text = without_dashes(text);
    let weighted = (1..).zip(text.chars());
    let sum: u32 = weighted
        .map(|(weight, c)| weight * c.to_digit(10).unwrap_or(10))
        .sum();
    PATTERN.is_match(&text) && sum.is_multiple_of(11)
}

/// Thirteen digits, with dashes and white space anywhere.
pub fn is_isbn13(text: &str) -> bool {
    let text = without_dashes(text);
    let is_number = text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit());
    let weighted = [1, 3].into_iter().cycle().zip(text.chars());
    let sum: u32 = weighted
        .filter_map(|(by, c)| Some(by * c.to_digit(10)?))
        .sum();
    is_number && sum.is_multiple_of(10)
}

fn without_dashes(text: &str) -> String {
    const LEFT_OUT: &[char] = &['-', ' ', '\t', '\n', '\x0c', '\r'];
    text.replace(LEFT_OUT, "")
}

/// The number of a known issuer whose sum (Luhn's) comes out; what is no digit is not looked at.
pub fn is_credit_card(text: &str) -> bool {
    static PATTERN: Pattern = Pattern::new(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|",
        "3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ));
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let values = digits.chars().rev().filter_map(|c| c.to_digit(10));
    let sum: u32 = values
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => digit,
            (_, twice) => twice / 10 + twice % 10,
        })
        .sum();
    PATTERN.is_match(&digits) && sum.is_multiple_of(10)
}
