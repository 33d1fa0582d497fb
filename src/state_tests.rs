use super::*;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

const WHEN: u64 = 1_780_962_896;

fn key() -> Key {
    Key {
        engine: "docker".into(),
        engine_version: "20.10".into(),
        address: "unix:///run/docker.sock".into(),
        id: "A:B".into(),
        oci_runtime: "runc".into(),
        oci_runtime_commit: "1.1".into(),
        tool_version: "0.1".into(),
    }
}

fn refusal(said: &str) -> Refusal {
    Refusal {
        said: said.into(),
        when: WHEN,
    }
}

/// A state that remembers one refusal.
fn remembering() -> (tempfile::TempDir, State) {
    let place = tempfile::tempdir().unwrap();
    let state = State::below(place.path().join("deep/state"));
    state.remember(&key(), &refusal("no")).unwrap();
    (place, state)
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn folder(state: &State) -> PathBuf {
    state.parent.join(FOLDER)
}

#[test]
fn the_directory_follows_the_environment() {
    let path = |text: &str| Some(PathBuf::from(text));
    let chosen = |state, home, root| parent(state, home, root).unwrap();
    assert_eq!(chosen(path("/s"), path("/h"), true).to_str().unwrap(), "/s");
    for state in [None, path(""), path("relative")] {
        let found = chosen(state.clone(), path("/h"), false);
        assert_eq!(found.to_str().unwrap(), "/h/.local/state");
        assert_eq!(chosen(state.clone(), None, true).to_str().unwrap(), ROOTS);
        assert_eq!(parent(state, path("h"), false), None);
    }
}

#[test]
fn what_is_remembered_is_found_under_exactly_its_key() {
    let (_place, state) = remembering();
    let found = |key: &Key| state.refusal(key, WHEN).unwrap();
    assert_eq!(found(&key()), Some(refusal("no")));
    let others: [fn(&mut Key); 7] = [
        |key| key.engine.push('2'),
        |key| key.engine_version.push('2'),
        |key| key.address.push('2'),
        |key| key.id.push('2'),
        |key| key.oci_runtime.push('2'),
        |key| key.oci_runtime_commit.push('2'),
        |key| key.tool_version.push('2'),
    ];
    for change in others {
        let mut other = key();
        change(&mut other);
        assert_eq!(found(&other), None, "{other:?}");
    }
    // The clock was turned back: it cannot have been said yet.
    assert_eq!(state.refusal(&key(), WHEN - 1).unwrap(), None);
}

#[test]
fn only_this_user_can_read_what_is_remembered() {
    let (_place, state) = remembering();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&folder(&state)), 0o700);
    assert_eq!(mode(&state.path()), 0o600);
}

