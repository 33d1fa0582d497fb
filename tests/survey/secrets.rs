//! Servers that send secrets back, and those that must not get them.

use super::calls;
use super::routes::{File, Server, database, route};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A password that programs write in many ways.
const PASSWORD: &str = "p\u{e4}ss/word with \"kwotes\"&moar7";

/// Pieces of it that must not be seen anywhere, in any of these ways.
const PIECES: &[&str] = &[
    "ss/word",
    "ss%2fword",
    "kwotes",
    "moar7",
    "cMOkc3M",
    "70c3a4",
    "\\u0070",
];

/// The password as a careless server writes it.
fn forms(password: &str) -> String {
    let hex: String = password.bytes().map(|byte| format!("{byte:02X}")).collect();
    let percent: String = password.bytes().map(|b| format!("%{b:02x}")).collect();
    let unicode: String = password
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let json = serde_json::to_string(password).unwrap();
    format!("got {password}, {json}, {hex}, {percent}, {unicode}")
}

/// A message of PostgreSQL's protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// Reads a message whose length stands after so many bytes; gives its body.
fn read_message(client: &mut TcpStream, before: usize) -> Vec<u8> {
    let mut head = vec![0; before + 4];
    client.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes(head[before..].try_into().unwrap());
    let mut body = vec![0; length as usize - 4];
    client.read_exact(&mut body).unwrap();
    body
}

/// A server that asks for the password in the clear and sends it back in its error.
/// A fake is right here: a real one does not do it.
fn echoing_postgres() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            read_message(&mut client, 0);
            client.write_all(&message(b'R', &[0, 0, 0, 3])).unwrap();
            let password = read_message(&mut client, 1);
            let password = String::from_utf8_lossy(&password);
            let password = forms(password.trim_end_matches('\0'));
            let fields = format!("SFATAL\0VFATAL\0C28P01\0M{password}\0\0");
            client.write_all(&message(b'E', fields.as_bytes())).unwrap();
        }
    });
    port
}

/// The survey as JSON, as a table, and the packet that it writes.
fn everything(file: &File, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let packet = folder.path().join("packet.md");
    let packet = ["--packet", packet.to_str().unwrap()];
    let mut all = String::new();
    for format in ["json", "text"] {
        let flags = [arguments, &["--format", format], &packet].concat();
        let said = file.said(&flags, variables);
        assert_eq!(said.status, 3, "{said:?}");
        all += &(said.stdout + &said.stderr);
    }
    all + &fs::read_to_string(packet[1]).unwrap()
}

#[track_caller]
fn has_no_secret(text: &str) {
    let lower = text.to_lowercase();
    for piece in PIECES {
        assert!(!lower.contains(&piece.to_lowercase()), "{piece}: {text}");
    }
}

#[test]
fn a_database_that_sends_the_password_back_gets_it_into_no_document() {
    let port = echoing_postgres();
    for (show, seen) in [("", false), ("show_answers = true\n", true)] {
        let routes = format!(
            "[[route]]\nname = \"lane\"\nkind = \"postgres\"\nhost = \"127.0.0.1\"\n\
             port = {port}\ndbname = \"d\"\nuser = \"u\"\npassword_env = \"PASSWORD\"\n{show}"
        );
        let file = File::new(&format!("\"127.0.0.1:{port}\""), "\"ddl\"", &routes);
        let text = everything(&file, &[], &[("PASSWORD", PASSWORD)]);
        assert!(text.contains("FATAL 28P01"), "{text}");
        assert_eq!(text.contains("got [redacted], "), seen, "{text}");
        assert_eq!(text.contains("words are not shown"), !seen, "{text}");
        has_no_secret(&text);
    }
}

