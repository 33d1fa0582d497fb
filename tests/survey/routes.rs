//! Write routes of a file: a real directory, database, engine and program; a
//! small server of the test's own for HTTP.

use super::calls;
use crate::common::postgres::Postgres;
use crate::common::proxy::{Proxy, Reaction, Request};
use crate::common::traces::nothing_left;
use crate::common::{Mounted, Said, docker, names_in, run, shared_engine, tool, whole_engine};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

const HOLD: &str = "C1_DRYRUN_HOLD_NO_GOVERNED_WRITE_CHANNEL";
const CHANNEL: &str = "C1_DRYRUN_GOVERNED_WRITE_CHANNEL_AVAILABLE";

/// A file of routes, and the survey of it.
pub(super) struct File(tempfile::TempDir);

impl File {
    pub(super) fn new(hosts: &str, needs: &str, routes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "schema = \"tki-attest/routes/v1\"\nsubject = \"C1_DRYRUN\"\nscope = \"C1\"\n\
             needs = [{needs}]\nhosts = [{hosts}]\n{routes}"
        );
        fs::write(folder.path().join("routes.toml"), text).unwrap();
        Self(folder)
    }

    pub(super) fn said(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = tool();
        command
            .arg("survey")
            .arg("--routes")
            .arg(self.0.path().join("routes.toml"))
            .args(arguments)
            .envs(variables.iter().copied());
        run(&mut command)
    }

    #[track_caller]
    pub(super) fn survey(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        status: i32,
    ) -> Value {
        let said = self.said(&[arguments, &["--format", "json"]].concat(), variables);
        assert_eq!(said.status, status, "{said:?}");
        for (_, secret) in variables {
            assert!(!said.stdout.contains(secret), "{said:?}");
            assert!(!said.stderr.contains(secret), "{said:?}");
        }
        assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }
}

