use super::{CLAIMS, Facts};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// Nothing was made: neither the packet nor what is not finished.
fn nothing_is_left(facts: &Facts) {
    let names = fs::read_dir(facts.around()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["facts"]);
}

/// Packs with one change of the text; must be refused with this code, and say this.
fn refused(from: &str, to: &str, code: &str, says: &str) {
    let facts = Facts::new();
    assert!(CLAIMS.contains(from), "{from}");
    facts.write("claims.toml", CLAIMS.replacen(from, to, 1));
    let said = facts.pack(&[]);
    said.failed(2, code);
    assert!(said.stderr.contains(says), "{to}: {says}: {}", said.stderr);
    assert_eq!(said.stdout, "");
    nothing_is_left(&facts);
}

#[test]
fn what_is_wrong_in_the_text_is_told_with_line_and_column() {
    for (from, to, code, says) in [
        // The form.
        (
            "id = \"small\"",
            "id = ",
            "pack.malformed",
            "line 2, column 6: ",
        ),
        (
            "revision = 82",
            "verdict = \"ACCEPTED\"",
            "pack.malformed",
            "line 15, column 1: unknown field `verdict`",
        ),
        (
            "count = 2",
            "cuont = 2",
            "pack.malformed",
            "line 53, column 50: unknown field `cuont`",
        ),
        (
            "document_type = \"index\"",
            "document_type = \"truth\"",
            "pack.malformed",
            "unknown variant `truth`",
        ),
        (
            "kind = \"is\"",
            "kind = \"feels\"",
            "pack.malformed",
            "line 49, column 8: unknown variant `feels`",
        ),
        (
            "id = \"C-01\"\n",
            "",
            "pack.malformed",
            "missing field `id`",
        ),
        (
            "revision = 82",
            "revision = 82\nrevision = 83",
            "pack.malformed",
            "line 16, column 1: duplicate key",
        ),
        (
            "revision = 82",
            "\"a\\u001b[31m\" = 1",
            "pack.malformed",
            "line 15, column 1: unknown field",
        ),
        // What it says.
        (
            "claims/v1",
            "claims/v2",
            "pack.field",
            "line 1, column 10: schema is \"tki-attest/claims/v2\"",
        ),
        (
            "\"small\"",
            "\"../x\"",
            "pack.field",
            "line 2, column 6: id is \"../x\"",
        ),
        (
            "2026-06-10T12:00:00Z",
            "2026-06-10",
            "pack.field",
            "line 3, column 9: as_of is \"2026-06-10\"",
        ),
        (
            "captured_by = \"operator\"",
            "captured_by = \"\"",
            "pack.field",
            "line 8, column 15: item[0].captured_by is \"\"",
        ),
        (
            "captured_by = \"operator\"\n",
            "",
            "pack.field",
            "line 10, column 1: item[0].captured_by is missing",
        ),
        (
            "locator = \"knowledge/index\"\n",
            "",
            "pack.field",
            "line 11, column 1: item[0].locator is missing",
        ),
        (
            "document_type = \"listing\"\nvenue",
            "venue",
            "pack.field",
            "item[1].document_type is missing",
        ),
        (
            "path = \"containers.json\"\n",
            "",
            "pack.field",
            "item[1] is missing: name",
        ),
        (
            "path = \"containers.json\"",
            "path = \"a\"\nbundle = \"b\"",
            "pack.field",
            "item[1].bundle does not go with `path`",
        ),
        (
            "\"vps\"",
            "\"mac\"",
            "pack.field",
            "item[1].venue is \"mac\"",
        ),
        (
            "word = \"BLOCKED\"",
            "word = \"GREEN\"",
            "pack.field",
            "item[0].status.word is \"GREEN\"",
        ),
        (
            "revision = 82",
            "revision = 9007199254740992",
            "pack.field",
            "line 15, column 12: item[0].revision is beyond 2^53",
        ),
        (
            "id = \"later\"",
            "id = \"index\"",
            "pack.field",
            "as another item's",
        ),
        (
            "\"later.json\"",
            "\"containers.json\"",
            "pack.field",
            "item[2].path is",
        ),
        (
            "id = \"C-02\"",
            "id = \"C-01\"",
            "pack.field",
            "as another claim's",
        ),
        (
            "{ item = \"index\", quote",
            "{ item = \"nobody\", quote",
            "pack.field",
            "line 43, column 14: claim[0].evidence[0].item is \"nobody\"",
        ),
        (
            "count = 2",
            "count = 2, at_least = 1",
            "pack.field",
            "claim[1].evidence[0] expects more than one thing",
        ),
        (
            "step = 2",
            "step = 2, json = \"\"",
            "pack.field",
            "claim[1].evidence[4] says where in more than one way",
        ),
        (
            "step = 2, exit = 0",
            "step = 2, count = 0",
            "pack.field",
            "claim[1].evidence[4].expect does not go with this place",
        ),
        (
            "quote = \"nobody ran it\", ",
            "",
            "pack.field",
            "claim[0].evidence[1].lines is missing: `lines` chooses",
        ),
    ] {
        refused(from, to, code, says);
    }
}

