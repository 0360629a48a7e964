//! What a file of tokens may look like, and what is wrong with one.

use super::*;

fn parse(text: &str) -> Result<TokenFile, String> {
    TokenFile::parse(text.as_bytes(), "t.csv").map_err(|error| error.to_string())
}

#[test]
fn each_line_is_a_user() {
    let file = parse(
        "s3cret,jane,7,\"dev,ops\"\n\
         other,joe,8\n\n\
         ,nobody,9\n\
         other,jack,10,dev\n",
    )
    .unwrap();
    let jane = file.user("s3cret").unwrap();
    assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "7"));
    assert_eq!(jane.groups, ["dev", "ops"]);
    assert_eq!(file.user("other").unwrap().name, "jack");
    for unknown in ["", "s3cre", "s3cret ", "S3CRET"] {
        assert_eq!(file.user(unknown), None, "{unknown:?}");
    }
}

#[test]
fn too_few_columns_are_told_of_without_the_token() {
    assert_eq!(
        parse("ok,a,b\ns3cret,jane\n").unwrap_err(),
        "token file 't.csv' must have at least 3 columns (token, user name, user uid), found 2 in \
         record 2"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = TokenFile::open(Path::new("/no/such/tokens.csv")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the token file /no/such/tokens.csv"
    );
}
