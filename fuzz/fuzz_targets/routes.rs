//! Files of routes from elsewhere. Nothing panics, and whatever is accepted keeps the
//! rules: plain names, listed hosts, no secret that leaves this host.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tki_attest::survey::http::Address;
use tki_attest::survey::redact::Redactor;
use tki_attest::survey::routes::form::Routes;
use tki_attest::survey::routes::http::Target;
use tki_attest::survey::routes::kinds::Route;

#[derive(Arbitrary, Debug)]
struct Input {
    hosts: Vec<Host>,
    routes: Vec<Line>,
    raw: Option<String>,
    /// A secret, and a text in which it must not be found afterwards.
    secret: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Host {
    Here,
    Elsewhere,
    Other(String),
}

#[derive(Arbitrary, Debug)]
enum Line {
    Route,
    Name(u8),
    File,
    Http,
    Postgres,
    Docker,
    Command,
    Secret,
    Url(Host, String),
    Method(String),
    Any(String, String),
    Raw(String),
}

impl Host {
    fn text(&self) -> String {
        match self {
            Host::Here => "127.0.0.1:80".into(),
            Host::Elsewhere => "192.0.2.1:80".into(),
            Host::Other(text) => text.clone(),
        }
    }
}

fn line(line: &Line) -> String {
    match line {
        Line::Route => "[[route]]\n".into(),
        Line::Name(number) => format!("name = \"r{number}\"\n"),
        Line::File => "kind = \"file\"\nfolder = \"/tmp\"\n".into(),
        Line::Http => "kind = \"http\"\nexpect = [200]\nability = \"items\"\n".into(),
        Line::Postgres => "kind = \"postgres\"\nhost = \"192.0.2.1\"\nport = 80\n\
                           dbname = \"d\"\nuser = \"u\"\n"
            .into(),
        Line::Docker => "kind = \"docker\"\nhost = \"tcp://192.0.2.1:80\"\n".into(),
        Line::Command => "kind = \"command\"\nprogram = \"/bin/true\"\n".into(),
        Line::Secret => "secret_headers = { A = \"B\" }\n".into(),
        Line::Url(host, path) => format!("url = {:?}\n", format!("http://{}{path}", host.text())),
        Line::Method(method) => format!("method = {method:?}\n"),
        Line::Any(key, value) => format!("{key} = {value:?}\n"),
        Line::Raw(text) => text.clone(),
    }
}

fn check(text: &str) {
    let Ok(routes) = Routes::parse(text) else {
        return;
    };
    for route in &routes.routes {
        let about = route.about();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(!about.name.is_empty() && about.name.chars().all(plain));
        let secret = !route.secret_variables().is_empty();
        let address = match route {
            Route::Http(route) => Target::parse(&route.url).expect("checked").address,
            Route::Postgres(route) if !route.host.starts_with('/') => {
                format!("{}:{}", route.host, route.port)
            }
            _ => continue,
        };
        assert!(routes.hosts.contains(&address), "{address} is not listed");
        assert!(
            !secret || Address::Tcp(address).is_here(),
            "a secret leaves this host"
        );
    }
}

/// Wherever it stands, a secret goes.
fn redact(input: &Input) {
    let redactor = Redactor::new([input.secret.clone()]);
    let text = [&input.before[..], &input.secret, &input.after].concat();
    let clean = redactor.clean_bytes(&text, false, 10_000);
    let gone = "[redacted]";
    let plain = |byte: &u8| byte.is_ascii_alphanumeric();
    if input.secret.len() >= 4 && input.secret.iter().all(plain) && text.len() <= 4096 {
        assert!(clean.contains(gone));
        let secret = String::from_utf8_lossy(&input.secret);
        // What stands in its place may look like it.
        let found = clean.replace(gone, "\u{f8ff}").contains(&*secret);
        assert!(!found || gone.contains(&*secret), "a secret came back");
    }
    assert!(!clean.contains('\u{1b}'), "an escape got through");
}

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    let hosts: Vec<String> = input.hosts.iter().map(Host::text).collect();
    let head = format!(
        "schema = \"tki-attest/routes/v1\"\nsubject = \"C1\"\nscope = \"C1\"\n\
         needs = [\"ddl\"]\nhosts = {hosts:?}\n"
    );
    let lines: String = input.routes.iter().map(line).collect();
    check(&(head + &lines));
    if let Some(raw) = &input.raw {
        check(raw);
    }
    redact(&input);
});
