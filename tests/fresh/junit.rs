//! JUnit, read by Python.

use super::bases::plain;
use crate::common::bundle::write_restamped;
use crate::common::need;
use crate::common::signed::{Copy, keys};
use std::fs;
use std::process::Command;

fn formatted(copy: &Copy, format: &str) -> String {
    copy.verify(&["--format", format]).stdout
}

#[test]
fn junit_is_xml_that_tells_false_from_not_proven() {
    let copy = plain().copy();
    let counts = |copy: &Copy| {
        let file = copy.folder.path().join("junit.xml");
        fs::write(&file, formatted(copy, "junit")).unwrap();
        let script = "import sys, xml.etree.ElementTree as t\n\
                      s = t.parse(sys.argv[1]).getroot().findall('testsuite')\n\
                      assert len(s) == 1\n\
                      c = s[0].findall('testcase')\n\
                      n = lambda k: sum(len(x.findall(k)) for x in c)\n\
                      a = s[0].attrib\n\
                      assert (len(c), n('failure'), n('error'), n('skipped')) == tuple(\n\
                          int(a[k]) for k in ('tests', 'failures', 'errors', 'skipped'))\n\
                      print(n('failure'), n('error'))\n";
        let mut python = Command::new("python3");
        let said = need("python3", python.args(["-c", script]).arg(file));
        assert_eq!(said.status, 0, "{said:?}");
        said.stdout.trim().to_owned()
    };
    assert_eq!(counts(&copy), "0 0");
    fs::write(&copy.signers, keys().list("x {stranger}\n")).unwrap();
    assert_eq!(counts(&copy), "0 1");
    let copy = plain().copy();
    let mut value = plain().value.clone();
    value["venue"] = "<&\"'\u{1b}\u{0}\u{ffff}]]>".into();
    fs::remove_file(copy.envelope()).unwrap();
    write_restamped(&copy.path, value);
    let text = counts(&copy);
    assert!(text.starts_with(['1', '2', '3']), "{text}");
}