#[test]
fn a_path_that_is_none_is_refused() {
    for (path, says) in [
        ("../facts/later.json", "empty part, `.` or `..`"),
        ("docs/../later.json", "empty part, `.` or `..`"),
        ("./later.json", "empty part, `.` or `..`"),
        ("docs//index.md", "empty part, `.` or `..`"),
        ("/etc/passwd", "it begins with `/`"),
        ("packet.json", "is the packet's own file"),
        ("a\\\\b", "a backslash"),
        ("a\\u202eb", "a character that is not seen"),
        ("", "it has no name in it"),
    ] {
        let to = format!("\"{path}\"");
        refused("\"later.json\"", &to, "pack.field", "item[2].path is");
        refused("\"later.json\"", &to, "pack.field", says);
    }
    let bundle = "bundle = \"../run.json\"";
    refused(
        "path = \"later.json\"\ndocument_type = \"listing\"",
        bundle,
        "pack.field",
        "`..`",
    );
    let bundle = "bundle = \"steps.jsonl\"";
    let says = "item[2].bundle is no evidence";
    refused(
        "path = \"later.json\"\ndocument_type = \"listing\"",
        bundle,
        "pack.field",
        says,
    );
}

#[test]
fn a_place_that_is_not_there_is_refused_with_the_candidates() {
    for (from, to, says) in [
        (
            "0 of 12 probes run\"",
            "12 of 12 probes run\"",
            "line 43, column 31: claim[0].evidence[0].quote is not there: the quote stands nowhere \
             in the item; its first 3 words stand on line 3",
        ),
        (
            ", lines = [7, 7]",
            "",
            "line 44, column 31: claim[0].evidence[1].quote is not there: the quote stands at 2 \
             places, on line 6, line 7",
        ),
        (
            "lines = [7, 7]",
            "lines = [1, 2]",
            "does not stand on lines 1-2; it stands on line 6, line 7",
        ),
        (
            "json = \"/containers/0/name\"",
            "json = \"/containers/2/name\"",
            "line 54, column 35: claim[1].evidence[1].json is not there: the item has nothing at \
             \"/containers/2/name\"; it has \"/containers\"",
        ),
        (
            "item = \"containers\", json = \"/containers\", count = 2",
            "item = \"steps\", json = \"/step\", count = 2",
            "the item is application/jsonl, and a JSON pointer needs application/json",
        ),
        (
            "{ item = \"later\", json = \"\" }",
            "{ item = \"later\", json = \"/x\" }",
            "claim[1].evidence[3].same_as.json is not there",
        ),
        (
            "step = 2",
            "step = 3",
            "line 57, column 30: claim[1].evidence[4].step is not there: the transcript has no \
             step 3; it has 1, 2",
        ),
        (
            "item = \"steps\", step",
            "item = \"later\", step",
            "the item is of the type listing, and only a transcript has steps",
        ),
    ] {
        refused(from, to, "pack.place", says);
    }
}

#[test]
fn a_file_that_cannot_be_an_item_is_refused_without_waiting() {
    type Change = fn(&Facts, &PathBuf);
    let changes: [(Change, &str, &str); 9] = [
        (|_, _| {}, "pack.item", "there is no such file"),
        (
            |_, path| symlink("containers.json", path).unwrap(),
            "pack.item",
            "later.json is a symbolic link",
        ),
        (
            |_, path| symlink("/dev/zero", path).unwrap(),
            "pack.item",
            "later.json is a symbolic link",
        ),
        (
            |_, path| fs::create_dir(path).unwrap(),
            "pack.item",
            "it is a directory",
        ),
        (
            |_, path| {
                let made = Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            },
            "pack.item",
            "it is not a regular file",
        ),
        (
            |_, path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
            "pack.item",
            "it is not a regular file",
        ),
        (
            |_, path| fs::File::create(path).unwrap().set_len(4 << 30).unwrap(),
            "pack.limit",
            "it has more than 268435456 bytes",
        ),
        (
            |facts, path| {
                fs::write(path, "{}").unwrap();
                fs::rename(facts.at("docs"), facts.at("real")).unwrap();
                symlink("real", facts.at("docs")).unwrap();
            },
            "pack.item",
            "item[0].path is \"docs/index.md\": docs is a symbolic link",
        ),
        (
            |facts, path| {
                fs::write(path, "{}").unwrap();
                facts.write("docs/index.md", b"B4\xff");
            },
            "pack.place",
            "the item is not UTF-8 text",
        ),
    ];
    for (change, code, says) in changes {
        let facts = Facts::new();
        let path = facts.at("later.json");
        fs::remove_file(&path).unwrap();
        change(&facts, &path);
        let said = facts.pack(&[]);
        said.failed(2, code);
        assert!(said.stderr.contains(says), "{says}: {}", said.stderr);
        nothing_is_left(&facts);
    }
}

