use super::*;

fn of(secrets: &[&str]) -> Redactor {
    Redactor::new(secrets.iter().map(|secret| secret.as_bytes().to_vec()))
}

#[test]
fn secrets_do_not_come_back_in_any_form() {
    let redactor = of(&["s3cr3t/pass wörd"]);
    for text in [
        "got s3cr3t/pass wörd back",
        "got S3CR3T/PASS wörd back",
        "czNjcjN0L3Bhc3Mgd8O2cmQ=",
        "x dXNlcjpzM2NyM3QvcGFzcyB3w7ZyZA== y",
        "s3cr3t%2Fpass%20w%C3%B6rd",
        "s3cr3t%2fpass+w%c3%b6rd",
        "s3cr3t%252Fpass%2520w%25C3%25B6rd",
        "%73%33%63%72%33%74%2f%70%61%73%73%20%77%c3%b6%72%64",
        "s3cr3t\\/pass w\\u00f6rd",
        "s3cr3t\\\\/pass w\\\\u00F6rd",
        "\\u0073\\u0033\\u0063\\u0072\\u0033\\u0074\\u002f\\u0070ass w\\xf6rd",
        "s3cr3t/pass w\\303\\266rd",
        "s3cr3t/pass w\\u{f6}rd",
        "s3cr3t&#47;pass w&#xF6;rd",
        "s3cr3t=2Fpass w=C3=B6rd",
        "7333637233742f706173732077c3b67264",
        "\\x7333637233742F706173732077C3B67264",
        "73:33:63:72:33:74:2f:70:61:73:73:20:77:c3:b6:72:64",
        "s3cr3t/pa\nss wörd",
        "a\u{1b}[31ms3cr3t/pass wörd",
    ] {
        let clean = redactor.clean(text, 200);
        assert!(clean.contains(GONE), "{text} → {clean}");
        let lower = clean.to_lowercase();
        for piece in [
            "s3c", "ass", "rd", "733", "73:", "\\u00", "mgd", "zmny", "\u{1b}",
        ] {
            assert!(!lower.contains(piece), "{text} → {clean}");
        }
    }
}

#[test]
fn what_a_secret_is_made_of_does_not_come_back_either() {
    // The password in the header, in whatever form it is sent back.
    let redactor = of(&["Basic dXNlcjpodW50ZXIyJmNv"]);
    for text in [
        "no such user user:hunter2&co here",
        "wrong password hunter2&co here",
        "wrong hunter2%26co here",
        "sent dXNlcjpodW50ZXIyJmNv here",
        "basic credentials aHVudGVyMiZjbw== here",
    ] {
        let clean = redactor.clean(text, 200);
        assert!(clean.contains(GONE) && clean.ends_with(" here"), "{clean}");
        assert!(
            !clean.contains("hunter") && !clean.contains("dXNl"),
            "{clean}"
        );
    }
    // The scheme itself is no secret.
    assert_eq!(redactor.clean("use Basic", 200), "use Basic");

    let key = "-----BEGIN KEY-----\nAAAAB3NzaC1yc2E\nEAAAADAQABAAABgQ\n-----END KEY-----\n";
    let redactor = of(&[key]);
    for text in [
        key.to_owned(),
        key.replace('\n', "\\n"),
        key.replace('\n', "\r\n"),
        key.replace('\n', " "),
        key.replace('\n', ""),
        "line 2: AAAAB3NzaC1yc2E".to_owned(),
        "line 3: EAAAADAQABAAABgQ, line 2: aaaab3nzac1yc2e".to_owned(),
    ] {
        let clean = redactor.clean(&text, 400).to_lowercase();
        assert!(clean.contains(GONE), "{text} → {clean}");
        assert!(
            !clean.contains("aaaa") && !clean.contains("yc2e"),
            "{clean}"
        );
    }
    let redactor = of(&["one\ntwo\nthree"]);
    for text in [
        "one\ntwo\nthree",
        "one\\ntwo\\nthree",
        "one\\r\\ntwo\\r\\nthree",
    ] {
        assert_eq!(redactor.clean(text, 200), GONE);
    }
}

#[test]
fn half_a_secret_at_the_end_goes_too() {
    let redactor = of(&["s3cr3t/pass word"]);
    for text in [
        "tail s3cr3t/pass wo",
        "tail s3cr3t%2",
        "tail s3",
        "tail czNjcjN0",
    ] {
        assert_eq!(
            redactor.clean_bytes(text.as_bytes(), true, 200),
            "tail [redacted]"
        );
    }
    let long = format!("{} s3cr3t/pass word", "x".repeat(MOST_BYTES - 6));
    let clean = redactor.clean(&long, 10_000);
    assert!(clean.ends_with("x [redacted]"), "{clean}");
}

#[test]
fn the_sign_of_an_absent_secret_is_not_searched() {
    let redactor = of(&["a", "c", "d", "e", "t"]);
    assert_eq!(redactor.clean("xex", 200), "x[redacted]x");
    assert_eq!(redactor.clean("xcatx", 200), "x[redacted]x");
    assert_eq!(of(&[""]).clean("nothing", 200), "nothing");
}

#[test]
fn what_others_said_can_be_hidden_altogether() {
    let told = Told::from("ERROR 42501").with_words(": ", "reversed 2retnuh", false);
    let redactor = of(&["hunter2"]);
    assert_eq!(redactor.told(&told, 200), "ERROR 42501: reversed 2retnuh");
    assert_eq!(
        redactor.hiding_words().told(&told, 200),
        "ERROR 42501 (16 bytes of its words are not shown)"
    );
}

#[test]
fn what_is_named_a_secret_is_one() {
    for (text, wanted) in [
        ("password=hunter2 x", "password=[redacted] x"),
        ("{\"token\": \"abc\"}", "{\"token\": \"[redacted]\"}"),
        (
            "Authorization: Bearer abc.def",
            "Authorization: Bearer [redacted]",
        ),
        (
            "postgres://u:p@127.0.0.1/db",
            "postgres://[redacted]@127.0.0.1/db",
        ),
        ("http://127.0.0.1/a@b", "http://127.0.0.1/a@b"),
        (
            "no secret here, only the word token",
            "no secret here, only the word token",
        ),
        ("pässwörd=ü password=ß", "pässwörd=ü password=[redacted]"),
    ] {
        assert_eq!(Redactor::default().clean(text, 200), wanted);
    }
}

/// A server may know the secret, and send what takes longest to compare. Without the
/// bound this does not end.
#[test]
fn a_hostile_text_is_compared_in_bounded_time() {
    let secret = format!("{}b", "a\\".repeat(200));
    let redactor = of(&[&secret]);
    for text in ["a", "a\\", "%25", "\\", "\\\\u", "%61%5c", "&#97;\\\\"] {
        let text = text.repeat(100_000);
        assert!(redactor.clean(&text, 200).len() < 1000);
    }
}