#[track_caller]
pub(super) fn route<'a>(survey: &'a Value, name: &str) -> &'a Value {
    let routes = survey["routes"].as_array().unwrap();
    let found = routes.iter().find(|route| route["route"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {survey}"))
}

#[track_caller]
fn answer(survey: &Value, question: &str) -> String {
    let all = survey["questions"].as_array().unwrap();
    let found = all
        .iter()
        .find(|q| q["question"].as_str().unwrap().starts_with(question));
    found.unwrap()["answer"].as_str().unwrap().to_owned()
}

#[test]
fn a_directory_is_written_to_only_if_that_is_permitted() {
    let folder = tempfile::tempdir().unwrap();
    let (open, shut) = (folder.path().join("open"), folder.path().join("shut"));
    fs::create_dir(&open).unwrap();
    let _read_only = Mounted::tmpfs(&shut, "ro,size=64k");
    let routes = |path: &Path, name: &str| {
        format!(
            "[[route]]\nname = \"{name}\"\nkind = \"file\"\nfolder = \"{}\"\n",
            path.display()
        )
    };
    let file = File::new(
        "",
        "\"ddl\"",
        &[routes(&open, "open"), routes(&shut, "shut")].concat(),
    );
    let changed = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let before = changed(&open);
    let found = file.survey(&[], &[], 3);
    assert_eq!(found["verdict"], HOLD);
    assert_eq!(route(&found, "open")["answer"], "not-tried");
    assert!(
        found["next"]
            .as_str()
            .unwrap()
            .contains("--allow-writes open"),
        "{found}"
    );
    // Not even a file that came and went.
    assert_eq!(changed(&open), before);

    let both = ["--allow-writes", "open", "--allow-writes", "shut"];
    let found = file.survey(&both, &[], 3);
    let row = route(&found, "open");
    assert_eq!(row["answer"], "yes", "{row}");
    assert!(calls(row).contains("SUCCESS"), "{row}");
    assert_eq!(names_in(&open), [""; 0]);
    let row = route(&found, "shut");
    assert_eq!(row["answer"], "no", "{row}");
    assert!(calls(row).contains("Read-only file system"), "{row}");
    // Documents are not what is needed.
    assert_eq!(found["verdict"], HOLD);
    assert_eq!(answer(&found, "What can it write?"), "Only documents");
    assert_eq!(answer(&found, "What can it not write?"), "ddl");
    assert!(answer(&found, "Can it create harness").starts_with("Only as non-executable"));
    assert!(answer(&found, "Is it C1-scoped?").starts_with("No C1"));
    assert!(answer(&found, "Is it production-isolated?").starts_with("NO"));
    assert!(answer(&found, "Can the block").starts_with("NO"));
    assert_eq!(found["questions"].as_array().unwrap().len(), 9);
}

/// A server that answers everything in the same way and keeps what it heard.
pub(super) struct Server {
    pub(super) address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn new(answer: fn(&str) -> Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&heard);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut bytes = Vec::new();
                let mut buffer = [0; 4096];
                while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
                    match client.read(&mut buffer) {
                        Ok(0) | Err(_) => break,
                        Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                    }
                }
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let said = answer(&text);
                log.lock().unwrap().push(text);
                // Nothing said means that nothing ever will be.
                match said.is_empty() {
                    true => std::mem::forget(client),
                    false => drop(client.write_all(&said)),
                }
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn http_route(address: &str, method: &str, path: &str) -> String {
    format!(
        "[[route]]\nname = \"items\"\nkind = \"http\"\nmethod = \"{method}\"\n\
         url = \"http://{address}{path}\"\nexpect = [200]\nability = \"items\"\n\
         body = \"{{}}\"\ngoverned = true\nisolated = true\nscope = \"C1\"\n\
         secret_headers = {{ Authorization = \"TOKEN\" }}\nshow_answers = true\n"
    )
}

#[test]
fn a_request_that_could_change_something_is_sent_only_if_permitted() {
    let server = Server::new(|request| {
        // It gives back what it was sent, and plays with the terminal.
        let body = format!("\u{1b}[31m[DENIED] not in the write allowlist; you sent {request}");
        let length = body.len();
        format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    });
    let host = format!("\"{}\"", server.address);
    let file = File::new(
        &host,
        "\"items\"",
        &http_route(&server.address, "POST", "/items/c1"),
    );
    let secret = [("TOKEN", "Bearer very-secret-token-value")];
    let found = file.survey(&[], &secret, 3);
    assert_eq!(route(&found, "items")["answer"], "not-tried");
    assert_eq!(server.heard(), [""; 0]);

    let found = file.survey(&["--allow-writes", "items"], &secret, 3);
    let row = route(&found, "items");
    assert_eq!(row["answer"], "no", "{row}");
    assert!(calls(row).contains("403 Forbidden"), "{row}");
    assert!(
        calls(row).contains("[DENIED] not in the write allowlist"),
        "{row}"
    );
    assert!(!calls(row).contains("very-secret"), "{row}");
    assert_eq!(server.heard().len(), 1);
    assert!(server.heard()[0].contains("Bearer very-secret-token-value"));
    assert_eq!(found["verdict"], HOLD);
    // Without its variable it is not sent at all.
    let found = file.survey(&["--allow-writes", "items"], &[], 3);
    assert!(
        calls(route(&found, "items")).contains("TOKEN is not set"),
        "{found}"
    );
    assert_eq!(server.heard().len(), 1);
}

#[test]
fn a_governed_isolated_request_that_works_is_a_channel() {
    let server = Server::new(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec());
    let host = format!("\"{}\"", server.address);
    let secret = [("TOKEN", "Bearer very-secret-token-value")];
    let good = http_route(&server.address, "POST", "/items/c1");
    let file = File::new(&host, "\"items\"", &good);
    let found = file.survey(&["--allow-writes", "items"], &secret, 0);
    assert_eq!(
        (&found["verdict"], &found["usable"]),
        (&CHANNEL.into(), &"items".into())
    );
    assert!(answer(&found, "Is there a governed").starts_with("YES"));
    // Each condition is needed.
    for (from, to) in [
        ("governed = true", "governed = false"),
        ("isolated = true", "isolated = false"),
        ("scope = \"C1\"", "scope = \"C2\""),
    ] {
        let file = File::new(&host, "\"items\"", &good.replace(from, to));
        let found = file.survey(&["--allow-writes", "items"], &secret, 3);
        assert_eq!(found["verdict"], HOLD, "{to}");
    }
    let file = File::new(&host, "\"items\", \"ddl\"", &good);
    assert_eq!(
        file.survey(&["--allow-writes", "items"], &secret, 3)["verdict"],
        HOLD
    );
}

#[test]
fn a_redirection_is_told_and_not_followed() {
    let server = Server::new(|_| {
        b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let host = format!("\"{}\"", server.address);
    let file = File::new(&host, "\"items\"", &http_route(&server.address, "GET", "/"));
    let found = file.survey(&[], &[("TOKEN", "Bearer very-secret-token-value")], 3);
    assert!(
        calls(route(&found, "items")).contains("302 Found"),
        "{found}"
    );
    assert_eq!(server.heard().len(), 1);
}

/// One server for all tests of the database that run at the same time. It ends
/// with the last of them: each holds it for as long as it runs.
pub(super) fn database() -> Arc<Postgres> {
    static DATABASE: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
    let mut shared = DATABASE.lock().unwrap_or_else(|p| p.into_inner());
    shared.upgrade().unwrap_or_else(|| {
        let database = Arc::new(Postgres::start());
        database.owner(
            "CREATE SCHEMA sandbox; \
             CREATE ROLE builder LOGIN PASSWORD 'builders-password'; \
             GRANT USAGE, CREATE ON SCHEMA sandbox TO builder; \
             CREATE ROLE reader LOGIN PASSWORD 'readers-password'; \
             ALTER ROLE reader SET default_transaction_read_only = on; \
             CREATE ROLE stranger NOLOGIN;",
        );
        *shared = Arc::downgrade(&database);
        database
    })
}

fn role(name: &str, user: &str, rest: &str) -> String {
    format!(
        "[[route]]\nname = \"{name}\"\nkind = \"postgres\"\nhost = \"127.0.0.1\"\nport = {}\n\
         dbname = \"postgres\"\nuser = \"{user}\"\npassword_env = \"PASSWORD\"\nshow_answers = true\n{rest}",
        database().port
    )
}

fn database_host() -> String {
    format!("\"127.0.0.1:{}\"", database().port)
}

#[test]
fn a_role_with_a_sandbox_schema_is_a_channel_and_leaves_nothing() {
    let _database = database();
    let rest = "sandbox_schema = \"sandbox\"\ngoverned = true\nscope = \"C1\"\n";
    let file = File::new(&database_host(), "\"ddl\"", &role("lane", "builder", rest));
    let password = [("PASSWORD", "builders-password")];
    let count = || database().owner("SELECT count(*) FROM pg_class WHERE relname LIKE 'tki%'");

    let found = file.survey(&[], &password, 3);
    let row = route(&found, "lane");
    assert_eq!(row["answer"], "not-tried", "{row}");
    assert!(!calls(row).contains("CREATE TABLE"), "{row}");
    assert!(calls(row).contains("nspname=sandbox may_create=t"), "{row}");
    assert!(
        calls(row).contains("BEGIN TRANSACTION READ ONLY → ok"),
        "{row}"
    );

    let found = file.survey(&["--allow-writes", "lane"], &password, 0);
    assert_eq!(found["verdict"], CHANNEL);
    let row = route(&found, "lane");
    let text = calls(row);
    assert!(
        text.contains("CREATE TABLE \"sandbox\".tki_attest_survey_"),
        "{text}"
    );
    assert!(
        text.contains("CREATE FUNCTION \"sandbox\".tki_attest_survey_"),
        "{text}"
    );
    assert_eq!(text.matches("ROLLBACK → ok").count(), 3, "{text}");
    assert_eq!(row["abilities"], serde_json::json!(["read", "ddl"]));
    assert_eq!(count(), "0");
    assert!(!database().log().contains("COMMIT"));
}

#[test]
fn a_role_without_rights_is_told_what_it_lacks() {
    let _database = database();
    let rest = "governed = true\nisolated = true\nscope = \"C1\"\n";
    let file = File::new(&database_host(), "\"ddl\"", &role("reader", "reader", rest));
    let password = [("PASSWORD", "readers-password")];
    let found = file.survey(&[], &password, 3);
    let row = route(&found, "reader");
    assert_eq!(
        (&row["answer"], &found["verdict"]),
        (&"no".into(), &HOLD.into()),
        "{row}"
    );
    assert!(calls(row).contains("read_only=on"), "{row}");
    assert!(calls(row).contains("nspname=public may_create=f"), "{row}");
    // What the file calls isolated is not, without a schema that shows it.
    assert_eq!(row["isolated"], false);

    let found = file.survey(&["--allow-writes", "reader"], &password, 3);
    let row = route(&found, "reader");
    assert_eq!(row["answer"], "no", "{row}");
    assert!(
        calls(row).contains("ERROR 25006") || calls(row).contains("ERROR 42501"),
        "{row}"
    );
    assert_eq!(row["denied"], serde_json::json!(["ddl"]));
    // A wrong password, and a role that may not even log in.
    let found = file.survey(&[], &[("PASSWORD", "not-the-password")], 3);
    assert!(calls(route(&found, "reader")).contains("28P01"), "{found}");
    let routes = format!(
        "[[route]]\nname = \"stranger\"\nkind = \"postgres\"\nhost = \"{}\"\nport = {}\n\
         dbname = \"postgres\"\nuser = \"stranger\"\n",
        database().socket().display(),
        database().port
    );
    let found = File::new("", "\"ddl\"", &routes).survey(&[], &[], 3);
    assert!(
        calls(route(&found, "stranger")).contains("28000"),
        "{found}"
    );
}

/// A directory of a file server that never answers: the kernel asks this process,
/// which says nothing.
struct DeadFolder {
    folder: tempfile::TempDir,
    _server: fs::File,
}

impl DeadFolder {
    fn new() -> Self {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let server = fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            server.as_raw_fd()
        );
        let options = std::ffi::CString::new(options).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("tki-test", folder.path(), "fuse", flags, Some(&*options)).unwrap();
        Self {
            folder,
            _server: server,
        }
    }
}

impl Drop for DeadFolder {
    fn drop(&mut self) {
        unmount(self.folder.path(), UnmountFlags::DETACH).unwrap();
    }
}

/// Servers that take the connection and never say a word.
#[test]
fn servers_that_hang_cost_their_own_rows_only() {
    let dead = DeadFolder::new();
    let server = Server::new(|_| Vec::new());
    let port = server.address.rsplit(':').next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let routes = format!(
        "{}[[route]]\nname = \"db\"\nkind = \"postgres\"\nhost = \"127.0.0.1\"\nport = {port}\n\
         dbname = \"d\"\nuser = \"u\"\n[[route]]\nname = \"docs\"\nkind = \"file\"\n\
         folder = \"{}\"\n[[route]]\nname = \"share\"\nkind = \"file\"\nfolder = \"{}\"\n",
        http_route(&server.address, "GET", "/"),
        folder.path().display(),
        dead.folder.path().display()
    );
    let file = File::new(&format!("\"{}\"", server.address), "\"items\"", &routes);
    let secret = [("TOKEN", "Bearer very-secret-token-value")];
    let permitted = ["--timeout", "2", "--allow-writes", "docs"];
    let found = file.survey(&permitted, &secret, 3);
    for name in ["items", "db", "share"] {
        let row = route(&found, name);
        assert!(
            calls(row).contains("no answer within the time limit"),
            "{row}"
        );
        assert_eq!(row["answer"], "no");
    }
    assert_eq!(route(&found, "docs")["answer"], "yes");
}

#[test]
fn an_engine_is_asked_to_create_only_if_permitted() {
    let _engine = whole_engine();
    let routes = |host: &str| {
        format!("[[route]]\nname = \"engine\"\nkind = \"docker\"\nhost = \"{host}\"\n")
    };
    let proxy = Proxy::plain();
    let file = File::new("", "\"containers\"", &routes(&proxy.host()));
    let found = file.survey(&[], &[], 3);
    assert_eq!(route(&found, "engine")["answer"], "not-tried");
    assert_eq!(
        proxy.count(|request| request.method != "GET"),
        0,
        "{:?}",
        proxy.log()
    );
    let found = file.survey(&["--allow-writes", "engine"], &[], 3);
    assert_eq!(route(&found, "engine")["answer"], "yes", "{found}");
    assert_eq!(proxy.count(Request::is_start), 0);
    nothing_left(&proxy);

    let proxy = Proxy::with(|request| match request.method.as_str() {
        "GET" => Reaction::Pass,
        _ => Reaction::Answer(403, "{\"message\":\"no\"}"),
    });
    let file = File::new("", "\"containers\"", &routes(&proxy.host()));
    let found = file.survey(&["--allow-writes", "engine"], &[], 3);
    let row = route(&found, "engine");
    assert_eq!(row["answer"], "no", "{row}");
    assert!(row["block"].as_str().unwrap().contains("403"), "{row}");
}

#[test]
fn a_program_is_started_only_if_permitted_and_its_secrets_do_not_show() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let routes = format!(
        "[[route]]\nname = \"script\"\nkind = \"command\"\nprogram = \"/bin/sh\"\n\
         arguments = [\"-c\", \"touch {}; echo key=$KEY; echo out-$HIDDEN; exit 4\"]\n\
         secret_env = [\"KEY\"]\nshow_answers = true\nexpect = 4\ngoverned = true\nisolated = true\nscope = \"C1\"\n",
        marker.display()
    );
    let file = File::new("", "\"execution\"", &routes);
    let variables = [("KEY", "the-secret-key-value"), ("HIDDEN", "not-passed-on")];
    let found = file.survey(&[], &variables, 3);
    assert_eq!(route(&found, "script")["answer"], "not-tried");
    assert!(!marker.exists());
    let found = file.survey(&["--allow-writes", "script"], &variables, 0);
    assert_eq!(found["verdict"], CHANNEL);
    let text = calls(route(&found, "script"));
    assert!(text.contains("exit 4: key=[redacted]\\nout-"), "{text}");
    assert!(marker.exists());
    // Without its variable, and without a program, there is nothing to start.
    fs::remove_file(&marker).unwrap();
    let found = file.survey(&["--allow-writes", "script"], &[], 3);
    let row = route(&found, "script");
    assert_eq!(row["block"], "variable KEY is not set", "{row}");
    assert!(!marker.exists());
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let routes = routes.replace("/bin/sh", plain.to_str().unwrap());
    let found = File::new("", "\"execution\"", &routes).survey(&[], &variables, 3);
    let row = route(&found, "script");
    assert_eq!(row["answer"], "no", "{row}");
    assert!(
        row["block"].as_str().unwrap().contains("Permission denied"),
        "{row}"
    );
}

/// An engine that takes in and gives nothing back, and says so: what was left is
/// told. A fake is right here: real engines remove what they made.
#[test]
fn a_container_that_stays_is_told() {
    let _engine = whole_engine();
    let proxy = Proxy::with(|request| match request.method.as_str() {
        "DELETE" => Reaction::Answer(403, "{\"message\":\"no\"}"),
        _ => Reaction::Pass,
    });
    let host = proxy.host();
    let routes = format!("[[route]]\nname = \"engine\"\nkind = \"docker\"\nhost = \"{host}\"\n");
    let file = File::new("", "\"containers\"", &routes);
    let found = file.survey(&["--allow-writes", "engine"], &[], 3);
    let row = route(&found, "engine");
    assert_eq!(row["answer"], "no", "{row}");
    assert!(
        row["left"].as_str().unwrap().contains("tki-attest-"),
        "{row}"
    );
    assert!(
        found["not_done"][0]
            .as_str()
            .unwrap()
            .contains("NOT cleaned up"),
        "{found}"
    );
    let found = crate::survey::survey_json(&["--only-hosts", "--host", &host], 3);
    let row = crate::survey::surface(&found, "Docker Engine");
    assert_eq!(row["decision"], "inspect-only", "{row}");
    assert!(
        row["can_run"]["why"]
            .as_str()
            .unwrap()
            .contains("NOT be removed"),
        "{row}"
    );
    assert_eq!(proxy.run_ids().len(), 2);
    for id in proxy.run_ids() {
        docker(&["rm", "--force", &format!("tki-attest-{id}")]);
    }
    nothing_left(&proxy);
}

#[test]
fn mistakes_in_a_file_are_usage_errors_and_nothing_is_probed() {
    let server = Server::new(|_| Vec::new());
    let file = File::new("", "\"items\"", &http_route(&server.address, "GET", "/"));
    let said = file.said(&[], &[]);
    said.failed(2, "routes.malformed");
    assert!(said.stderr.contains("not among `hosts`"), "{said:?}");
    assert_eq!(server.heard(), [""; 0]);
    let host = format!("\"{}\"", server.address);
    let good = http_route(&server.address, "GET", "/");
    let file = File::new(&host, "\"items\"", &good.replace("kind", "colour"));
    file.said(&[], &[]).failed(2, "routes.malformed");
    let file = File::new(&host, "\"items\"", &good);
    file.said(&["--allow-writes", "other"], &[])
        .failed(2, "routes.unknown");
    let said = run(tool().args(["survey", "--routes", "/nowhere"]));
    said.failed(2, "routes.unreadable");
    assert_eq!(
        run(tool().args(["survey", "--allow-writes", "x"])).status,
        2
    );
    assert_eq!(server.heard(), [""; 0]);
}

/// What a person reads.
#[test]
fn the_tables_of_a_survey_are_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let routes = format!(
        "[[route]]\nname = \"docs\"\nkind = \"file\"\nfolder = \"{}\"\n",
        folder.path().display()
    );
    let packet = folder.path().join("packet.md");
    let file = File::new("", "\"ddl\"", &routes);
    let said = file.said(&["--packet", packet.to_str().unwrap()], &[]);
    assert_eq!(said.status, 3, "{said:?}");
    for wanted in [
        "QUESTIONS",
        "ROUTES",
        "probe ",
        "result ",
        "proves ",
        HOLD,
        "next: ",
    ] {
        assert!(said.stdout.contains(wanted), "{wanted}: {said:?}");
    }
    assert!(fs::read_to_string(packet).unwrap().contains(HOLD));
}
