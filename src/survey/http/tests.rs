use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::{Duration, Instant};

/// The answer of a server that says this and hangs up, however it is cut into packets.
fn said(parts: &'static [&'static [u8]], method: &str) -> Result<Answer, HttpError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp {
        host: "127.0.0.1".into(),
        port: listener.local_addr().unwrap().port(),
        tls: None,
    };
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.set_nodelay(true).unwrap();
        let mut heard = [0; 4096];
        let mut asked = Vec::new();
        while !asked.windows(4).any(|window| window == b"\r\n\r\n") {
            let count = client.read(&mut heard).unwrap();
            asked.extend_from_slice(&heard[..count]);
        }
        for part in parts {
            // A client that has heard enough closes its end.
            if client.write_all(part).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Write);
        String::from_utf8(asked).unwrap()
    });
    let request = Request {
        method,
        headers: &[("X-Own".into(), "value".into())],
        ..Request::get("/a?b=c")
    };
    let answer = exchange(&address, &request, 64, &Deadline::for_cleaning());
    let asked = server.join().unwrap();
    assert!(asked.starts_with(&format!("{method} /a?b=c HTTP/1.1\r\n")));
    assert!(asked.contains("\r\nX-Own: value\r\n"), "{asked}");
    assert!(asked.contains("\r\nConnection: close\r\n"), "{asked}");
    assert!(asked.contains("\r\nHost: 127.0.0.1:"), "{asked}");
    let has_length = asked.contains("\r\nContent-Length: 0\r\n");
    assert_eq!(has_length, method == "POST", "{asked}");
    answer
}

fn whole(text: &'static [&'static [u8]]) -> Result<Answer, HttpError> {
    said(text, "GET")
}

#[test]
fn answers_are_read_in_every_framing() {
    let cases: [&[&[u8]]; 7] = [
        &[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi trailing"],
        &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\n\r\n"],
        &[b"HTTP/1.0 200 OK\r\n\r\nhi"],
        &[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nhi"],
        &[b"HTTP/1.1 200", b" OK\r\n", b"\r\nh", b"i"],
        &[b"HTTP/1.1 200 OK\r\nno header at all\r\nContent-Length: 2\r\n\r\nhi"],
        &[b"HTTP/1.1 200 OK\r\nServer: \xff\r\nContent-Length: 2\r\n\r\nhi"],
    ];
    for parts in cases {
        let answer = whole(parts).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hi"[..]));
        assert_eq!(answer.reason, "OK");
        assert!(!answer.cut, "{parts:?}");
    }
    let head = said(
        &[b"HTTP/1.1 404 Nowhere\r\nContent-Length: 9\r\n\r\n"],
        "HEAD",
    )
    .unwrap();
    assert_eq!((head.status, head.reason.as_str()), (404, "Nowhere"));
    assert!(head.body.is_empty() && !head.cut);
    assert_eq!(
        said(&[b"HTTP/1.1 204 \r\n\r\n"], "POST").unwrap().status,
        204
    );
}

#[test]
fn what_is_too_long_is_cut_and_what_is_no_answer_is_refused() {
    let long: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 100]];
    let short: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n",
        &[b'x'; 64],
    ];
    let chunk: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n",
        &[b'x'; 64],
    ];
    for parts in [long, short, chunk] {
        let answer = whole(parts).unwrap();
        assert_eq!((answer.body.len(), answer.cut), (64, true), "{parts:?}");
    }
    let cases: [(&[&[u8]], &str); 9] = [
        (&[b"SSH-2.0-OpenSSH\r\n\r\n"], "not HTTP: "),
        (&[b"HTTP/1.1 2x0 OK\r\n\r\n"], "not HTTP: "),
        (
            &[b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"],
            "not HTTP: ",
        ),
        (
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
            "not HTTP: ",
        ),
        (
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"],
            "not HTTP: ",
        ),
        (
            &[b"HTTP/1.1 200 OK\r\nContent-Le"],
            "it ended in the middle",
        ),
        (&[], "it ended in the middle"),
        (&[b"HTTP/1.1 200 OK\r\nX: ", &[b'x'; 70_000]], "not HTTP: "),
        // As many announcements as there may ever be would fill a stack.
        (ANNOUNCED, "without end"),
    ];
    for (parts, why) in cases {
        let refused = whole(parts).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused} for {why}");
    }
}

static ANNOUNCED: &[&[u8]] = &[&ANNOUNCEMENTS];

static ANNOUNCEMENTS: [u8; 25 * 10_000] = {
    let one = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut all = [0; 25 * 10_000];
    let mut at = 0;
    while at < all.len() {
        all[at] = one[at % one.len()];
        at += 1;
    }
    all
};

#[test]
fn an_answer_without_an_end_is_not_kept_in_memory() {
    const ENDLESS: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        &[b'0'; 1 << 20],
    ];
    let refused = whole(ENDLESS).unwrap_err();
    assert!(refused.to_string().contains("without end"), "{refused}");
}

#[test]
fn a_peer_that_never_answers_is_left_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = parse_address(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
    let soon = Deadline::for_cleaning().until(Instant::now() + Duration::from_millis(200));
    let left = exchange(&address, &Request::get("/"), 64, &soon).unwrap_err();
    assert!(
        matches!(left, HttpError::Stopped(Stopped::TimedOut)),
        "{left}"
    );
}

/// A proxy that refuses a large request reads none of it.
#[test]
fn an_answer_before_the_question_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = parse_address(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client
            .write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        client.shutdown(Shutdown::Both).unwrap();
    });
    let large = vec![0; 16 << 20];
    let request = Request {
        method: "POST",
        body: &large,
        ..Request::get("/")
    };
    let answer = exchange(&address, &request, 64, &Deadline::for_cleaning()).unwrap();
    server.join().unwrap();
    assert_eq!((answer.status, answer.reason.as_str()), (403, "No"));
}

#[test]
fn addresses_are_of_three_kinds() {
    for (url, here) in [
        ("unix:///run/x", true),
        ("tcp://127.0.0.1:1", true),
        ("tcp://[::1]", true),
        ("tcp://localhost:2375", true),
        ("http://127.0.0.1:2375/", true),
        ("tcp://192.0.2.1:2375", false),
        ("tcp://localhost.example:2375", false),
    ] {
        assert_eq!(parse_address(url).unwrap().is_here(), here, "{url}");
    }
    for url in [
        "ssh://x",
        "unix://relative",
        "tcp://",
        "tcp://a b",
        "x",
        "https://x",
    ] {
        assert!(parse_address(url).is_none(), "{url}");
    }
}