#[test]
fn nothing_is_remembered_where_there_is_nothing() {
    let place = tempfile::tempdir().unwrap();
    for parent in [place.path().to_owned(), place.path().join("missing")] {
        let state = State::below(parent);
        assert_eq!(state.refusal(&key(), WHEN).unwrap(), None);
        assert_eq!(state.left().unwrap(), []);
        state.forget(&key()).unwrap();
        state.remove(FILE.as_ref()).unwrap();
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_second_refusal_replaces_the_first_and_the_oldest_goes() {
    let (_place, state) = remembering();
    state.remember(&key(), &refusal("still no")).unwrap();
    assert_eq!(state.read().unwrap().len(), 1);
    let numbered = |number: usize| Key {
        id: number.to_string(),
        ..key()
    };
    for number in 0..MOST_ENTRIES {
        state.remember(&numbered(number), &refusal("no")).unwrap();
    }
    assert_eq!(state.read().unwrap().len(), MOST_ENTRIES);
    assert_eq!(state.refusal(&key(), WHEN).unwrap(), None);
    assert!(state.refusal(&numbered(0), WHEN).unwrap().is_some());
}

/// The most that an engine can say is read again.
#[test]
fn what_an_engine_says_is_cut_and_made_plain() {
    let (_place, state) = remembering();
    for said in ["a\u{1b}[31m\nb", &"\u{1b}\"é".repeat(9999)] {
        state.remember(&key(), &refusal(said)).unwrap();
        let found = state.refusal(&key(), WHEN).unwrap().unwrap().said;
        assert!(!found.contains(char::is_control), "{found}");
        assert!(found.chars().count() <= MOST_SAID + 1);
    }
    for number in 0..MOST_ENTRIES {
        let part = || format!("{number:0>width$}", width = 3) + &"\"".repeat(MOST_OF_KEY - 3);
        let longest = Key {
            engine: part(),
            engine_version: part(),
            address: part(),
            id: part(),
            oci_runtime: part(),
            oci_runtime_commit: part(),
            tool_version: part(),
        };
        let said = "\"".repeat(9999);
        state.remember(&longest, &refusal(&said)).unwrap();
    }
    assert_eq!(state.read().unwrap().len(), MOST_ENTRIES);
    for bad in ["x".repeat(MOST_OF_KEY + 1), "\u{1b}".into()] {
        let mut unbounded = key();
        unbounded.address = bad;
        state.remember(&unbounded, &refusal("no")).unwrap_err();
    }
}

#[test]
fn what_is_malformed_is_ignored_and_then_replaced() {
    let (_place, state) = remembering();
    let good = std::fs::read_to_string(state.path()).unwrap();
    let many: Written = serde_json::from_str(&good).unwrap();
    let many = Written {
        refused: vec![many.refused[0].clone(); MOST_ENTRIES + 1],
        ..many
    };
    for bad in [
        String::new(),
        "{".into(),
        "[]".into(),
        good.replace("state/v1", "state/v2"),
        good.replace("\"said\"", "\"more\": \"\", \"said\""),
        good.replace("\"said\"", "\"said\": \"twice\", \"said\""),
        good.replace("\"no\"", "\"\""),
        good.replace("\"no\"", "\"\\u001b[31m\""),
        good.replace("\"no\"", &format!("\"{}\"", "n".repeat(MOST_SAID + 2))),
        good.replace("A:B", &"x".repeat(MOST_OF_KEY + 1)),
        good.replace("2026-06-08T", "2026-06-31T"),
        serde_json::to_string(&many).unwrap(),
        good.clone() + &" ".repeat(MOST_BYTES as usize),
    ] {
        assert_ne!(bad, good);
        std::fs::write(state.path(), &bad).unwrap();
        let why = state.refusal(&key(), WHEN).unwrap_err().to_string();
        assert!(why.contains("gate.json is ignored: "), "{why}");
        state.forget(&key()).unwrap();
        assert_eq!(std::fs::read_to_string(state.path()).unwrap(), bad);
        state.remember(&key(), &refusal("no")).unwrap();
        assert_eq!(std::fs::read_to_string(state.path()).unwrap(), good);
    }
}

#[test]
fn what_others_can_write_to_is_ignored() {
    let (_place, state) = remembering();
    let why = || state.refusal(&key(), WHEN).unwrap_err().to_string();
    for loose in [0o620, 0o602, 0o666] {
        mode(&state.path(), loose);
        assert!(why().ends_with("it is writable by others"), "{}", why());
    }
    mode(&state.path(), 0o600);
    for loose in [0o720, 0o702, 0o777] {
        mode(&folder(&state), loose);
        assert!(why().ends_with("its directory is writable by others"));
        // Nothing is put there either.
        state.remember(&key(), &refusal("more")).unwrap_err();
    }
    mode(&folder(&state), 0o700);
    assert_eq!(state.refusal(&key(), WHEN).unwrap(), Some(refusal("no")));
}

#[test]
fn what_belongs_to_another_user_is_ignored_and_kept() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_place, state) = remembering();
    chown(state.path(), Some(48_713), None).unwrap();
    let why = state.refusal(&key(), WHEN).unwrap_err().to_string();
    assert!(why.ends_with("it belongs to user 48713"), "{why}");
    assert!(state.left().unwrap()[0].foreign.is_some());
    chown(state.path(), Some(0), None).unwrap();
    assert_eq!(state.left().unwrap()[0].foreign, None);
    chown(folder(&state), Some(48_713), None).unwrap();
    let why = state.refusal(&key(), WHEN).unwrap_err().to_string();
    assert!(why.ends_with("its directory belongs to user 48713"));
    assert!(state.left().unwrap()[0].foreign.is_some());
    state.remember(&key(), &refusal("more")).unwrap_err();
}

#[test]
fn links_and_pipes_are_not_followed() {
    let (place, state) = remembering();
    let elsewhere = place.path().join("elsewhere");
    std::fs::rename(state.path(), &elsewhere).unwrap();
    symlink(&elsewhere, state.path()).unwrap();
    let why = state.refusal(&key(), WHEN).unwrap_err().to_string();
    assert!(why.contains("it is a symbolic link"), "{why}");
    assert!(state.left().unwrap()[0].foreign.is_some());
    // The link is replaced, and not what it points to.
    let before = std::fs::read(&elsewhere).unwrap();
    state.remember(&key(), &refusal("more")).unwrap();
    assert_eq!(std::fs::read(&elsewhere).unwrap(), before);
    assert!(state.refusal(&key(), WHEN).unwrap().is_some());

    let moved = place.path().join("moved");
    std::fs::rename(folder(&state), &moved).unwrap();
    symlink(&moved, folder(&state)).unwrap();
    state.refusal(&key(), WHEN).unwrap_err();
    state.remember(&key(), &refusal("more")).unwrap_err();
    state.left().unwrap_err();
    state.remove(FILE.as_ref()).unwrap_err();
    assert!(moved.join(FILE).exists());
}

#[test]
fn the_directory_goes_with_the_last_file_of_ours() {
    let (_place, state) = remembering();
    let unfinished = folder(&state).join(".tki-attest-0123456789abcdef");
    let foreign = folder(&state).join("notes");
    std::fs::write(&unfinished, "").unwrap();
    std::fs::write(&foreign, "foreign").unwrap();
    let paths: Vec<PathBuf> = state.left().unwrap().into_iter().map(|l| l.path).collect();
    assert_eq!(paths, [unfinished, state.path()]);
    for path in &paths {
        state.remove(path.file_name().unwrap()).unwrap();
    }
    assert_eq!(std::fs::read(&foreign).unwrap(), b"foreign");
    std::fs::remove_file(&foreign).unwrap();
    state.remember(&key(), &refusal("no")).unwrap();
    state.forget(&key()).unwrap();
    assert!(!folder(&state).exists());
    assert!(state.parent.exists());
}
