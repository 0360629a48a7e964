//! The texts of `continue`: what is read comes back as it was, and never leads out of its list.
#![no_main]

use libfuzzer_sys::fuzz_target;

// A private module of the API server, which is too large to be built for this alone.
#[path = "../../apiserver/src/verbs/list/token.rs"]
mod token;

fuzz_target!(|text: &str| {
    let Ok(token) = token::Token::decode(text) else {
        return;
    };
    assert!(
        token
            .after
            .split('/')
            .all(|part| !matches!(part, "." | ".."))
    );
    let again = token::Token::encode(token.revision, &token.after);
    assert_eq!(token::Token::decode(&again).ok().as_ref(), Some(&token));
});