#[test]
fn json_that_two_readers_could_read_otherwise_is_no_place_to_point_into() {
    let deep = "[".repeat(200_000);
    for (text, says) in [
        (
            "{\"containers\":[1],\n\"containers\":[]}",
            "line 2, column 12: duplicate key",
        ),
        ("{\"containers\":[1.5]}", "not a plain integer"),
        (deep.as_str(), "recursion limit"),
        ("", "EOF"),
    ] {
        let facts = Facts::new();
        facts.write("containers.json", text);
        let said = facts.pack(&[]);
        said.failed(2, "pack.place");
        let both = ["line 53, column 35: claim[1].evidence[0].json", says];
        for says in both {
            assert!(said.stderr.contains(says), "{says}: {}", said.stderr);
        }
        nothing_is_left(&facts);
    }
}

#[test]
fn what_is_there_is_not_replaced() {
    let facts = Facts::new();
    fs::create_dir(facts.packet()).unwrap();
    facts.pack(&[]).failed(2, "pack.exists");
    assert_eq!(fs::read_dir(facts.packet()).unwrap().count(), 0);
    fs::remove_dir(facts.packet()).unwrap();
    symlink("/nowhere/at/all", facts.packet()).unwrap();
    facts.pack(&[]).failed(2, "pack.exists");
    fs::remove_file(facts.packet()).unwrap();
    let out = facts.at("later.json/x");
    facts
        .pack(&["--out", out.to_str().unwrap()])
        .failed(2, "pack.unwritable");
    facts.pack(&["--out", "/"]).failed(2, "pack.unwritable");
    nothing_is_left(&facts);
    facts.pack(&[]).succeeded();
    facts.pack(&[]).failed(2, "pack.exists");
}

#[test]
fn the_text_itself_must_be_a_text_that_can_be_read() {
    let facts = Facts::new();
    facts.write("claims.toml", [CLAIMS.as_bytes(), b"# \xff\n"].concat());
    let said = facts.pack(&[]);
    said.failed(2, "pack.malformed");
    assert!(
        said.stderr.contains("line 59, column 3: it is not UTF-8"),
        "{said:?}"
    );
    fs::File::create(facts.at("claims.toml"))
        .unwrap()
        .set_len(1 << 33)
        .unwrap();
    facts.pack(&[]).failed(2, "pack.unreadable");
    fs::remove_file(facts.at("claims.toml")).unwrap();
    let said = facts.pack(&[]);
    said.failed(2, "pack.unreadable");
    assert!(said.stderr.contains("pack --init"), "{said:?}");
    let elsewhere = facts.at("elsewhere.toml");
    fs::write(&elsewhere, CLAIMS).unwrap();
    symlink(&elsewhere, facts.at("claims.toml")).unwrap();
    facts.pack(&[]).failed(2, "pack.unreadable");
    nothing_is_left(&facts);
    // A link that the user names is the user's.
    let claims = facts.at("claims.toml");
    facts
        .pack(&["--claims", claims.to_str().unwrap()])
        .succeeded();
}

#[test]
fn a_name_that_is_not_text_is_refused_or_left_out() {
    let facts = Facts::new();
    let name = std::ffi::OsStr::from_bytes(b"\x1b[31m\xff");
    fs::write(facts.folder().join(name), "").unwrap();
    let said = facts.pack(&[]);
    said.succeeded();
    assert!(
        said.stdout.contains("left out   \\u{1b}[31m\u{fffd}"),
        "{said:?}"
    );
    fs::remove_file(facts.at("claims.toml")).unwrap();
    let mut command = crate::common::tool();
    let said = crate::common::run(command.args(["pack", "--init"]).arg(facts.folder()));
    said.failed(2, "pack.name");
    assert!(said.stderr.contains("its name is not UTF-8"), "{said:?}");
    assert!(!facts.at("claims.toml").exists());
}

#[test]
fn a_bundle_with_a_link_among_its_artifacts_is_refused() {
    let bundle = "\n[[item]]\nid = \"run\"\nbundle = \"run.json\"\n";
    let facts = Facts::new();
    facts.write("claims.toml", format!("{CLAIMS}{bundle}"));
    facts.pack(&[]).failed(2, "pack.item");
    facts.write("run.json", "{}");
    fs::create_dir(facts.at("run")).unwrap();
    facts.write("run/a.txt", "a");
    symlink("/etc/passwd", facts.at("run/b.txt")).unwrap();
    let said = facts.pack(&[]);
    said.failed(2, "pack.item");
    assert!(
        said.stderr.contains("item[4].bundle is \"run/b.txt\""),
        "{said:?}"
    );
    nothing_is_left(&facts);
}