#[test]
fn of_a_route_with_a_secret_only_the_status_is_shown() {
    let server = Server::new(|request| {
        let header = request
            .lines()
            .find(|line| line.starts_with("Authorization"));
        let body = format!("[DENIED] {}", header.unwrap_or_default());
        let length = body.len();
        format!("HTTP/1.1 403 Not-You\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    });
    let routes = format!(
        "[[route]]\nname = \"items\"\nkind = \"http\"\nmethod = \"GET\"\n\
         url = \"http://{}/\"\nexpect = [200]\nability = \"items\"\n\
         secret_headers = {{ Authorization = \"TOKEN\" }}\n\
         [[route]]\nname = \"script\"\nkind = \"command\"\nprogram = \"/bin/sh\"\n\
         arguments = [\"-c\", \"echo a-word; echo $TOKEN | rev; exit 4\"]\n\
         secret_env = [\"TOKEN\"]\n",
        server.address
    );
    let file = File::new(&format!("\"{}\"", server.address), "\"items\"", &routes);
    let token = [("TOKEN", "Bearer very-secret-token-value")];
    let text = everything(&file, &["--allow-writes", "script"], &token);
    for gone in [
        "very-secret",
        "terces-yrev",
        "DENIED",
        "Not-You",
        "exit 4: a-word",
    ] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    for shown in ["403 (", "exit 4 (", "bytes of its words are not shown"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}

/// What a server makes of a Basic header, and the lines of a key.
#[test]
fn credentials_and_keys_are_recognised_in_pieces() {
    let server = Server::new(|_| {
        let body = "no user alice with password hunter2&co";
        let length = body.len();
        format!("HTTP/1.1 401 No\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    });
    let routes = format!(
        "[[route]]\nname = \"items\"\nkind = \"http\"\nmethod = \"GET\"\nshow_answers = true\n\
         url = \"http://{}/\"\nexpect = [200]\nability = \"items\"\n\
         secret_headers = {{ Authorization = \"BASIC\" }}\n\
         [[route]]\nname = \"script\"\nkind = \"command\"\nprogram = \"/bin/sh\"\n\
         arguments = [\"-c\", \"echo \\\"$KEY\\\" | sed -n 2p; exit 4\"]\n\
         secret_env = [\"KEY\"]\nshow_answers = true\n",
        server.address
    );
    let file = File::new(&format!("\"{}\"", server.address), "\"items\"", &routes);
    let variables = [
        ("BASIC", "Basic YWxpY2U6aHVudGVyMiZjbw=="),
        (
            "KEY",
            "-----BEGIN KEY-----\nAAAAB3NzaC1yc2E\nEAAAADAQABAAABgQ\n-----END KEY-----",
        ),
    ];
    let text = everything(&file, &["--allow-writes", "script"], &variables);
    assert!(
        text.contains("no user alice with password [redacted]"),
        "{text}"
    );
    assert!(text.contains("exit 4: [redacted]"), "{text}");
    for gone in ["hunter2", "AAAAB3"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
}

/// Both sockets are the same server's; one lies where everybody can write.
#[test]
fn a_password_goes_to_no_socket_that_another_user_could_have_made() {
    let database = database();
    let open = tempfile::tempdir().unwrap();
    let socket = format!(".s.PGSQL.{}", database.port);
    fs::hard_link(database.socket().join(&socket), open.path().join(&socket)).unwrap();
    let survey = |folder: &Path| {
        let routes = format!(
            "[[route]]\nname = \"lane\"\nkind = \"postgres\"\nhost = \"{}\"\nport = {}\n\
             dbname = \"postgres\"\nuser = \"reader\"\npassword_env = \"PASSWORD\"\n",
            folder.display(),
            database.port
        );
        let password = [("PASSWORD", "readers-password")];
        let found = File::new("", "\"ddl\"", &routes).survey(&[], &password, 3);
        calls(route(&found, "lane"))
    };
    let given = survey(&database.socket());
    assert!(
        given.contains("BEGIN TRANSACTION READ ONLY → ok"),
        "{given}"
    );
    for (mode, why) in [
        (0o777, "everybody may write there"),
        (0o1777, "everybody may write there"),
        (0o755, "the directory is user 0's"),
    ] {
        fs::set_permissions(open.path(), fs::Permissions::from_mode(mode)).unwrap();
        let refused = survey(open.path());
        assert!(refused.contains("the password was not sent"), "{refused}");
        assert!(refused.contains(why), "{refused}");
    }
}
